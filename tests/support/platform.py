"""A platform for tests: keys, a JWKS, signed tokens, certificates. Everything is made up on the spot."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import time
from dataclasses import dataclass, field
from pathlib import Path

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import NameOID

from service.settings import Settings
from tests.support.server import UNHURRIED

ISSUER, AUDIENCE, TYPE = "https://platform.example", "spectacular-bid", "at+jwt"
PrivateKey = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


@dataclass
class Platform:
    """Signs tokens with a P-256 key (`es`) and an Ed25519 key (`ed`)."""

    es: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    ed: ed25519.Ed25519PrivateKey = field(default_factory=ed25519.Ed25519PrivateKey.generate)

    @property
    def jwks(self) -> str:
        """Its public keys."""
        es = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(self.es.public_key()))
        ed = json.loads(jwt.algorithms.OKPAlgorithm.to_jwk(self.ed.public_key()))
        return json.dumps({"keys": [es | {"kid": "es"}, ed | {"kid": "ed"}]})

    def token(
        self,
        *,
        header: dict[str, object] | None = None,
        key: PrivateKey | str | None = None,
        algorithm: str = "ES256",
        **claims: object,
    ) -> str:
        """A good token, but for what is given. A claim or header field that is None is left out."""
        usual = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": int(time.time()) + 60, "scope": "match:create"}
        payload = {name: value for name, value in (usual | claims).items() if value is not None}
        fields = {"typ": TYPE, "kid": "ed" if algorithm == "EdDSA" else "es"} | (header or {})
        if fields["kid"] is None:  # an empty typ is left out by the library
            del fields["kid"]
        signing = key if key is not None else (self.ed if algorithm == "EdDSA" else self.es)
        return jwt.encode(payload, signing, algorithm, headers=fields)

    def settings(self, folder: Path) -> Settings:
        """Settings of a service that trusts it, without TLS."""
        file = folder / "jwks.json"
        file.write_text(self.jwks, encoding="utf-8")
        chosen = {"auth": "platform", "jwks_file": file, "jwt_issuer": ISSUER, "jwt_audience": AUDIENCE}
        return UNHURRIED.model_copy(update=chosen)


def bearer(token: str) -> tuple[tuple[str, str], ...]:
    """The metadata of a call with this token."""
    return (("authorization", f"Bearer {token}"),)


@dataclass(frozen=True)
class Certificate:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes

    def write(self, folder: Path, name: str) -> tuple[Path, Path]:
        """Both as files."""
        certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
        certificate.write_bytes(self.certificate)
        key.write_bytes(self.key)
        return certificate, key


class Authority:
    """A certificate authority."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
        builder = _builder(self._name, self._name, self._key)
        self.pem = _pem(
            builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True).sign(
                self._key, hashes.SHA256()
            )
        )

    def issue(self, name: str) -> Certificate:
        """A certificate for this DNS name, and for this machine."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.DNSName(name), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = _builder(subject, self._name, key).add_extension(names, critical=False)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return Certificate(_pem(builder.sign(self._key, hashes.SHA256())), private)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
