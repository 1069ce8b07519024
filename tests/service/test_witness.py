"""What Envoy's stamp may do to the service's own, and what it may not (docs/decisions/0014)."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.clock import SECOND_NS, Arrival
from service.metrics import Metrics
from service.metrics.clock import WitnessUse
from service.rpc.auth import ARRIVAL_HEADER
from service.rpc.witness import (
    COMPARE_EVERY_NS,
    COMPARISON_LIFE_NS,
    DRIFT_PPM,
    FEWEST_COMPARISONS,
    NARROW_NS,
    PROXIES,
    REACH_NS,
    Witness,
    stamp_in,
)
from service.timing_guard import STEP_NS
from tests.support.server import sample_of

MS_NS = 1_000_000
NOON_NS = 1_767_268_800 * SECOND_NS
PROXY, OTHER = "ipv4:10.0.0.7:41234", "ipv4:10.0.0.8:41234"
NARROW, WIDE = NARROW_NS // 2, SECOND_NS

READABLE = [
    ("1700000000.123456789 4321", 1_700_000_000_127_777_789),
    ("0.000000000 0", 0),
    ("1.000000001 999999999999", 1_000_000_999_999_001),
]


@pytest.mark.parametrize(("text", "instant_ns"), READABLE)
def test_a_stamp_is_when_the_headers_came_and_what_passed_until_the_last_byte(text: str, instant_ns: int) -> None:
    assert stamp_in([("authorization", "Bearer x"), (ARRIVAL_HEADER, text)]) == instant_ns


UNREADABLE = [
    "",
    "1700000000.123456789",
    "1700000000.123456789 ",
    "1700000000.123456789 -",
    "1700000000.123456789 -5",
    "-1700000000.123456789 5",
    "1700000000.12345678 5",
    "1700000000 5",
    "1700000000.123456789  5",
    "1700000000.123456789 5 6",
    "1700000000.123456789 5\n",
    "17000000000.123456789 5",
    "1700000000.123456789 1234567890123",
    "\N{ARABIC-INDIC DIGIT ONE}.123456789 5",
    "1e9 5",
    "soon",
]


@pytest.mark.parametrize("text", UNREADABLE)
def test_a_malformed_stamp_is_none(text: str) -> None:
    assert stamp_in([(ARRIVAL_HEADER, text)]) is None


def test_no_stamp_and_two_are_none_either() -> None:
    """Nor is one of bytes."""
    good = (ARRIVAL_HEADER, READABLE[0][0])
    assert stamp_in([]) is None
    assert stamp_in([("x-timestamp", good[1])]) is None
    assert stamp_in([good, good]) is None
    assert stamp_in([(ARRIVAL_HEADER, b"1700000000.123456789 4321")]) is None


class Scene:
    """A witness who is told of commands, some of which the service itself knows well."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        self.monotonic_ns = 0
        self.apart_ns = NOON_NS
        """What service time is ahead of this machine's monotonic clock by."""
        self.witness = Witness(self.metrics.clock, lambda: self.monotonic_ns)

    def comes(self, own: Arrival, stamp_ns: int, peer: str = PROXY) -> Arrival:
        """A command's stamp, as the witness leaves it at its latest instant."""
        self.monotonic_ns = own.latest_ns - self.apart_ns
        seconds, nanoseconds = divmod(stamp_ns, SECOND_NS)
        return self.witness.narrowed(own, [(ARRIVAL_HEADER, f"{seconds}.{nanoseconds:09d} 0")], peer)

    def looks(self, *, ahead_ns: int = 0, times: int = FEWEST_COMPARISONS, peer: str = PROXY) -> None:
        """Commands that the service knows well, the last one at noon, by a proxy whose clock is ahead."""
        for number in reversed(range(times)):
            at_ns = NOON_NS - number * COMPARE_EVERY_NS
            own = Arrival(at_ns - NARROW, at_ns)
            assert self.comes(own, at_ns + ahead_ns, peer) == own

    def count(self, testimony: WitnessUse) -> float:
        """How often that was what became of a stamp."""
        name = "specbid_arrival_testimonies_total"
        return sample_of(self.metrics.registry, name, outcome=testimony.value)


OWN = Arrival(NOON_NS + SECOND_NS, NOON_NS + SECOND_NS + WIDE)
MIDDLE_NS = NOON_NS + SECOND_NS + WIDE // 2
SPREAD_NS = 2 * MS_NS
"""More than the clocks may have parted in this scene."""


