"""What the commands share: saying lines, ending with a status, finding a server."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TextIO

import grpc

from spectacularbid.client.errors import ClientError
from spectacularbid.client.service import DEFAULT_TARGET, Service, connect
from spectacularbid.client.settings import Settings

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_INTERRUPTED = 130
BLANK_LINES = 100
CLEAR_SCREEN_AND_SCROLLBACK = "\x1b[H\x1b[2J\x1b[3J"


class CommandFailedError(Exception):
    """An expected failure; the text is one sentence for the person at the terminal."""


class Terminal:
    """Where lines are said. Each call is flushed, so that pipes and screen readers have it at once."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def say(self, *lines: str) -> None:
        """Write whole lines."""
        self._out.write("".join(f"{line}\n" for line in lines))
        self._out.flush()

    def clear(self) -> None:
        """Make sure that nothing said so far can be seen."""
        self._out.write(CLEAR_SCREEN_AND_SCROLLBACK if self._out.isatty() else "\n" * BLANK_LINES)
        self._out.flush()


def run_to_exit_status(command: Callable[[Terminal], Coroutine[None, None, int]]) -> int:
    """Run a command. Expected failures become one sentence on standard error and a status, never a traceback."""
    try:
        return asyncio.run(command(Terminal(sys.stdout)))
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # whoever read our output has enough
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_DONE
    except (CommandFailedError, ClientError) as error:
        sys.stderr.write(f"{sentence(error)}\n")
        return EXIT_FAILED


def sentence(error: Exception) -> str:
    """What went wrong, for people."""
    if isinstance(error, ClientError) and error.reason:
        return f"The service says: {error.message} ({error.reason})."
    if isinstance(error, ClientError):
        return f"The service cannot be reached any longer: {error.message}."
    return str(error)


def open_service(
    server: str,
    *,
    tls: bool = False,
    ca: Path | None = None,
    player: Path | None = None,
    settings: Settings | None = None,
) -> Service:
    """A connection to a server, encrypted with the system's authorities when `tls`, or with those in the file `ca`.

    `player` is a folder with what the platform knows a player by: `tls.crt` and `tls.key`, `token`, or all three.
    Raises CommandFailedError when a file cannot be read.
    """
    settings = settings or Settings()
    try:
        roots = None if ca is None else ca.read_bytes()
        key, certificate, token = (None, None, None) if player is None else _credentials(player)
    except OSError as error:
        raise CommandFailedError(f"{error.filename} cannot be read: {error.strerror}.") from error
    if token is not None:
        text = token.decode().strip()
        settings = replace(settings, platform_token=lambda: text)
    is_encrypted = tls or ca is not None
    credentials = grpc.ssl_channel_credentials(roots, key, certificate) if is_encrypted else None
    return connect(server, credentials=credentials, settings=settings)


def _credentials(folder: Path) -> tuple[bytes | None, bytes | None, bytes | None]:
    """Key, certificate and token of a player; only a key and a certificate, or only a token, may be missing."""
    token = folder / "token"
    text = token.read_bytes() if token.exists() else None
    if text is not None and not (folder / "tls.key").exists():
        return None, None, text
    return (folder / "tls.key").read_bytes(), (folder / "tls.crt").read_bytes(), text


async def answers(service: Service) -> bool:
    """Whether a server is there."""
    try:
        await service.probe()
    except ClientError:
        return False
    return True


async def expect_answer(service: Service, server: str) -> None:
    """Raises CommandFailedError when no server is there."""
    if not await answers(service):
        raise no_answer(server)


def no_answer(server: str) -> CommandFailedError:
    """The failure to find a server."""
    start = " Start one with: spectacular-bid serve" if server == DEFAULT_TARGET else ""
    return CommandFailedError(f"No server answers at {server}.{start}")


def dice(seed: int | str | None) -> Random:
    """A source of choices for bots; the same ones for the same seed."""
    return Random(seed)  # noqa: S311 - bots need luck that can be repeated, not secrets
