"""Hands, boneyards and deal secrets sealed at rest: AES-256-GCM under keys that are kept outside the database.

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

from service.ports import StoreOpenError
from service.store.json_forms import StoredFormatError

KEY_BYTES: Final = 32
_ID_BYTES: Final = 8
_NONCE_BYTES: Final = 12
_NONCES_DRAWN: Final = 64
_TEXT_AT: Final = _ID_BYTES + _NONCE_BYTES
_PRIVATE: Final = 0o600


class SealingKeyError(RuntimeError):
    """The key cannot be used. The text is a sentence for the operator."""


class Seal:
    """Seals values under `key`, and opens what was sealed under it or an older one (AES-GCM, NIST SP 800-38D).

    A sealed value begins with the id of its key; then come a random 96-bit nonce, the ciphertext and the tag.
    """

    def __init__(self, key: bytes, *older: bytes) -> None:
        assert all(len(each) == KEY_BYTES for each in (key, *older))
        self._ciphers = {_id_of(each): AESGCM(each) for each in (*older, key)}
        self._id = _id_of(key)
        self._cipher = self._ciphers[self._id]
        self._nonces: list[bytes] = []

    def close(self, plain: bytes, place: str) -> bytes:
        """The sealed value. For one thread: nonces are drawn in advance, as asking the system for each costs more."""
        if not self._nonces:
            drawn = secrets.token_bytes(_NONCE_BYTES * _NONCES_DRAWN)
            self._nonces = [drawn[at : at + _NONCE_BYTES] for at in range(0, len(drawn), _NONCE_BYTES)]
        nonce = self._nonces.pop()
        return self._id + nonce + self._cipher.encrypt(nonce, plain, place.encode())

    def open(self, sealed: bytes, place: str) -> bytes:
        """The value that was sealed for this place. Raises StoredFormatError."""
        cipher, nonce = self._ciphers.get(sealed[:_ID_BYTES]), sealed[_ID_BYTES:_TEXT_AT]
        if cipher is None:
            raise StoredFormatError(f"a value at {place} is sealed with an unknown key")
        try:
            return cipher.decrypt(nonce, sealed[_TEXT_AT:], place.encode())
        except (InvalidTag, ValueError) as error:
            raise StoredFormatError(f"a sealed value at {place} cannot be opened") from error

    @property
    def key_id(self) -> str:
        """The id of the key that seals: 16 hexadecimal digits that tell nothing of it."""
        return self._id.hex()

    def missing(self, needed: str) -> list[str]:
        """Which of these key ids (with blanks between) cannot be opened."""
        return [key_id for key_id in needed.split() if bytes.fromhex(key_id) not in self._ciphers]


def seal_from(path: Path, needed: str = "") -> Seal:
    """The seal of the keys in a file, each 32 bytes in base64 on a line: the first seals, all open.

    `needed` are the ids of the keys with which a database was written. Without any, a file that is not there is made,
    for its owner alone. Raises SealingKeyError.
    """
    if not path.exists():
        if needed:
            raise SealingKeyError(f"the sealing key {path} is missing: without it no match of this database can go on.")
        _make(path)
    try:
        lines = path.read_text(encoding="ascii").split()
        keys = [base64.b64decode(line, validate=True) for line in lines]
    except (OSError, ValueError) as error:
        raise SealingKeyError(
            f"{path} cannot be read as sealing keys: each is 32 bytes in base64, one a line."
        ) from error
    if not keys or any(len(key) != KEY_BYTES for key in keys):
        raise SealingKeyError(f"{path} must hold sealing keys of {KEY_BYTES} bytes in base64, one a line.")
    seal = Seal(*keys)
    if missing := seal.missing(needed):
        raise SealingKeyError(
            f"{path} lacks the sealing key {', '.join(missing)}, with which this database was written: add it as a"
            " line of its own."
        )
    return seal


def existing_seal(path: Path) -> Seal:
    """The same for whoever only reads: no key is made. Raises StoreOpenError."""
    if not path.exists():
        raise StoreOpenError(f"The sealing key {path} is not there.")
    try:
        return seal_from(path)
    except SealingKeyError as error:
        raise StoreOpenError(str(error)) from error


def missing_keys(seal: Seal, path: Path, needed: str) -> list[str]:
    """A sentence for each key with which a database was written and that is not in the file of the seal."""
    return [f"{path} lacks the sealing key {key_id} of this database." for key_id in seal.missing(needed)]


def keys_in_use(needed: str, seal: Seal) -> str:
    """`needed` and the key that seals from now on."""
    return " ".join(dict.fromkeys((*needed.split(), seal.key_id)))


def _id_of(key: bytes) -> bytes:
    return hashlib.sha256(b"spectacular-bid sealing key" + key).digest()[:_ID_BYTES]


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