@pytest.mark.parametrize("ahead_ns", [0, 17, -3 * MS_NS, 37 * SECOND_NS, -1800 * SECOND_NS])
def test_a_wide_stamp_is_narrowed_to_what_the_witness_saw_whatever_its_clock_shows(ahead_ns: int) -> None:
    """By as much as it is known how that stands to the service's; the service's own is kept beside it."""
    scene = Scene()
    scene.looks(ahead_ns=ahead_ns)
    left = scene.comes(OWN, MIDDLE_NS + ahead_ns)
    assert MIDDLE_NS - NARROW - SPREAD_NS <= left.earliest_ns < MIDDLE_NS < left.latest_ns <= MIDDLE_NS + SPREAD_NS
    assert left[2:] == OWN[:2]
    assert scene.count(WitnessUse.NARROWED) == 1
    assert scene.count(WitnessUse.NOT_NEEDED) == FEWEST_COMPARISONS


def test_a_narrow_stamp_stays_as_it_is() -> None:
    """Even if the witness says otherwise."""
    scene = Scene()
    scene.looks()
    own = Arrival(NOON_NS + SECOND_NS, NOON_NS + SECOND_NS + NARROW_NS)
    assert scene.comes(own, NOON_NS) is own
    assert scene.count(WitnessUse.NOT_NEEDED) == FEWEST_COMPARISONS + 1


@pytest.mark.parametrize("beyond_ns", [-WIDE, -MS_NS, MS_NS, WIDE], ids=str)
def test_nothing_outside_the_services_own_is_ever_left(beyond_ns: int) -> None:
    """What was stamped before that was handled already, and others know; what comes after it had not come."""
    scene = Scene()
    scene.looks()
    end_ns = OWN.latest_ns if beyond_ns > 0 else OWN.earliest_ns
    left = scene.comes(OWN, end_ns + beyond_ns)
    assert OWN.earliest_ns <= left.earliest_ns <= left.latest_ns <= OWN.latest_ns


@pytest.mark.parametrize("elsewhere_ns", [-WIDE, WIDE], ids=["before", "after"])
def test_a_stamp_outside_the_services_own_is_not_believed(elsewhere_ns: int) -> None:
    """One of the two is wrong, and the service's own is wide enough to hold the truth."""
    scene = Scene()
    scene.looks()
    assert scene.comes(OWN, MIDDLE_NS + elsewhere_ns) is OWN
    assert scene.count(WitnessUse.OUT_OF_RANGE) == 1


@pytest.mark.parametrize(("back_ns", "is_believed"), [(REACH_NS - 2 * NARROW_NS, True), (REACH_NS, False)])
def test_the_witness_reaches_two_seconds_back(back_ns: int, *, is_believed: bool) -> None:
    """A process that stood longer has failed its players whatever anybody says."""
    scene = Scene()
    scene.looks()
    own = Arrival(NOON_NS, NOON_NS + 3 * REACH_NS)
    left = scene.comes(own, own.latest_ns - back_ns)
    assert (left is not own) is is_believed


def test_a_clock_that_was_seldom_seen_is_not_believed() -> None:
    """The first call of a connection may have waited for it."""
    scene = Scene()
    scene.looks(times=FEWEST_COMPARISONS - 1)
    assert scene.comes(OWN, MIDDLE_NS) is OWN
    assert scene.count(WitnessUse.CLOCK_UNKNOWN) == 1


def test_commands_that_come_at_once_show_the_clock_only_once() -> None:
    """They may all have been held up by the same thing."""
    scene = Scene()
    for number in range(100):
        at_ns = NOON_NS + number * MS_NS
        scene.comes(Arrival(at_ns - NARROW, at_ns), at_ns)
    assert scene.comes(OWN, MIDDLE_NS) is OWN


