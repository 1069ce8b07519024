"""Programs that tests run beside the service: started until they answer, stopped as asked, and never left behind."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

START_SECONDS = 20.0
STOP_SECONDS = 20.0
ASKING_SECONDS = 0.02
"""How often a program that is starting is asked whether it answers."""


async def answers(port: int) -> bool:
    """Whether somebody listens on this port."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return True


class Program:
    """A program with a log file, which may be stopped, killed, frozen, and started again."""

    def __init__(self, command: Sequence[str], log: Path, is_ready: Callable[[], Awaitable[bool]]) -> None:
        self._command = command
        self._log = log
        self._is_ready = is_ready
        self._process: asyncio.subprocess.Process | None = None

    @property
    def process(self) -> asyncio.subprocess.Process:
        """What runs now, or ran last."""
        assert self._process is not None, "it has not been started"
        return self._process

    @property
    def is_running(self) -> bool:
        """Whether it has been started and has not ended."""
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Start it; when this returns it answers. A Ctrl-C in the terminal does not reach it."""
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        async with asyncio.timeout(START_SECONDS):
            while not await self._is_ready():
                assert self.is_running, self._log.read_text(encoding="utf-8")
                await asyncio.sleep(ASKING_SECONDS)

    async def stop(self) -> int:
        """Ask it to stop, if it runs; its exit status."""
        if self.is_running:
            self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(STOP_SECONDS):
            return await self.process.wait()

    async def kill(self) -> None:
        """Stop it dead."""
        if self.is_running:
            self.process.kill()
        await self.process.wait()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Starts it; leaving stops it, by force if need be."""
        try:
            await self.start()
            yield
        finally:
            if self._process is not None:
                with suppress(TimeoutError):
                    await self.stop()
                await self.kill()


@asynccontextmanager
async def frozen(process: asyncio.subprocess.Process) -> AsyncIterator[None]:
    """SIGSTOP now, SIGCONT on leaving."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)
