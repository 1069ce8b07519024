"""The adapters behind the operator's commands: the `Tools` of `service.admin`."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from service.admin import RefusedError, UnreachableError
from service.ports import Records
from service.rpc import local_calls
from service.rpc.public_json import public_json
from service.settings import Settings
from service.store import postgres_records, postgres_reseal, sqlite, sqlite_records

__all__ = ["abort_match", "back_up", "drain", "health_of", "public_json", "reseal", "stored_records"]


def stored_records(settings: Settings) -> AbstractAsyncContextManager[Records]:
    """What a service has stored, read from outside. Raises StoreOpenError."""
    if settings.database_url is not None:
        return postgres_records.opened(settings.database_url, key_path=_key_path(settings))
    return sqlite_records.opened(settings.database, key_file=settings.sealing_key_file)


def back_up(settings: Settings, to: Path) -> None:
    """Copy the store as it is now into a new file. Raises StoreOpenError or RefusedError."""
    if settings.database_url is not None:
        raise RefusedError("PostgreSQL is backed up with pg_dump or another tool of its own")
    sqlite_records.back_up(settings.database, to)


async def reseal(settings: Settings) -> int:
    """Seal what is stored with the first of the keys, while no service runs; how many rows. Raises StoreOpenError."""
    if settings.database_url is not None:
        return await postgres_reseal.reseal(settings.database_url, key_path=_key_path(settings))
    return sqlite.reseal(settings.database, key_file=settings.sealing_key_file)


async def health_of(settings: Settings, service: str) -> str:
    """The status of one of the services on this machine. Raises UnreachableError or RefusedError."""
    port = settings.plain_health_port or settings.port
    if not port:
        raise UnreachableError("the health port is unknown: a port of 0 picks a free one")
    return await local_calls.health_of(f"{settings.own_address}:{port}", service)


async def abort_match(settings: Settings, match_id: str, reason: str) -> int:
    """Have the running service end a match; the version made. Raises UnreachableError or RefusedError."""
    return await local_calls.abort_match(_admin_path(settings), match_id, reason)


async def drain(settings: Settings) -> float:
    """Have the running service drain; the seconds it serves on. Raises UnreachableError or RefusedError."""
    return await local_calls.drain(_admin_path(settings))


def _key_path(settings: Settings) -> Path:
    assert settings.sealing_key_file is not None, "checked with the settings where matches are kept in PostgreSQL"
    return settings.sealing_key_file


def _admin_path(settings: Settings) -> Path:
    if settings.admin_path is None:
        raise UnreachableError("with PostgreSQL name the socket of the service here: SPECBID_ADMIN_SOCKET")
    return settings.admin_path
