"""The store's clock as this machine reads it: within the bound that it tells, never going back, and steps followed."""

import pytest

from service.ports import StoreUnavailableError
from service.system.store_time import SAMPLES, StoreTime

MS_NS = 1_000_000
SECOND_NS = 1_000 * MS_NS
NOON_NS = 1_790_000_000 * SECOND_NS


class Machine:
    """A boot clock, and a store's clock that is asked over a line with delays there and back."""

    def __init__(self) -> None:
        self.boot_ns = 50 * SECOND_NS
        self.store_ahead_ns = NOON_NS
        self.there_ns = self.back_ns = 0
        self.is_down = False
        self.time = StoreTime(self.ask, lambda: self.boot_ns)

    async def ask(self) -> int:
        self.boot_ns += self.there_ns
        if self.is_down:
            raise StoreUnavailableError
        answer_ns = self.store_ns()
        self.boot_ns += self.back_ns
        return answer_ns

    def store_ns(self) -> int:
        """What a perfect clock at the store shows."""
        return self.boot_ns + self.store_ahead_ns

    def off_ns(self) -> int:
        """How wrong the service's time is now."""
        return abs(self.time.now_ns() - self.store_ns())


@pytest.fixture
def machine() -> Machine:
    """A machine whose line has no delay."""
    return Machine()


@pytest.mark.parametrize(("there_ms", "back_ms"), [(0, 0), (1, 1), (0, 40), (40, 0), (7, 3)])
async def test_the_error_is_within_its_bound_whichever_way_the_line_is_slow(
    machine: Machine, there_ms: int, back_ms: int
) -> None:
    """Half the time between question and answer, and one millisecond."""
    machine.there_ns, machine.back_ns = there_ms * MS_NS, back_ms * MS_NS
    await machine.time.sample()
    assert machine.off_ns() <= machine.time.error_bound_ns()
    assert machine.time.error_bound_ns() == (there_ms + back_ms) * MS_NS // 2 + MS_NS


@pytest.mark.parametrize(("delays_ms", "questions"), [([200, 2], 2), ([2, 2], 2), ([200, 90, 60, 40], 4)])
async def test_the_time_is_asked_for_until_it_is_known_well_enough(
    machine: Machine, delays_ms: list[int], questions: int
) -> None:
    """Twice at least, as the first question may open the connection too."""
    asked: list[int] = []
    ask = machine.ask

    async def answer() -> int:
        machine.back_ns = delays_ms[len(asked)] * MS_NS
        asked.append(machine.boot_ns)
        return await ask()

    machine.time = StoreTime(answer, lambda: machine.boot_ns)
    assert await machine.time.make_sure(25 * MS_NS)
    assert len(asked) == questions
    assert machine.time.error_bound_ns() <= 25 * MS_NS


async def test_a_store_that_always_answers_late_leaves_the_time_unsure(machine: Machine) -> None:
    """Which whoever asked must say, and ask again later."""
    machine.back_ns = 60 * MS_NS
    assert not await machine.time.make_sure(25 * MS_NS)
    assert machine.boot_ns == 50 * SECOND_NS + SAMPLES * machine.back_ns


async def test_the_bound_grows_while_the_store_does_not_answer(machine: Machine) -> None:
    """By 200 millionths of the time that passes: clocks drift."""
    await machine.time.sample()
    machine.is_down = True
    machine.boot_ns += 100 * SECOND_NS
    with pytest.raises(StoreUnavailableError):
        await machine.time.sample()
    assert machine.time.error_bound_ns() == MS_NS + 20 * MS_NS


async def test_a_clock_that_waits_for_a_better_sample_to_catch_up_says_how_far_it_is_off(machine: Machine) -> None:
    """It does not go back, so it is wrong for a while, and known to be."""
    machine.there_ns = 800 * MS_NS
    await machine.time.sample()
    machine.time.now_ns()
    machine.there_ns = 0
    for _ in range(9):
        await machine.time.sample()
        assert machine.off_ns() <= machine.time.error_bound_ns()
        machine.boot_ns += 50 * MS_NS
    assert machine.time.error_bound_ns() < 2 * MS_NS


async def test_the_best_of_the_last_samples_counts(machine: Machine) -> None:
    """A slow answer does not spoil a quick one, which is forgotten in its time."""
    await machine.time.sample()
    machine.back_ns = 30 * MS_NS
    for _ in range(SAMPLES - 1):
        machine.boot_ns += SECOND_NS
        await machine.time.sample()
        assert machine.time.error_bound_ns() < 4 * MS_NS
        assert machine.off_ns() <= machine.time.error_bound_ns()
    machine.boot_ns += SECOND_NS
    await machine.time.sample()
    assert machine.time.error_bound_ns() >= 16 * MS_NS


async def test_time_does_not_go_back_when_a_better_sample_comes(machine: Machine) -> None:
    """It waits until that has caught up."""
    machine.there_ns = 40 * MS_NS
    await machine.time.sample()
    before_ns = machine.time.now_ns()
    assert before_ns == machine.store_ns() + 20 * MS_NS
    machine.there_ns, machine.back_ns = 0, 40 * MS_NS
    await machine.time.sample()
    machine.back_ns = 0
    shown = [before_ns, machine.time.now_ns()]
    for _ in range(5):
        machine.boot_ns += MS_NS
        await machine.time.sample()
        shown.append(machine.time.now_ns())
    assert shown == sorted(shown)
    assert machine.off_ns() <= machine.time.error_bound_ns() + 20 * MS_NS


@pytest.mark.parametrize("step_ns", [3600 * SECOND_NS, -3600 * SECOND_NS, 60 * MS_NS])
async def test_a_step_of_the_stores_clock_is_followed(machine: Machine, step_ns: int) -> None:
    """All replicas see it; that it was a step is for the timing guard to notice."""
    for _ in range(SAMPLES):
        await machine.time.sample()
    machine.store_ahead_ns += step_ns
    await machine.time.sample()
    assert machine.off_ns() <= machine.time.error_bound_ns()
