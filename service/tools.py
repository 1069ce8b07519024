"""The adapters behind the operator's commands: the `Tools` of `service.admin`."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from service.admin import UnreachableError
from service.ports import Records, StoreOpenError
from service.rpc import local_calls
from service.rpc.public_json import public_json
from service.settings import Settings
from service.store import sqlite, sqlite_records

__all__ = ["abort_match", "back_up", "drain", "health_of", "public_json", "reseal", "stored_records"]


def stored_records(settings: Settings) -> AbstractAsyncContextManager[Records]:
    """What a service has stored, read from outside. Raises StoreOpenError."""
    return sqlite_records.opened(_file_of(settings), key_file=settings.sealing_key_file)


def back_up(settings: Settings, to: Path) -> None:
    """Copy the store as it is now into a new file. Raises StoreOpenError."""
    sqlite_records.back_up(_file_of(settings), to)


def reseal(settings: Settings) -> int:
    """Seal what is stored with the first of the keys, while no service runs; how many rows. Raises StoreOpenError."""
    return sqlite.reseal(_file_of(settings), key_file=settings.sealing_key_file)


def _file_of(settings: Settings) -> Path:
    """The SQLite file of the service. Raises StoreOpenError where it keeps its matches in PostgreSQL."""
    if settings.database_url is not None:
        raise StoreOpenError("this command reads a SQLite file, and matches are kept in PostgreSQL")
    return settings.database


async def health_of(settings: Settings, service: str) -> str:
    """The status of one of the services on this machine. Raises UnreachableError or RefusedError."""
    port = settings.plain_health_port or settings.port
    if not port:
        raise UnreachableError("the health port is unknown: a port of 0 picks a free one")
    return await local_calls.health_of(f"{settings.own_address}:{port}", service)


async def abort_match(settings: Settings, match_id: str, reason: str) -> int:
    """Have the running service end a match; the version made. Raises UnreachableError or RefusedError."""
    return await local_calls.abort_match(settings.admin_path, match_id, reason)


async def drain(settings: Settings) -> float:
    """Have the running service drain; the seconds it serves on. Raises UnreachableError or RefusedError."""
    return await local_calls.drain(settings.admin_path)
