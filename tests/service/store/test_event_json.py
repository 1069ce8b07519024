"""The text on disk: every event and back, and never another text than the one below."""

import dataclasses
from collections.abc import Callable
from enum import Enum
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import events
from engine.clock import Arrival, Decision, Verdict
from engine.events import AbortReason, Event, Step, WinReason
from engine.layout import End
from engine.refusals import Refusal, RefusalReason
from engine.scoring import Transfer
from engine.seats import PerSeat, Seat
from engine.tiles import DOUBLE_SIX, Tile
from engine.view import Audience
from service.ports import Receipt
from service.store import event_json
from service.store.json_forms import NUMBER, Field, Form, StoredFormatError, read_text

EVENT_CLASSES = get_args(Event)


def pairs(hint: type[PerSeat[object]]) -> st.SearchStrategy[PerSeat[object]]:
    """One value for each seat, of the type that is asked for."""
    (value,) = get_args(hint)
    return st.builds(PerSeat, st.from_type(value), st.from_type(value))


st.register_type_strategy(Tile, st.sampled_from(DOUBLE_SIX))
st.register_type_strategy(PerSeat, pairs)

unhurried = settings(deadline=None)  # how long an example takes says nothing on a shared machine


@unhurried
@given(st.lists(st.one_of(*map(st.from_type, EVENT_CLASSES)), max_size=5).map(tuple))
def test_every_step_reads_back_equal(step: Step) -> None:
    """Whatever is in the fields of whichever event."""
    assert event_json.step_of(event_json.step_text(step)) == step


@pytest.mark.parametrize("event_class", EVENT_CLASSES)
@unhurried
@given(data=st.data())
def test_every_event_reads_back_equal(event_class: type[Event], data: st.DataObject) -> None:
    """Each class of its own, so that none is left out by chance."""
    step = (data.draw(st.from_type(event_class)),)
    text = event_json.step_text(step)
    assert event_json.step_of(text) == step
    assert text.isascii()


@unhurried
@given(st.from_type(Receipt))
def test_every_receipt_reads_back_equal(receipt: Receipt) -> None:
    """With and without a running decision."""
    assert event_json.receipt_of(event_json.receipt_text(receipt)) == receipt


@unhurried
@given(st.from_type(Refusal))
def test_every_refusal_reads_back_equal(refusal: Refusal) -> None:
    """The figures stay in their order."""
    assert event_json.refusal_of(event_json.refusal_text(refusal)) == refusal


def test_every_field_of_every_event_is_written() -> None:
    """A new event or field needs its place in the forms."""
    written = {form.made: list(form.fields) for form in event_json.FORMS}
    assert written == {made: [*made.__match_args__] for made in EVENT_CLASSES}


def test_different_events_are_never_equal() -> None:
    """Dataclasses compare their classes, named tuples do not: so each of these has a length of its own."""
    lengths = [len(made.__match_args__) for made in EVENT_CLASSES if issubclass(made, tuple)]
    assert len(lengths) == len(set(lengths))
    assert lengths


ONE, TWO = Seat.ONE, Seat.TWO
HANDS = PerSeat((Tile(0, 0), Tile(2, 3)), ())

