"""The thread that takes everything waiting as one batch."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence

import pytest

from service.ports import StoreUnavailableError
from service.store.batches import MAX_BATCH, MAX_WAITING, BatchThread, Outcome


class Work:
    """Notes its batches; it can be held up, so that others must wait."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.go = threading.Event()
        self.go.set()
        self.outcomes: Sequence[Outcome] | Exception | None = None

    def __call__(self, jobs: Sequence[int]) -> Sequence[Outcome]:
        self.go.wait()
        self.batches.append(list(jobs))
        if isinstance(self.outcomes, Exception):
            raise self.outcomes
        return [None] * len(jobs) if self.outcomes is None else self.outcomes


@pytest.fixture
def work() -> Work:
    """Work that goes well unless it is told otherwise."""
    return Work()


@pytest.fixture
async def thread(work: Work) -> AsyncIterator[BatchThread[int]]:
    """The thread under test."""
    thread = BatchThread("test", work)
    yield thread
    work.go.set()
    await thread.close()


async def test_what_waits_goes_together_and_in_order(work: Work, thread: BatchThread[int]) -> None:
    """At most so many at once; nothing is lost, also when it is closed at once."""
    work.go.clear()
    first = thread.submit(-1)
    waiting = [thread.submit(number) for number in range(MAX_BATCH + 10)]
    work.go.set()
    await thread.close()
    assert await asyncio.gather(first, *waiting) == [None] * (MAX_BATCH + 11)
    assert [job for batch in work.batches for job in batch] == [-1, *range(MAX_BATCH + 10)]
    assert len(work.batches) <= 3
    assert max(map(len, work.batches)) <= MAX_BATCH


async def test_each_has_its_own_outcome(work: Work, thread: BatchThread[int]) -> None:
    """Also when it shares the batch."""
    work.go.clear()
    blocker = thread.submit(0)
    work.go.set()
    await blocker
    work.outcomes = [KeyError("one")]
    with pytest.raises(KeyError):
        await thread.submit(1)
    work.outcomes = None
    await thread.submit(2)


@pytest.mark.parametrize("mistake", [RuntimeError("a mistake"), []])
async def test_a_mistake_in_the_work_reaches_whoever_waits(
    work: Work, thread: BatchThread[int], mistake: Sequence[Outcome] | Exception
) -> None:
    """The thread goes on."""
    work.outcomes = mistake
    with pytest.raises((RuntimeError, AssertionError)):
        await thread.submit(1)
    work.outcomes = None
    await thread.submit(2)


async def test_too_many_are_turned_away(work: Work, thread: BatchThread[int]) -> None:
    """A stalled disk must not fill the memory; there is room again afterwards."""
    work.go.clear()
    waiting = [thread.submit(number) for number in range(MAX_WAITING)]
    with pytest.raises(StoreUnavailableError, match="too much waits"):
        thread.submit(-1)
    work.go.set()
    await asyncio.gather(*waiting)
    await thread.submit(-1)


def test_a_loop_that_is_gone_ends_the_thread(work: Work) -> None:
    """Nobody waits any more."""

    async def leave() -> threading.Thread:
        work.go.clear()
        thread = BatchThread("test", work)
        thread.submit(1)
        return thread._thread

    thread = asyncio.run(leave())
    work.go.set()
    thread.join(timeout=10)
    assert not thread.is_alive()
