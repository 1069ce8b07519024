"""Chance from the operating system's generator (SECRECY: 32 random bytes)."""

from __future__ import annotations

import secrets
from base64 import b32encode

_TOKEN_BYTES = 32
_SECRET_BYTES = 32
_MATCH_ID_BYTES = 16


class SystemEntropy:
    """The `Entropy` port on `secrets`."""

    def token(self, prefix: str) -> str:
        """A fresh unguessable token with this prefix (256 bits)."""
        return prefix + secrets.token_urlsafe(_TOKEN_BYTES)

    def match_id(self) -> str:
        """A fresh random match id: 26 letters and digits, 128 bits."""
        return b32encode(secrets.token_bytes(_MATCH_ID_BYTES)).decode().rstrip("=").lower()

    def secret(self) -> bytes:
        """32 fresh random bytes for the deals of a match."""
        return secrets.token_bytes(_SECRET_BYTES)
