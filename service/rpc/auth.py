"""Who calls: a bearer token is good for one match and one audience, a platform credential for creating and joining."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import unquote

from engine.clock import SECOND_NS
from service.limits import UNLIMITED, Limits
from service.logs import get_logger
from service.matches import token_hash
from service.metrics import Metrics
from service.ports import Credential, Store, StoreUnavailableError
from service.rpc.edge import Context
from service.rpc.platform import Platform
from service.rpc.statuses import MISSING_SCOPE, PERMISSION_DENIED, UNAUTHENTICATED, StatusError
from service.scopes import Scope

KNOWN_TOKENS = 50_000
"""Tokens kept in memory; an older one costs one read of the store. As many that were rotated are kept beside them."""
TOKEN_LIFE_NS = 24 * 3600 * SECOND_NS
"""How long a token is good after its match has ended."""
RECHECK_NS = 3600 * SECOND_NS
"""How long a token whose match went on is believed without asking the store; less than its life."""
SHARED_RECHECK_NS = 5 * SECOND_NS
"""The same where other processes rotate tokens too."""
ARRIVAL_HEADER = "x-specbid-arrival"
"""Envoy's stamp of a command, on the port that only Envoy reaches."""
FORGERIES = frozenset({"x-arrival-time", "x-queue-start", "x-request-start", "x-timestamp"})
"""What a client may send to be believed about time. It has no effect and is counted, as Envoy's is at other ports."""
_SCHEME = "Bearer "
_LONGEST_TOKEN = 256

V = TypeVar("V")
Metadata = Iterable[tuple[str, str | bytes]]


@dataclass(frozen=True, slots=True)
class _Known:
    credential: Credential
    asked_ns: int

    def is_good(self, now_ns: int, recheck_ns: int) -> bool:
        """Whether it can be believed without asking again."""
        if self.credential.ended_at_ns is None or recheck_ns < RECHECK_NS:
            return now_ns - self.asked_ns < recheck_ns
        return not is_expired(self.credential, now_ns)


def is_expired(credential: Credential, now_ns: int) -> bool:
    """Whether the token's match ended too long ago."""
    return credential.ended_at_ns is not None and now_ns >= credential.ended_at_ns + TOKEN_LIFE_NS


class Gatekeeper:
    """Credentials by token, most of them from memory, and what their holders may still ask for.

    Without `now_ns` nothing expires; without `limits` nothing is limited; without `platform` players are guests. A
    token is believed for `recheck_ns` before the store is asked again.
    """

    def __init__(
        self,
        store: Store,
        metrics: Metrics,
        *,
        now_ns: Callable[[], int] = lambda: 0,
        limits: Limits | None = None,
        platform: Platform | None = None,
        recheck_ns: int = RECHECK_NS,
    ) -> None:
        self._store = store
        self._metrics = metrics
        self._now_ns = now_ns
        self.limits = limits or Limits(now_ns, UNLIMITED, metrics.process.shed)
        self._platform = platform
        self._recheck_ns = recheck_ns
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        self._rotated: OrderedDict[bytes, None] = OrderedDict()
        self.forgeries = FORGERIES | {ARRIVAL_HEADER}
        """Headers that are counted as such."""

    def behind_envoy(self) -> Gatekeeper:
        """The same gatekeeper at the port where Envoy's stamps are no forgeries."""
        there = copy(self)
        there.forgeries = FORGERIES
        return there

    def hash_of(self, metadata: Metadata) -> bytes:
        """The hash of the caller's token. Raises UNAUTHENTICATED unless there is exactly one well-formed header."""
        token = self._bearer(metadata)
        if token is None or len(token) > _LONGEST_TOKEN:
            raise StatusError(UNAUTHENTICATED)
        return token_hash(token)

    def admit(self, context: Context) -> str:
        """Let somebody create or join. Returns the platform's subject, "" for a guest.

        Raises UNAUTHENTICATED, PERMISSION_DENIED or LimitedError.
        """
        if self._platform is None:
            self.limits.guests.take(address_of(context.peer()))
            return ""
        metadata = tuple(context.invocation_metadata() or ())
        if any(key == "authorization" for key, _ in metadata):
            identity = self._platform.of_token(self._bearer(metadata) or "")
        else:
            identity = self._platform.of_certificate(context.auth_context())
        if identity is None:
            self.limits.strangers.take(address_of(context.peer()))
            raise StatusError(UNAUTHENTICATED)
        if Scope.MATCH_CREATE not in identity.scopes:
            raise StatusError(MISSING_SCOPE)
        self.limits.creates.take(identity.subject)
        return identity.subject

    def known(self, hashed: bytes) -> Credential | None:
        """The credential if it is in memory and can be believed."""
        known = self._known.get(hashed)
        return known.credential if known is not None and self._believes(known) else None

    def _believes(self, known: _Known) -> bool:
        return known.is_good(self._now_ns(), self._recheck_ns)

    async def look_up(self, hashed: bytes) -> Credential:
        """The credential from memory or the store. Raises UNAUTHENTICATED or StoreUnavailableError."""
        credential = self.known(hashed)
        if credential is None:
            self._known.pop(hashed, None)
            asked_ns = self._now_ns()
            credential = await self._store.credential(hashed)
            if credential is None or hashed in self._rotated or is_expired(credential, self._now_ns()):
                raise StatusError(UNAUTHENTICATED)
            _remember(self._known, hashed, _Known(credential, asked_ns))
        return credential

    def revoke(self, credential: Credential) -> None:
        """The token was replaced in the store: it is good no longer, and its streams end."""
        self._known.pop(credential.token_hash, None)
        _remember(self._rotated, credential.token_hash, None)  # the store may be answering for it right now
        self.limits.streams.revoke(credential)

    async def end_revoked_streams(self) -> None:
        """Ask the store about the tokens of all open streams, every `recheck_ns` until cancelled.

        So a stream ends too when its token is rotated at another replica.
        """
        while True:
            await asyncio.sleep(self._recheck_ns / SECOND_NS)
            opened = self.limits.streams.credentials()
            try:
                good = await self._store.good_tokens(opened.keys()) if opened else set()
            except StoreUnavailableError:
                get_logger().warning("tokens_not_checked")
                continue
            for hashed in opened.keys() - good:
                self.revoke(opened[hashed])

    def _bearer(self, metadata: Metadata) -> str | None:
        """The text after Bearer, None unless there is exactly one well-formed header."""
        values = []
        for key, value in metadata:
            if key == "authorization":
                values.append(value)
            elif key in self.forgeries:
                self._metrics.process.forged_arrivals.inc()
        value = values[0] if len(values) == 1 else ""
        if not isinstance(value, str) or not value.startswith(_SCHEME):
            return None
        return value.removeprefix(_SCHEME)


def checked(credential: Credential, match_id: str) -> Credential:
    """The credential, if it is good for this match; the same answer whether or not the match exists."""
    if credential.match_id != match_id:
        raise StatusError(PERMISSION_DENIED)
    return credential


def address_of(peer: str) -> str:
    """The address in what grpc says of a peer, such as `ipv4:127.0.0.1:1234`, without the port."""
    return unquote(peer).rpartition(":")[0]


def _remember(known: OrderedDict[bytes, V], hashed: bytes, value: V) -> None:
    known[hashed] = value
    if len(known) > KNOWN_TOKENS:
        known.popitem(last=False)
