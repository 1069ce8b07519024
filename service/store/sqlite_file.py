"""The SQLite file: held by one process, brought up to date, opened with durable settings."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from importlib.resources import files
from pathlib import Path
from typing import Final

from service.ports import StoreOpenError

OLDEST_SQLITE: Final = (3, 38, 0)
"""The first with everything used here: STRICT tables, unixepoch()."""


CHECKPOINT_PAGES: Final = 4_000
"""So many pages (16 MB) are in the log before they are copied into the database. With SQLite's 1,000 every thirtieth
commit waits for that, and what every commit writes is copied four times as often."""
CACHE_KIB: Final = 8_000
"""Holds the pages that 200 matches under way write to; SQLite's 2,000 do not, so that they are read again and again."""


class SqliteFile:
    """A database file that this process alone serves, in the current schema. Opening it raises StoreOpenError."""

    def __init__(self, path: Path, *, busy_timeout_ms: int) -> None:
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            oldest = ".".join(map(str, OLDEST_SQLITE))
            raise StoreOpenError(f"SQLite {oldest} or newer is needed; this Python has {sqlite3.sqlite_version}.")
        self._path = path.resolve()
        self._busy_timeout_ms = busy_timeout_ms
        self._lock = _locked(self._path)
        try:
            self._prepare()
        except BaseException:
            self.release()
            raise

    def connect(self, *, read_only: bool) -> sqlite3.Connection:
        """A connection for one thread at a time. What it commits survives a crash of the machine."""
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        try:
            for pragma in (
                f"busy_timeout = {self._busy_timeout_ms}",
                "journal_mode = WAL",
                "synchronous = FULL",
                "fullfsync = ON",  # without it macOS leaves a commit in the drive's cache
                f"wal_autocheckpoint = {CHECKPOINT_PAGES}",
                f"cache_size = -{CACHE_KIB}",  # negative: not pages, but KiB
                "foreign_keys = ON",
                f"query_only = {int(read_only)}",
            ):
                connection.execute(f"PRAGMA {pragma}")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def release(self) -> None:
        """Let another process have the file; every connection must be closed."""
        os.close(self._lock)

    def _prepare(self) -> None:
        os.close(_private(self._path))
        try:
            connection = self.connect(read_only=False)
            try:
                _migrate(connection, self._path)
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise StoreOpenError(f"{self._path} cannot be used as the store: {error}.") from error


def current_schema() -> int:
    """The schema that this version of the service writes."""
    return len(_migrations())


def key_path_of(path: Path, key_file: Path | None) -> Path:
    """Where the sealing key of a database is: beside it, unless another file is named."""
    return key_file or path.with_name(f"{path.name}.key")


def _locked(path: Path) -> int:
    """A lock beside the file rather than on it: closing any descriptor of the file would drop SQLite's own locks."""
    lock = _private(path.with_name(f"{path.name}.lock"))
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        if isinstance(error, BlockingIOError):
            raise StoreOpenError(f"Another process serves {path}; a SQLite file can have only one.") from error
        raise StoreOpenError(f"{path} cannot be locked: {error.strerror}.") from error
    return lock


def _private(path: Path) -> int:
    """The file opened, made for this user only if it was not there: hands and names are in it."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreOpenError(f"{path} cannot be opened: {error.strerror}.") from error


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    scripts = _migrations()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(scripts):
        raise StoreOpenError(
            f"{path} has schema {version}, but this version of the service knows only {len(scripts)}. "
            "Use the version that wrote it, or a newer one."
        )
    for number, script in enumerate(scripts[version:], start=version + 1):
        connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;")


def _migrations() -> list[str]:
    """The scripts that lead from an empty file to the current schema; the first makes schema 1."""
    folder = files("service.store") / "migrations" / "sqlite"
    scripts = sorted((entry.name, entry.read_text(encoding="utf-8")) for entry in folder.iterdir())
    assert [int(name[:4]) for name, _ in scripts] == list(range(1, len(scripts) + 1)), "migrations have no gap"
    return [script for _, script in scripts]
