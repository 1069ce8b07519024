"""The one line of time: the boot clock, anchored to the wall once a boot."""

import time

import pytest

from service.system import time as system_time
from service.system.time import Anchor, anchor, boot_id, service_time

BOOT_NS = 50_000
YEAR_NS = 365 * 86_400 * 1_000_000_000


def boot_clock_ns() -> int:
    return time.clock_gettime_ns(system_time._BOOT_CLOCK)


def set_clocks(monkeypatch: pytest.MonkeyPatch, *, wall_ns: int, boot_ns: int = BOOT_NS, boot: str = "this") -> None:
    """The operating system's clocks and boot id."""
    monkeypatch.setattr(system_time, "boot_id", lambda: boot)
    monkeypatch.setattr(time, "time_ns", lambda: wall_ns)
    monkeypatch.setattr(time, "clock_gettime_ns", lambda _: boot_ns)


def test_the_first_start_takes_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is stored yet."""
    set_clocks(monkeypatch, wall_ns=YEAR_NS)
    assert anchor(None, not_before_ns=0) == Anchor("this", YEAR_NS - BOOT_NS)


@pytest.mark.parametrize("wall_ns", [0, YEAR_NS, 60 * YEAR_NS])
def test_within_a_boot_a_restart_keeps_the_anchor_whatever_the_wall_clock_says(
    monkeypatch: pytest.MonkeyPatch, wall_ns: int
) -> None:
    """Fault 77: deadlines are exact across the restart and across a step of the clock."""
    set_clocks(monkeypatch, wall_ns=wall_ns)
    stored = Anchor("this", 12 * YEAR_NS)
    assert anchor(stored.to_text(), not_before_ns=99 * YEAR_NS) == stored


def test_another_boot_is_anchored_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The boot clock began again at zero."""
    set_clocks(monkeypatch, wall_ns=YEAR_NS)
    assert anchor(Anchor("earlier", 5).to_text(), not_before_ns=0) == Anchor("this", YEAR_NS - BOOT_NS)


def test_without_a_boot_id_every_start_is_another_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two empty ids are not the same boot."""
    set_clocks(monkeypatch, wall_ns=YEAR_NS, boot="")
    assert anchor(Anchor("", 5).to_text(), not_before_ns=0) == Anchor("", YEAR_NS - BOOT_NS)


def test_a_new_anchor_is_never_before_what_was_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wall clock that was set back must not repeat instants that are in the logs."""
    set_clocks(monkeypatch, wall_ns=YEAR_NS)
    anchored = anchor(Anchor("earlier", 5).to_text(), not_before_ns=2 * YEAR_NS)
    assert service_time(anchored)() == 2 * YEAR_NS


def test_service_time_runs_with_the_boot_clock() -> None:
    """At its rate, from the anchor on."""
    now_ns = service_time(Anchor("", 1_000 * YEAR_NS))
    before_ns, told_ns, after_ns = boot_clock_ns(), now_ns(), boot_clock_ns()
    assert before_ns <= told_ns - 1_000 * YEAR_NS <= after_ns


def test_service_time_is_the_wall_clock_at_first() -> None:
    """To a second, on a machine whose clock is not being set right now."""
    told_ns = service_time(anchor(None, not_before_ns=0))()
    assert abs(told_ns - time.time_ns()) < 1_000_000_000


def test_the_anchor_survives_as_text() -> None:
    """It is stored beside the matches."""
    anchored = Anchor(boot_id(), -5)
    assert Anchor.from_text(anchored.to_text()) == anchored
