"""Chance from the operating system's generator (SECRECY: 32 random bytes, an unbiased shuffle)."""

from __future__ import annotations

import secrets
from base64 import b32encode
from math import factorial

from engine.tiles import DOUBLE_SIX, Tile

_TOKEN_BYTES = 32
_MATCH_ID_BYTES = 16
_ORDERS = factorial(len(DOUBLE_SIX))


class SystemEntropy:
    """The `Entropy` port on `secrets`."""

    def token(self, prefix: str) -> str:
        """A fresh unguessable token with this prefix (256 bits)."""
        return prefix + secrets.token_urlsafe(_TOKEN_BYTES)

    def match_id(self) -> str:
        """A fresh random match id: 26 letters and digits, 128 bits."""
        return b32encode(secrets.token_bytes(_MATCH_ID_BYTES)).decode().rstrip("=").lower()

    def deal(self) -> tuple[Tile, ...]:
        """All 28 tiles in a uniformly random order: one of the 28! by its number, in a single draw of chance."""
        rest, number, order = list(DOUBLE_SIX), secrets.randbelow(_ORDERS), []
        while rest:
            number, chosen = divmod(number, len(rest))
            order.append(rest.pop(chosen))
        return tuple(order)
