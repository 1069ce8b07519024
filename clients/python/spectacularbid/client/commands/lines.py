"""Lines from a person or a script, without holding up the event loop."""

from __future__ import annotations

import asyncio
import codecs
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

CHUNK_BYTES = 4096


class Lines(Protocol):
    """A source of lines. `is_interactive` says that a person may type at any time."""

    is_interactive: bool

    async def next(self) -> str | None:
        """The next line without its end; None when there are no more."""


class DescriptorLines:
    """Reads a file descriptor in a thread of its own, one line for each call of `next`.

    It reads the descriptor itself: a thread that waits inside `input` would crash the interpreter's exit.
    """

    def __init__(self, descriptor: int) -> None:
        self.is_interactive = os.isatty(descriptor)
        self._descriptor = descriptor
        self._wanted = threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._line: asyncio.Future[str | None] | None = None

    async def next(self) -> str | None:
        """The next line without its end; None when there are no more. A cancelled call loses nothing."""
        if self._line is None:
            self._line = asyncio.get_running_loop().create_future()
            self._ask_thread()
        line = await asyncio.shield(self._line)
        self._line = None
        return line

    def _ask_thread(self) -> None:
        if self._thread is None:
            loop = asyncio.get_running_loop()

            def deliver(line: str | None) -> None:
                with suppress(RuntimeError):  # the loop is closed: nobody waits any longer
                    loop.call_soon_threadsafe(self._deliver, line)

            self._thread = threading.Thread(target=self._read, args=(deliver,), name="lines", daemon=True)
            self._thread.start()
        self._wanted.release()

    def _deliver(self, line: str | None) -> None:
        if self._line is not None and not self._line.done():
            self._line.set_result(line)

    def _read(self, deliver: Callable[[str | None], None]) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        text, at_end = "", False
        while True:
            self._wanted.acquire()
            while "\n" not in text and not at_end:
                chunk = self._chunk()
                text += decoder.decode(chunk)
                at_end = not chunk
            line, newline, text = text.partition("\n")
            deliver(line.removesuffix("\r") if line or newline else None)

    def _chunk(self) -> bytes:
        """The next bytes; none at the end, or when the descriptor is closed."""
        try:
            return os.read(self._descriptor, CHUNK_BYTES)
        except OSError:
            return b""