ENDS = {End.OPENING: "open", End.WEST: "W", End.EAST: "E", End.NORTH: "N", End.SOUTH: "S"}
WINS = {WinReason.BALANCE: "balance", WinReason.TIME: "time", WinReason.RESIGNATION: "resignation"}
ABORTS = {
    AbortReason.START_TIMEOUT: "start timeout",
    AbortReason.LEFT_BEFORE_START: "left before start",
    AbortReason.TIMING_FAILURE: "timing failure",
    AbortReason.OPERATOR: "operator",
    AbortReason.DEAL_NOT_OPENED: "deal not opened",
}
VERDICTS = {
    Verdict.NOT_TIMED: "not timed",
    Verdict.IN_TIME: "in time",
    Verdict.IN_TIME_BY_DOUBT: "in time by doubt",
    Verdict.LATE: "late",
    Verdict.UNPROVABLE: "unprovable",
}
AUDIENCES = {
    Audience.SEAT_ONE: "one",
    Audience.SEAT_TWO: "two",
    Audience.DEVICE: "device",
    Audience.SPECTATOR: "spectator",
}
REASONS = {
    RefusalReason.MATCH_OVER: "match over",
    RefusalReason.TIME_EXPIRED: "time expired",
    RefusalReason.STALE_VERSION: "stale version",
    RefusalReason.WRONG_PHASE: "wrong phase",
    RefusalReason.NOT_YOUR_TURN: "not your turn",
    RefusalReason.ALREADY_READY: "already ready",
    RefusalReason.TILE_NOT_IN_HAND: "tile not in hand",
    RefusalReason.MUST_PLAY_DRAWN_TILE: "must play drawn tile",
    RefusalReason.MUST_OPEN_WITH_RANKED_TILE: "must open with ranked tile",
    RefusalReason.END_NOT_AVAILABLE: "end not available",
    RefusalReason.TILE_DOES_NOT_FIT: "tile does not fit",
    RefusalReason.CAN_PLAY_INSTEAD: "can play instead",
    RefusalReason.BONEYARD_EMPTY: "boneyard empty",
    RefusalReason.CAN_DRAW_INSTEAD: "can draw instead",
    RefusalReason.BID_TOO_LOW: "bid too low",
    RefusalReason.BID_NOT_MULTIPLE_OF_FIVE: "bid not multiple of five",
    RefusalReason.BID_UNAFFORDABLE: "bid unaffordable",
}


@pytest.mark.parametrize("names", [ENDS, WINS, ABORTS, VERDICTS, AUDIENCES, REASONS])
def test_every_name_is_written_down_here(names: dict[Enum, str]) -> None:
    """A new member needs a line in these tables."""
    assert set(names) == {member for some in names for member in type(some)}


