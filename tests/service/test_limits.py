"""Limits: allowances on the service's time without timers, and streams that make room for newer ones."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from engine.clock import SECOND_NS
from engine.view import Audience
from service import limits
from service.limits import (
    BURST_SECONDS,
    Allowance,
    LimitedError,
    Limits,
    Rates,
    StreamReplacedError,
    TokenRevokedError,
    TooManySpectatorsError,
    holder_of,
)
from service.metrics.process import Limit
from service.ports import Credential
from service.watches import Watch

ONE = Credential(b"1", "m", Audience.SEAT_ONE)
TWO = Credential(b"2", "m", Audience.SEAT_TWO)


@dataclass
class Now:
    """Time that stands until it is moved."""

    ns: int = 10**18

    def __call__(self) -> int:
        return self.ns


def taken(allowance: Allowance, key: str, most: int = 1000) -> int:
    """How many requests fit right now."""
    for count in range(most):
        try:
            allowance.take(key)
        except LimitedError:
            return count
    return most


def test_an_allowance_is_its_rate_with_twice_as_many_at_once() -> None:
    now = Now()
    allowance = Allowance(now, 10)
    assert taken(allowance, "k") == 20
    now.ns += SECOND_NS
    assert taken(allowance, "k") == 10
    now.ns += 3600 * SECOND_NS
    assert taken(allowance, "k") == 20


def test_who_is_turned_away_learns_when_it_fits_again() -> None:
    now = Now()
    allowance = Allowance(now, 10)
    taken(allowance, "k")
    with pytest.raises(LimitedError) as caught:
        allowance.take("k")
    assert caught.value.wait_ns == SECOND_NS // 10
    now.ns += caught.value.wait_ns - 1
    assert taken(allowance, "k") == 0
    now.ns += 1
    assert taken(allowance, "k") == 1


def test_one_holder_takes_nothing_from_another() -> None:
    allowance = Allowance(Now(), 10)
    taken(allowance, "one")
    assert taken(allowance, "two") == 20


def test_no_limit_is_none() -> None:
    assert taken(Allowance(Now(), 0), "k") == 1000


def test_only_so_many_holders_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who was quiet longest is forgotten."""
    monkeypatch.setattr(limits, "KNOWN_HOLDERS", 3)
    allowance = Allowance(Now(), 1)
    for key in "abac":
        allowance.take(key)
    allowance.take("d")
    assert list(allowance._used_up_to_ns) == ["a", "c", "d"]


@pytest.mark.parametrize(
    ("limit", "take"),
    [
        (Limit.COMMANDS, lambda limits: limits.commands.take(holder_of(ONE))),
        (Limit.READS, lambda limits: limits.reads.take(holder_of(ONE))),
        (Limit.GUESTS, lambda limits: limits.guests.take("a")),
        (Limit.CREATES, lambda limits: limits.creates.take("a")),
        (Limit.STRANGERS, lambda limits: limits.strangers.take("a")),
    ],
)
def test_what_is_turned_away_is_counted_under_its_limit(limit: Limit, take: Callable[[Limits], None]) -> None:
    """Not what is let in."""
    counted: list[Limit] = []
    limits = Limits(Now(), Rates(commands=1, reads=1, guests=1, creates=1, strangers=1), counted.append)
    for _ in range(BURST_SECONDS):
        take(limits)
    assert counted == []
    with pytest.raises(LimitedError):
        take(limits)
    assert counted == [limit]


def test_all_tokens_of_a_seat_share_its_allowance() -> None:
    """So that a fresh token brings nothing; the other seat has its own."""
    one = Limits(Now(), Rates(commands=1))
    again = Credential(b"another", "m", Audience.SEAT_ONE)
    one.commands.take(holder_of(ONE))
    one.commands.take(holder_of(again))
    for credential in (ONE, again):
        with pytest.raises(LimitedError):
            one.commands.take(holder_of(credential))
    one.commands.take(holder_of(TWO))
    one.reads.take(holder_of(ONE))


def test_a_third_stream_of_a_seat_replaces_its_oldest() -> None:
    streams = Limits(Now(), Rates()).streams
    watches = [Watch(Audience.SEAT_ONE, 0) for _ in range(4)]
    other = Watch(Audience.SEAT_TWO, 0)
    streams.open(TWO, other)
    for watch in watches:
        streams.open(ONE, watch)
    assert [type(watch.ending) for watch in watches] == [StreamReplacedError] * 2 + [type(None)] * 2
    assert other.ending is None


def test_a_closed_stream_leaves_its_place() -> None:
    """Closing again, as a replaced stream does in the end, frees nothing twice."""
    streams = Limits(Now(), Rates()).streams
    first, second, third = (Watch(Audience.SEAT_ONE, 0) for _ in range(3))
    streams.open(ONE, first)
    streams.open(ONE, second)
    for _ in range(2):
        streams.close(ONE, first)
    streams.open(ONE, third)
    assert second.ending is None
    for watch in (second, third):
        streams.close(ONE, watch)
    assert not streams._streams


def spectator(number: int) -> Credential:
    """A spectator with a token of its own."""
    return Credential(number.to_bytes(4, "big"), "m", Audience.SPECTATOR)


def test_a_match_has_room_for_so_many_spectators(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who watches already may change to a newer stream, and who leaves makes room."""
    monkeypatch.setattr(limits, "SPECTATORS", 2)
    streams = Limits(Now(), Rates()).streams
    first, second = Watch(Audience.SPECTATOR, 0), Watch(Audience.SPECTATOR, 0)
    streams.open(spectator(1), first)
    streams.open(spectator(2), second)
    with pytest.raises(TooManySpectatorsError):
        streams.open(spectator(3), Watch(Audience.SPECTATOR, 0))
    streams.open(spectator(1), Watch(Audience.SPECTATOR, 0))
    assert isinstance(first.ending, StreamReplacedError)
    streams.close(spectator(2), second)
    streams.open(spectator(3), Watch(Audience.SPECTATOR, 0))


def test_revoking_a_token_ends_its_own_streams_only() -> None:
    streams = Limits(Now(), Rates()).streams
    again = Credential(b"another", "m", Audience.SEAT_ONE)
    mine, others = Watch(Audience.SEAT_ONE, 0), Watch(Audience.SEAT_ONE, 0)
    streams.open(ONE, mine)
    streams.open(again, others)
    streams.revoke(ONE)
    assert isinstance(mine.ending, TokenRevokedError)
    assert others.ending is None
