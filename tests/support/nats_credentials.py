"""NATS accounts as `nsc` makes them: an operator, its account, users with credentials files."""

import base64
import hashlib
import json
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nkeys

PREFIXES = {
    "operator": nkeys.PREFIX_BYTE_OPERATOR,
    "account": nkeys.PREFIX_BYTE_ACCOUNT,
    "user": nkeys.PREFIX_BYTE_USER,
}


def _plain(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


@dataclass(frozen=True)
class Identity:
    """Somebody with a key."""

    kind: str
    seed: bytes = field(repr=False)

    @classmethod
    def new(cls, kind: str) -> "Identity":
        """Somebody with a fresh key."""
        seed = nkeys.encode_seed(secrets.token_bytes(32), PREFIXES[kind])  # type: ignore[no-untyped-call]
        return cls(kind, seed)

    @property
    def public(self) -> str:
        """The public key, which is the name."""
        key: bytes = self._pair.public_key
        return key.decode()

    @property
    def _pair(self) -> Any:  # noqa: ANN401  the library has no types
        return nkeys.from_seed(bytearray(self.seed))  # type: ignore[no-untyped-call]

    def vouch_for(self, other: "Identity") -> str:
        """The token in which this one says that the other is what it is."""
        claims = {"iat": 1, "iss": self.public, "sub": other.public, "name": other.kind}
        claims["nats"] = {"type": other.kind, "version": 2} | (UNLIMITED if other.kind == "account" else {})
        claims["jti"] = base64.b32encode(hashlib.sha256(json.dumps(claims).encode()).digest()).rstrip(b"=").decode()
        head = _plain(json.dumps({"typ": "JWT", "alg": "ed25519-nkey"}).encode())
        signed = f"{head}.{_plain(json.dumps(claims).encode())}"
        return f"{signed}.{_plain(self._pair.sign(signed.encode()))}"


UNLIMITED = {"limits": {"subs": -1, "data": -1, "payload": -1, "conn": -1, "leaf": -1, "imports": -1, "exports": -1}}


class Accounts:
    """An operator with one account."""

    def __init__(self) -> None:
        self._operator = Identity.new("operator")
        self._account = Identity.new("account")

    def write_configuration(self, path: Path) -> None:
        """What a server needs to let in the users of this account only."""
        path.write_text(
            f"operator: {self._operator.vouch_for(self._operator)}\n"
            "resolver: MEMORY\n"
            f"resolver_preload: {{ {self._account.public}: {self._operator.vouch_for(self._account)} }}\n",
            encoding="utf-8",
        )

    def write_credentials(self, path: Path) -> None:
        """A fresh user of the account, as a file."""
        user = Identity.new("user")
        path.write_text(
            f"-----BEGIN NATS USER JWT-----\n{self._account.vouch_for(user)}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{user.seed.decode()}\n------END USER NKEY SEED------\n",
            encoding="utf-8",
        )