# Never change a line: such texts are on disks. A changed form gets a further line, and reads the old ones.
ON_DISK: list[tuple[str, Event]] = [
    (
        '{"t":"created","at":5,"shared":false,"start":600,"continue":60}',
        events.MatchCreated(5, shared_device=False, start_timeout_ns=600, continue_timeout_ns=60),
    ),
    (
        '{"t":"created","at":5,"shared":false,"start":600,"continue":60,"commit":"00ff"}',
        events.MatchCreated(
            5, shared_device=False, start_timeout_ns=600, continue_timeout_ns=60, server_commitment=b"\x00\xff"
        ),
    ),
    ('{"t":"committed","seat":2,"commit":"00ff"}', events.EntropyCommitted(TWO, b"\x00\xff")),
    ('{"t":"seated","seat":1,"name":"Zo\\u00eb \\"Z\\""}', events.PlayerSeated(ONE, 'Zoë "Z"')),
    ('{"t":"ready","seat":2}', events.PlayerReady(TWO)),
    ('{"t":"continued","at":5}', events.ContinueTimedOut(5)),
    (
        '{"t":"dealt","number":1,"hands":{"1":"0-0 2-3","2":""},"boneyard":"6-6","turn":1,"open":"2-3"}',
        events.RoundDealt(1, HANDS, (Tile(6, 6),), turn=ONE, jockey=None, must_open=Tile(2, 3)),
    ),
    (
        '{"t":"dealt","number":2,"hands":{"1":"0-0 2-3","2":""},"boneyard":"","turn":1,"jockey":2}',
        events.RoundDealt(2, HANDS, (), turn=ONE, jockey=TWO, must_open=None),
    ),
    ('{"t":"handover","seat":1}', events.HandoverOpened(ONE)),
    ('{"t":"revealed","seat":1}', events.HandRevealed(ONE)),
    ('{"t":"clock","seat":1,"at":1790000000000000000}', events.ClockStarted(ONE, 1_790_000_000_000_000_000)),
    ('{"t":"stop","seat":1,"used":0}', events.ClockStopped(ONE, 0)),
    ('{"t":"declined","seat":2}', events.BiddingDeclined(TWO)),
    ('{"t":"bid","seat":1,"points":15}', events.BidMade(ONE, 15)),
    (
        '{"t":"accepted","bidder":1,"points":15,"credit":10,"transfer":{"payer":1,"earned":5,"paid":5}}',
        events.BidAccepted(ONE, 15, credit_points=10, transfer=Transfer(ONE, earned=5, paid=5)),
    ),
    *(
        (
            f'{{"t":"played","seat":1,"tile":"2-3","end":"{name}","total":7}}',
            events.TilePlayed(ONE, Tile(2, 3), end, 7, None),
        )
        for end, name in ENDS.items()
    ),
    (
        '{"t":"played","seat":1,"tile":"5-5","end":"W","total":10,"transfer":{"payer":2,"earned":10,"paid":0}}',
        events.TilePlayed(ONE, Tile(5, 5), End.WEST, 10, Transfer(TWO, earned=10, paid=0)),
    ),
    ('{"t":"drew","seat":1,"tile":"0-6","playable":true}', events.TileDrawn(ONE, Tile(0, 6), playable=True)),
    ('{"t":"passed","seat":1}', events.Passed(ONE)),
    ('{"t":"dominoed","seat":1,"at":5}', events.RoundDominoed(ONE, 5)),
    ('{"t":"blocked","hands":{"1":"0-0 2-3","2":""},"at":5}', events.RoundBlocked(HANDS, None, None, 5)),
    (
        '{"t":"blocked","hands":{"1":"","2":""},"winner":2,"transfer":{"payer":1,"earned":5,"paid":5},"at":5}',
        events.RoundBlocked(PerSeat((), ()), TWO, Transfer(ONE, earned=5, paid=5), 5),
    ),
    *(
        (f'{{"t":"won","winner":1,"reason":"{name}","at":5}}', events.MatchWon(ONE, reason, 5))
        for reason, name in WINS.items()
    ),
    *(
        (f'{{"t":"aborted","reason":"{name}","evidence":"e","at":5}}', events.MatchAborted(reason, "e", 5))
        for reason, name in ABORTS.items()
    ),
    ('{"t":"suspended","at":5}', events.ClocksSuspended(5)),
    ('{"t":"resumed","at":5}', events.ClocksResumed(5)),
]


@pytest.mark.parametrize(("text", "event"), ON_DISK)
def test_the_text_of_an_event_never_changes(text: str, event: Event) -> None:
    """It is written so and read so."""
    assert event_json.step_text((event,)) == f"[{text}]"
    assert event_json.step_of(f"[{text}]") == (event,)


def test_every_event_has_a_text_that_never_changes() -> None:
    """The table above leaves none out."""
    assert {type(event) for _, event in ON_DISK} == set(EVENT_CLASSES)


@pytest.mark.parametrize(("reason", "name"), REASONS.items())
def test_the_text_of_a_refusal_never_changes(reason: RefusalReason, name: str) -> None:
    """A reason goes by its name, whatever its number becomes."""
    text = f'{{"reason":"{name}","figures":[["minimum_points",15]]}}'
    refusal = Refusal(reason, (("minimum_points", 15),))
    assert event_json.refusal_text(refusal) == text
    assert event_json.refusal_of(text) == refusal


@pytest.mark.parametrize(("verdict", "name"), VERDICTS.items())
@pytest.mark.parametrize(
    ("decision_text", "decision"), [("", None), ('"decision":{"seat":1,"at":1,"bank":2},', Decision(ONE, 1, 2))]
)
def test_the_text_of_a_receipt_never_changes(
    verdict: Verdict, name: str, decision_text: str, decision: Decision | None
) -> None:
    """Without a running decision it says nothing of one."""
    text = f'{{"arrival":{{"earliest":3,"latest":4}},{decision_text}"error":7,"verdict":"{name}"}}'
    receipt = Receipt(Arrival(3, 4), decision, 7, verdict)
    assert event_json.receipt_text(receipt) == text
    assert event_json.receipt_of(text) == receipt


def test_the_text_of_a_receipt_with_a_witness_never_changes() -> None:
    """Without one it says nothing of the service's own bounds."""
    text = '{"arrival":{"earliest":3,"latest":4,"own_earliest":1,"own_latest":6},"error":7,"verdict":"in time"}'
    receipt = Receipt(Arrival(3, 4, 1, 6), None, 7, Verdict.IN_TIME)
    assert event_json.receipt_text(receipt) == text
    assert event_json.receipt_of(text) == receipt


@pytest.mark.parametrize(("audience", "name"), AUDIENCES.items())
def test_the_name_of_an_audience_never_changes(audience: Audience, name: str) -> None:
    """It is part of keys."""
    assert event_json.audience_text(audience) == name
    assert event_json.audience_of(name) is audience


MALFORMED = [
    pytest.param("", id="nothing"),
    pytest.param('[{"t":"ready","seat":1}', id="cut short"),
    pytest.param('{"t":"ready","seat":1}', id="no array"),
    pytest.param("[1]", id="no event"),
    pytest.param("[{}]", id="no tag"),
    pytest.param('[{"t":"unknown","seat":1}]', id="unknown tag"),
    pytest.param('[{"t":["ready"],"seat":1}]', id="a tag that is no text"),
    pytest.param('[{"t":"ready"}]', id="a field is missing"),
    pytest.param('[{"t":"ready","seat":3}]', id="no such seat"),
    pytest.param('[{"t":"ready","seat":null}]', id="null"),
    pytest.param('[{"t":"continued","at":"5"}]', id="text for a number"),
    pytest.param('[{"t":"continued","at":5.0}]', id="a fraction"),
    pytest.param('[{"t":"continued","at":true}]', id="a flag for a number"),
    pytest.param('[{"t":"seated","seat":1,"name":5}]', id="a number for text"),
    pytest.param('[{"t":"drew","seat":1,"tile":"6-0","playable":true}]', id="a tile the wrong way round"),
    pytest.param('[{"t":"drew","seat":1,"tile":"7-7","playable":true}]', id="no such tile"),
    pytest.param('[{"t":"drew","seat":1,"tile":"0-0","playable":1}]', id="a number for a flag"),
    pytest.param('[{"t":"blocked","hands":{"1":["0-0"],"2":""},"at":5}]', id="no hand"),
    pytest.param('[{"t":"blocked","hands":"0-0","at":5}]', id="no hands"),
    pytest.param("[" * 100_000, id="too deep"),
]


@pytest.mark.parametrize("text", MALFORMED)
def test_a_malformed_step_is_told_apart(text: str) -> None:
    """There is one exception for everything that cannot be read."""
    with pytest.raises(StoredFormatError):
        event_json.step_of(text)


READERS: list[Callable[[str], object]] = [
    event_json.step_of,
    event_json.refusal_of,
    event_json.receipt_of,
    event_json.audience_of,
]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("text", ["", "[[]]", '{"reason":"bid too low","figures":[["a"]]}', '{"figures":{}}', "three"])
def test_every_reader_tells_malformed_text_apart(reader: Callable[[str], object], text: str) -> None:
    """No other exception comes out."""
    with pytest.raises(StoredFormatError):
        reader(text)


@dataclasses.dataclass(frozen=True, slots=True)
class Later:
    """What an event may become."""

    old: int
    added: int


LATER = Form(Later, "later", old=Field("old", NUMBER), added=Field("added", NUMBER, default=7))


def test_a_field_can_be_added_later() -> None:
    """Texts from before have the default; texts from after are read by what was before."""
    assert read_text('{"t":"later","old":1}', LATER.decode) == Later(old=1, added=7)
    assert LATER.encode(Later(old=1, added=7)) == '{"t":"later","old":1,"added":7}'
    assert event_json.step_of('[{"t":"ready","seat":1,"mood":"good"}]') == (events.PlayerReady(ONE),)
