"""An event loop whose time passes only when nothing else can happen: hours take no time, and nothing is ever late."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec

P = ParamSpec("P")


class VirtualLoop(asyncio.SelectorEventLoop):
    """Where a real loop would sleep until the next timer, this one sets its clock to it."""

    def __init__(self) -> None:
        self.now_ns = 0
        super().__init__(_Skipping(self))

    def time(self) -> float:
        return self.now_ns / 1e9


class _Skipping(selectors.DefaultSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise AssertionError("everybody waits and no timer is set")
        if not ready and timeout is not None:
            self._loop.now_ns += round(max(0, timeout) * 1e9)
        return ready


def in_virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Runs a test on a loop of virtual time; what it leaves running is cancelled."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        loop = VirtualLoop()
        try:
            loop.run_until_complete(test(*args, **kwargs))
        finally:
            loop.run_until_complete(_cancel_all(asyncio.all_tasks(loop)))
            loop.close()

    return run


async def _cancel_all(tasks: set[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def virtual_now_ns() -> int:
    """Nanoseconds since the running test began."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop.now_ns


async def settle() -> None:
    """Let everything happen that needs no time to pass."""
    for _ in range(50):
        await asyncio.sleep(0)
