"""TLS on the gRPC port, with client certificates if asked for: files that are read again when they change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import grpc

from service.logs import get_logger


def secure_door(certificate: Path | None, key: Path | None, client_ca: Path | None) -> grpc.ServerCredentials | None:
    """What a secure port needs; None without a certificate.

    Each new connection sees the files as they are; what cannot be read leaves the last in use.

    With `client_ca` a client without a certificate of these authorities gets no connection. Raises OSError.
    """
    if certificate is None or key is None:
        return None
    files = _Files([certificate, key] if client_ca is None else [certificate, key, client_ca])
    first = files.changed()
    assert first is not None
    credentials: grpc.ServerCredentials = grpc.dynamic_ssl_server_credentials(
        first,
        files.changed_or_none,  # type: ignore[arg-type]  # None means as before, which the stubs do not know
        require_client_authentication=client_ca is not None,
    )
    return credentials


class _Files:
    """Certificate, key and maybe authorities."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._stamps: list[tuple[int, int, int]] = []

    def changed(self) -> grpc.ServerCertificateConfiguration | None:
        """What the files hold, None when that is what they held before."""
        stamps = [_stamp(path) for path in self._paths]
        if stamps == self._stamps:
            return None
        certificate, key, *authorities = (path.read_bytes() for path in self._paths)
        self._stamps = stamps
        roots = authorities[0] if authorities else None
        return grpc.ssl_server_certificate_configuration([(key, certificate)], root_certificates=roots)

    def changed_or_none(self) -> grpc.ServerCertificateConfiguration | None:
        """The same, None also when they cannot be read. Called by a thread of grpc for each handshake."""
        try:
            return self.changed()
        except OSError:
            get_logger().warning("certificate_not_read")
            return None


def _stamp(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino
