"""Waiting for what nothing announces."""

import asyncio
from collections.abc import Callable

PATIENCE_SECONDS = 30.0
LOOK_SECONDS = 0.005


async def until(is_so: Callable[[], bool]) -> None:
    """Wait until it is so; fail when that takes too long."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not is_so():  # noqa: ASYNC110  there is no event to wait for
            await asyncio.sleep(LOOK_SECONDS)