def test_a_clock_that_was_not_seen_for_a_minute_is_not_believed() -> None:
    scene = Scene()
    scene.looks()
    own = Arrival(NOON_NS + COMPARISON_LIFE_NS, NOON_NS + COMPARISON_LIFE_NS + WIDE)
    assert scene.comes(own, own.latest_ns - WIDE // 2) is own
    assert scene.count(WitnessUse.CLOCK_UNKNOWN) == 1


@pytest.mark.parametrize(("before_ns", "after_ns"), [(0, WIDE // 4), (WIDE // 4, 0)], ids=["ahead", "back"])
def test_a_clock_that_was_stepped_is_known_no_better_than_that(before_ns: int, after_ns: int) -> None:
    """The range spans what it was ahead by before and after."""
    scene = Scene()
    for number in range(8):
        at_ns = NOON_NS + (number - 7) * COMPARE_EVERY_NS
        scene.comes(Arrival(at_ns - NARROW, at_ns), at_ns + (before_ns if number < 6 else after_ns))
    left = scene.comes(OWN, MIDDLE_NS + after_ns)
    assert left.own_latest_ns is not None
    assert left.earliest_ns <= MIDDLE_NS <= left.latest_ns


@pytest.mark.parametrize("step_ns", [-3600 * SECOND_NS, -STEP_NS - 1, STEP_NS + 1, 3600 * SECOND_NS])
def test_what_is_known_of_a_clock_does_not_outlive_a_step_of_service_time(step_ns: int) -> None:
    """Nor a sleep of the machine, whose monotonic clock stands meanwhile. Afterwards the clock is seen anew."""
    scene = Scene()
    scene.looks()
    scene.apart_ns += step_ns
    own = Arrival(OWN.earliest_ns, OWN.latest_ns + step_ns) if step_ns > 0 else Arrival(OWN[0] + step_ns, OWN[1])
    assert scene.comes(own, MIDDLE_NS) is own
    for number in range(8):
        shown_ns = NOON_NS + (2 + number) * COMPARE_EVERY_NS
        scene.comes(Arrival(shown_ns + step_ns - NARROW, shown_ns + step_ns), shown_ns)
    own = Arrival(shown_ns + step_ns, shown_ns + step_ns + WIDE)
    left = scene.comes(own, shown_ns + WIDE // 2)
    assert left.earliest_ns <= own.earliest_ns + WIDE // 2 <= left.latest_ns < own.latest_ns


def test_a_copy_that_comes_later_is_never_before_the_first_one() -> None:
    """The line is ordered by the earliest instants; a repeat must not be decided first."""
    scene = Scene()
    scene.looks()
    first = scene.comes(OWN, MIDDLE_NS)
    later = scene.comes(OWN._replace(latest_ns=OWN.latest_ns + 100 * MS_NS), MIDDLE_NS)
    assert first.earliest_ns <= later.earliest_ns


def test_each_proxy_has_a_clock_of_its_own() -> None:
    """By its address, whatever port a connection has."""
    scene = Scene()
    scene.looks(ahead_ns=5 * SECOND_NS)
    scene.looks(ahead_ns=-5 * SECOND_NS, peer=OTHER)
    left = scene.comes(OWN, MIDDLE_NS + 5 * SECOND_NS, PROXY.replace("41234", "5"))
    assert left.earliest_ns < MIDDLE_NS < left.latest_ns
    assert left == scene.comes(OWN, MIDDLE_NS - 5 * SECOND_NS, OTHER)


def test_of_too_many_proxies_the_first_is_forgotten() -> None:
    scene = Scene()
    scene.looks()
    for number in range(PROXIES):
        scene.looks(peer=f"ipv4:10.1.0.{number}:1")
    assert scene.comes(OWN, MIDDLE_NS) is OWN
    assert scene.count(WitnessUse.CLOCK_UNKNOWN) == 1


def test_an_unreadable_stamp_is_counted_and_changes_nothing() -> None:
    scene = Scene()
    scene.looks()
    assert scene.witness.narrowed(OWN, [], PROXY) is OWN
    assert scene.witness.narrowed(OWN, [(ARRIVAL_HEADER, "soon")], PROXY) is OWN
    assert scene.count(WitnessUse.UNREADABLE) == 2


class Passage(NamedTuple):
    """A command: when its last byte was at the proxy, how long it took from there, and what the service knows of it."""

    since_ns: int
    transit_ns: int
    before_ns: int
    after_ns: int


ns = st.integers(0, 40 * MS_NS)
passages = st.builds(Passage, st.integers(COMPARE_EVERY_NS, 5 * COMPARE_EVERY_NS), st.integers(0, 300 * MS_NS), ns, ns)
waits = st.integers(0, REACH_NS)


@settings(deadline=None, max_examples=500)
@given(
    st.lists(passages, min_size=FEWEST_COMPARISONS, max_size=12),
    st.integers(-SECOND_NS, SECOND_NS),
    st.integers(-DRIFT_PPM, DRIFT_PPM),
    waits,
    waits,
)
def test_what_is_left_holds_the_true_arrival_unless_every_call_before_was_slower(
    quiet: list[Passage], ahead_ns: int, drift_ppm: int, before_ns: int, after_ns: int
) -> None:
    """The arrival at the service's door, as fast as the fastest of the calls that count; never an early one."""

    def shown_ns(true_ns: int) -> int:
        return true_ns + ahead_ns + (true_ns - NOON_NS) * drift_ppm // 1_000_000

    scene, true_ns = Scene(), NOON_NS
    for passage in quiet:
        true_ns += passage.since_ns + passage.transit_ns + passage.after_ns
        came_ns = true_ns - passage.after_ns
        scene.comes(Arrival(came_ns - passage.before_ns, true_ns), shown_ns(came_ns - passage.transit_ns))
    seen_ns = true_ns + before_ns
    left = scene.comes(Arrival(true_ns, seen_ns + after_ns), shown_ns(seen_ns))
    fastest_ns = min(passage.transit_ns for passage in quiet[-8:])
    if left.own_latest_ns is not None:
        assert left.earliest_ns <= seen_ns + fastest_ns
        assert left.latest_ns >= seen_ns
