"""Hands, boneyards and deal secrets sealed at rest: AES-256-GCM under a key that is kept outside the database.

Whoever reads the database without the key sees every public fact and no hidden tile. Each sealed value is bound to its
place, so that one cannot be put where another was.
"""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from service.store.json_forms import StoredFormatError

KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_PRIVATE: Final = 0o600


class SealingKeyError(RuntimeError):
    """The key cannot be used. The text is a sentence for the operator."""


class Seal:
    """Seals and opens values under one key (NIST SP 800-38D; a random 96-bit nonce for each)."""

    def __init__(self, key: bytes) -> None:
        assert len(key) == KEY_BYTES
        self._cipher = AESGCM(key)
        self.key_id = hashlib.sha256(b"spectacular-bid sealing key" + key).hexdigest()[:16]

    def close(self, plain: bytes, place: str) -> bytes:
        """The sealed value: nonce, ciphertext, tag."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, plain, place.encode())

    def open(self, sealed: bytes, place: str) -> bytes:
        """The value that was sealed for this place. Raises StoredFormatError."""
        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], place.encode())
        except (InvalidTag, ValueError) as error:
            raise StoredFormatError(f"a sealed value at {place} cannot be opened") from error


def seal_from(path: Path) -> Seal:
    """The seal of the key in a file: 32 bytes in base64. A file that is not there is made, for its owner alone."""
    if not path.exists():
        _make(path)
    try:
        key = base64.b64decode(path.read_text(encoding="ascii").strip(), validate=True)
    except (OSError, ValueError) as error:
        raise SealingKeyError(f"{path} cannot be read as a sealing key: 32 bytes in base64 are needed.") from error
    if len(key) != KEY_BYTES:
        raise SealingKeyError(f"{path} holds {len(key)} bytes instead of a sealing key of {KEY_BYTES}.")
    return Seal(key)


def _make(path: Path) -> None:
    text = base64.b64encode(secrets.token_bytes(KEY_BYTES)) + b"\n"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
    except OSError as error:
        raise SealingKeyError(f"the sealing key {path} cannot be made: {error.strerror}.") from error
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
