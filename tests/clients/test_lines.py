"""Typed lines from a file descriptor."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress

import pytest

from spectacularbid.client.commands.lines import DescriptorLines


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """The reading and the writing end."""
    reading, writing = os.pipe()
    yield reading, writing
    for descriptor in (reading, writing):
        with suppress(OSError):  # the test may have closed it
            os.close(descriptor)


async def test_lines_come_one_by_one_then_the_end(pipe: tuple[int, int]) -> None:
    """Whatever the chunks, line ends and encodings; a last line needs no end."""
    reading, writing = pipe
    os.write(writing, "one\r\ntwö\n\nlast".encode())
    os.close(writing)
    lines = DescriptorLines(reading)
    assert [await lines.next() for _ in range(6)] == ["one", "twö", "", "last", None, None]
    assert not lines.is_interactive


async def test_waiting_for_a_line_holds_nothing_up(pipe: tuple[int, int]) -> None:
    """The loop goes on, and a wait that was given up loses no line."""
    reading, writing = pipe
    lines = DescriptorLines(reading)
    waiting = asyncio.ensure_future(lines.next())
    await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()
    os.write(writing, b"late\n")
    assert await lines.next() == "late"


async def test_a_closed_descriptor_has_no_lines(pipe: tuple[int, int]) -> None:
    """As when the shell closed standard input."""
    reading, _ = pipe
    os.close(reading)
    assert await DescriptorLines(reading).next() is None
