"""The platform's public keys, from a file or a configured address. No token ever causes a fetch."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import jwt

from service.logs import get_logger

FETCH_SECONDS = 300.0
"""How often the address is asked again; announce a new key that long before it signs."""
RETRY_SECONDS = 10.0
TIMEOUT_SECONDS = 5.0
LARGEST_JWKS = 256 * 1024
_ALGORITHMS = {("EC", "P-256"): "ES256", ("OKP", "Ed25519"): "EdDSA"}


class Keys(Protocol):
    """Public keys by their ids."""

    def get(self, key_id: str) -> jwt.PyJWK | None:
        """The key with this id."""


class UnreadableKeysError(RuntimeError):
    """What should be a key set is none."""


def parsed(text: str) -> dict[str, jwt.PyJWK]:
    """The keys of a JWKS that sign with ES256 or EdDSA; others are passed over. Raises UnreadableKeysError."""
    found = {}
    try:
        for entry in json.loads(text)["keys"]:
            algorithm = _ALGORITHMS.get((entry.get("kty"), entry.get("crv")))
            if algorithm and "d" not in entry and entry.get("kid") and entry.get("use", "sig") == "sig":
                found[str(entry["kid"])] = jwt.PyJWK(entry, algorithm)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, jwt.PyJWTError) as error:
        raise UnreadableKeysError("not a JSON Web Key Set") from error
    if not found:
        raise UnreadableKeysError("no key for ES256 or EdDSA with a kid")
    return found


class FileKeys:
    """Keys in a file that is read again when it changes; while it cannot be read the last ones hold."""

    def __init__(self, path: Path) -> None:
        """Raises UnreadableKeysError."""
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._keys: dict[str, jwt.PyJWK] = {}
        try:
            self._read()
        except (OSError, UnreadableKeysError) as error:
            reason = error if isinstance(error, UnreadableKeysError) else "cannot be read"
            raise UnreadableKeysError(f"SPECBID_JWKS_FILE={str(path)!r}: {reason}") from error

    def get(self, key_id: str) -> jwt.PyJWK | None:
        """The key with this id."""
        try:
            self._read()
        except (OSError, UnreadableKeysError):
            get_logger().warning("jwks_not_read")
        return self._keys.get(key_id)

    def _read(self) -> None:
        status = self._path.stat()
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        if stamp != self._stamp:
            self._stamp = stamp
            self._keys = parsed(self._path.read_text(encoding="utf-8"))


class FetchedKeys:
    """Keys from an address, fetched by a task of their own in a thread; until the first answer there are none."""

    def __init__(self, url: str) -> None:
        self._fetch: Callable[[], str] = lambda: _fetched(url)
        self._keys: dict[str, jwt.PyJWK] = {}
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Fetch once, then again and again until `stop`."""
        await self._refresh()
        self._task = asyncio.create_task(self._run())

    def stop(self) -> None:
        """Fetch no more."""
        if self._task is not None:
            self._task.cancel()

    def get(self, key_id: str) -> jwt.PyJWK | None:
        """The key with this id."""
        return self._keys.get(key_id)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(FETCH_SECONDS if self._keys else RETRY_SECONDS)
            await self._refresh()

    async def _refresh(self) -> None:
        try:
            self._keys = parsed(await asyncio.to_thread(self._fetch))
        except (OSError, ValueError, UnreadableKeysError) as error:
            get_logger().warning("jwks_not_fetched", exception=type(error).__name__)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def _fetched(url: str) -> str:
    opener = urllib.request.build_opener(_NoRedirect)
    with opener.open(url, timeout=TIMEOUT_SECONDS) as answer:
        text: str = answer.read(LARGEST_JWKS).decode()
    return text
