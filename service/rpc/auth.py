"""Who calls: a bearer token is good for one match and one audience."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from service.matches import token_hash
from service.metrics import Metrics
from service.ports import Credential, Store
from service.rpc.statuses import PERMISSION_DENIED, UNAUTHENTICATED, StatusError

KNOWN_TOKENS = 50_000
"""Tokens kept in memory; an older one costs one read of the store."""
ARRIVAL_HEADERS = frozenset({"x-arrival-time", "x-queue-start", "x-request-start", "x-specbid-arrival", "x-timestamp"})
"""What a client may send to be believed about time. It has no effect; it is counted."""
_SCHEME = "Bearer "
_LONGEST_HEADER = 256


class Gatekeeper:
    """Credentials by token, most of them from memory."""

    def __init__(self, store: Store, metrics: Metrics) -> None:
        self._store = store
        self._metrics = metrics
        self._known: OrderedDict[bytes, Credential] = OrderedDict()

    def hash_of(self, metadata: Iterable[tuple[str, str | bytes]]) -> bytes:
        """The hash of the caller's token. Raises UNAUTHENTICATED unless there is exactly one well-formed header."""
        values = []
        for key, value in metadata:
            if key == "authorization":
                values.append(value)
            elif key in ARRIVAL_HEADERS:
                self._metrics.forged_arrivals.inc()
        value = values[0] if len(values) == 1 else ""
        if not isinstance(value, str) or not value.startswith(_SCHEME) or len(value) > _LONGEST_HEADER:
            raise StatusError(UNAUTHENTICATED)
        return token_hash(value.removeprefix(_SCHEME))

    def known(self, hashed: bytes) -> Credential | None:
        """The credential if it is in memory."""
        return self._known.get(hashed)

    async def look_up(self, hashed: bytes) -> Credential:
        """The credential from memory or the store. Raises UNAUTHENTICATED or StoreUnavailableError."""
        credential = self._known.get(hashed)
        if credential is None:
            credential = await self._store.credential(hashed)
            if credential is None:
                raise StatusError(UNAUTHENTICATED)
            self._known[hashed] = credential
            if len(self._known) > KNOWN_TOKENS:
                self._known.popitem(last=False)
        return credential


def checked(credential: Credential, match_id: str) -> Credential:
    """The credential, if it is good for this match; the same answer whether or not the match exists."""
    if credential.match_id != match_id:
        raise StatusError(PERMISSION_DENIED)
    return credential
