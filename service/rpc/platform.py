"""The platform's credentials: signed tokens (JWT) by keys from configuration, or verified client certificates."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import jwt

from service.rpc.jwks import Keys
from service.scopes import Identity, granted, scopes_of

ALGORITHMS = ("ES256", "EdDSA")
LEEWAY_SECONDS = 30
LONGEST_LIFE_SECONDS = 300
"""How far ahead `exp` may lie."""
LONGEST_JWT = 4096
HEADER_FIELDS = frozenset({"alg", "typ", "kid"})
"""All that a token's header may say: nothing in it leads to a key (jku, jwk, x5u, x5c), nothing is critical (crit)."""
_CERTIFICATE_NAMES = ("x509_subject_alternative_name", "x509_common_name")


@dataclass(frozen=True, slots=True)
class Claims:
    """What a token must say exactly."""

    issuer: str
    audience: str
    kind: str


class Platform:
    """Tells who calls. `keys` and `claims` belong together; `client_scopes` is for names in client certificates."""

    def __init__(
        self,
        keys: Keys | None,
        claims: Claims | None,
        client_scopes: Mapping[str, list[str]],
        now_seconds: Callable[[], float] = time.time,
    ) -> None:
        self._keys = keys
        self._claims = claims
        self._client_scopes = client_scopes
        self._now_seconds = now_seconds

    def of_token(self, token: str) -> Identity | None:
        """Whom a bearer token names; None for nobody."""
        if self._keys is None or self._claims is None or len(token) > LONGEST_JWT:
            return None
        try:
            header = jwt.get_unverified_header(token)
            key = self._keys.get(str(header.get("kid")))
            if not _is_plain(header, self._claims.kind) or key is None or key.algorithm_name != header["alg"]:
                return None
            claims = jwt.decode(
                token,
                key,
                algorithms=[key.algorithm_name],
                issuer=self._claims.issuer,
                audience=self._claims.audience,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"], "strict_aud": True},
            )
            ends_seconds = int(claims["exp"])
        except (jwt.PyJWTError, ValueError, TypeError, ArithmeticError, RecursionError):
            return None
        if ends_seconds > self._now_seconds() + LONGEST_LIFE_SECONDS + LEEWAY_SECONDS or not claims["sub"]:
            return None
        scope = claims.get("scope", "")
        names = frozenset(scope.split()) if isinstance(scope, str) else frozenset()
        return Identity(_subject(self._claims.issuer, claims["sub"]), scopes_of(names))

    def of_certificate(self, certificate: Mapping[str, Iterable[bytes]]) -> Identity | None:
        """Whom grpc's account of a verified client certificate names; None for nobody."""
        for kind in _CERTIFICATE_NAMES:
            for raw in certificate.get(kind, ()):
                name = raw.decode(errors="replace")
                if scopes := granted(self._client_scopes, name):
                    return Identity(_subject("certificate", name), scopes)
        return None


def _is_plain(header: Mapping[str, object], kind: str) -> bool:
    return header.keys() == HEADER_FIELDS and header["alg"] in ALGORITHMS and header["typ"] == kind


def _subject(issuer: str, name: str) -> str:
    """A name for a subject that says nothing about it to a reader of the store."""
    return hashlib.sha256(f"{len(issuer)} {issuer} {name}".encode()).hexdigest()
