"""Events, refusals and receipts as JSON text. What is written here is on disks: add, never change.

A step is an array of objects; `t` says which event. A tile is `"2-3"`, a hand is `"2-3 6-6"`, a seat is 1 or 2.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

from engine import events
from engine.clock import Arrival, Decision, Verdict
from engine.events import AbortReason, Step, WinReason
from engine.faults import FaultCause
from engine.layout import End
from engine.refusals import Refusal, RefusalReason
from engine.scoring import Transfer
from engine.seats import PerSeat, Seat
from engine.tiles import DOUBLE_SIX, Tile
from engine.view import Audience
from service.ports import Heartbeat, Receipt
from service.store.json_forms import (
    FLAG,
    NUMBER,
    TEXT,
    Field,
    Form,
    Json,
    Kind,
    listed,
    named,
    one_of,
    read,
    read_text,
)

T = TypeVar("T")

SEAT: Final = named({Seat.ONE: 1, Seat.TWO: 2})
_AUDIENCES: Final = {
    Audience.SEAT_ONE: "one",
    Audience.SEAT_TWO: "two",
    Audience.DEVICE: "device",
    Audience.SPECTATOR: "spectator",
}
AUDIENCE: Final = named(_AUDIENCES)
END: Final = named({End.OPENING: "open", End.WEST: "W", End.EAST: "E", End.NORTH: "N", End.SOUTH: "S"})
_CAUSES: Final = {
    FaultCause.STAMP_STRADDLES: "stamp straddles",
    FaultCause.REPLICA_LOST: "replica lost",
    FaultCause.STORE_GAP: "store gap",
    FaultCause.CLOCK_FAULT: "clock fault",
    FaultCause.NOT_COMMITTED: "not committed",
    FaultCause.PUBLISH_STALL: "publish stall",
    FaultCause.OUTAGE: "outage",
    FaultCause.COMMITS_LOST: "commits lost",
}
CAUSE: Final = named(_CAUSES)
WIN: Final = named(
    {
        WinReason.BALANCE: "balance",
        WinReason.TIME: "time",
        WinReason.RESIGNATION: "resignation",
    }
)
ABORT: Final = named(
    {
        AbortReason.START_TIMEOUT: "start timeout",
        AbortReason.LEFT_BEFORE_START: "left before start",
        AbortReason.TIMING_FAILURE: "timing failure",
        AbortReason.OPERATOR: "operator",
        AbortReason.DEAL_NOT_OPENED: "deal not opened",
    }
)
VERDICT: Final = named(
    {
        Verdict.NOT_TIMED: "not timed",
        Verdict.IN_TIME: "in time",
        Verdict.IN_TIME_BY_DOUBT: "in time by doubt",
        Verdict.LATE: "late",
        Verdict.UNPROVABLE: "unprovable",
    }
)
# By name, because a reason's number follows its place in the order of precedence.
REASON: Final = named({reason: reason.name.lower().replace("_", " ") for reason in RefusalReason})
_TILES: Final = {tile: f"{tile.low}-{tile.high}" for tile in DOUBLE_SIX}
TILE: Final = named(_TILES)


def _hand_text(hand: tuple[Tile, ...]) -> str:
    return '"' + " ".join([_TILES[tile] for tile in hand]) + '"'


def _hand(raw: Json) -> tuple[Tile, ...]:
    return tuple([TILE.decode(text) for text in TEXT.decode(raw).split()])


def _hex(raw: bytes) -> str:
    return f'"{raw.hex()}"'


def _bytes(raw: Json) -> bytes:
    return bytes.fromhex(TEXT.decode(raw))


def _figure_pair(figure: tuple[str, int]) -> str:
    name, number = figure
    return f"[{TEXT.encode(name)},{number}]"


def _figure(raw: Json) -> tuple[str, int]:
    if type(raw) is not list:
        raise TypeError("not a figure")
    name, number = raw
    return TEXT.decode(name), NUMBER.decode(number)


def per_seat(kind: Kind[T]) -> Kind[PerSeat[T]]:
    """A value for each seat."""
    return Form[PerSeat[T]](PerSeat, one=Field("1", kind), two=Field("2", kind)).kind


HAND: Final = Kind(_hand_text, _hand)
BYTES: Final = Kind(_hex, _bytes)
FIGURE: Final = Kind(_figure_pair, _figure)
HANDS: Final = per_seat(HAND)
TRANSFER: Final = Form(
    Transfer, payer=Field("payer", SEAT), earned=Field("earned", NUMBER), paid=Field("paid", NUMBER)
).kind
ARRIVAL: Final = Form(
    Arrival,
    earliest_ns=Field("earliest", NUMBER),
    latest_ns=Field("latest", NUMBER),
    own_earliest_ns=Field("own_earliest", NUMBER, default=None),
    own_latest_ns=Field("own_latest", NUMBER, default=None),
).kind
DECISION: Final = Form(
    Decision, seat=Field("seat", SEAT), started_at_ns=Field("at", NUMBER), bank_ns=Field("bank", NUMBER)
).kind

_SEAT: Final = Field("seat", SEAT)
_AT: Final = Field("at", NUMBER)
_TILE: Final = Field("tile", TILE)
_TRANSFER: Final = Field("transfer", TRANSFER, default=None)
_POINTS: Final = Field("points", NUMBER)

# Each event has a class of its own, and a list of forms has but one type.
FORMS: Final[tuple[Form[Any], ...]] = (
    Form(
        events.MatchCreated,
        "created",
        at_ns=_AT,
        shared_device=Field("shared", FLAG),
        start_timeout_ns=Field("start", NUMBER),
        continue_timeout_ns=Field("continue", NUMBER),
        server_commitment=Field("commit", BYTES, default=None),
    ),
    Form(events.PlayerSeated, "seated", seat=_SEAT, display_name=Field("name", TEXT)),
    Form(events.EntropyCommitted, "committed", seat=_SEAT, commitment=Field("commit", BYTES)),
    Form(events.PlayerReady, "ready", seat=_SEAT),
    Form(events.ContinueTimedOut, "continued", at_ns=_AT),
    Form(
        events.RoundDealt,
        "dealt",
        number=Field("number", NUMBER),
        hands=Field("hands", HANDS),
        boneyard=Field("boneyard", HAND),
        turn=Field("turn", SEAT),
        jockey=Field("jockey", SEAT, default=None),
        must_open=Field("open", TILE, default=None),
    ),
    Form(events.HandoverOpened, "handover", seat=_SEAT),
    Form(events.HandRevealed, "revealed", seat=_SEAT),
    Form(events.ClockStarted, "clock", seat=_SEAT, at_ns=_AT),
    Form(events.ClockStopped, "stop", seat=_SEAT, bank_used_ns=Field("used", NUMBER)),
    Form(events.BiddingDeclined, "declined", seat=_SEAT),
    Form(events.BidMade, "bid", seat=_SEAT, points=_POINTS),
    Form(
        events.BidAccepted,
        "accepted",
        bidder=Field("bidder", SEAT),
        points=_POINTS,
        credit_points=Field("credit", NUMBER),
        transfer=Field("transfer", TRANSFER),
    ),
    Form(
        events.TilePlayed,
        "played",
        seat=_SEAT,
        tile=_TILE,
        end=Field("end", END),
        exposed_total=Field("total", NUMBER),
        transfer=_TRANSFER,
    ),
    Form(events.TileDrawn, "drew", seat=_SEAT, tile=_TILE, playable=Field("playable", FLAG)),
    Form(events.Passed, "passed", seat=_SEAT),
    Form(events.RoundDominoed, "dominoed", seat=_SEAT, at_ns=_AT),
    Form(
        events.RoundBlocked,
        "blocked",
        hands=Field("hands", HANDS),
        winner=Field("winner", SEAT, default=None),
        transfer=_TRANSFER,
        at_ns=_AT,
    ),
    Form(events.MatchWon, "won", winner=Field("winner", SEAT), reason=Field("reason", WIN), at_ns=_AT),
    Form(
        events.MatchAborted,
        "aborted",
        reason=Field("reason", ABORT),
        evidence=Field("evidence", TEXT),
        at_ns=_AT,
    ),
    Form(events.ClocksSuspended, "suspended", at_ns=_AT),
    Form(events.ClocksResumed, "resumed", at_ns=_AT),
)
_STEP: Final[Kind[Step]] = listed(one_of(*FORMS))
_REFUSAL: Final = Form(Refusal, reason=Field("reason", REASON), figures=Field("figures", listed(FIGURE)))
_RECEIPT: Final = Form(
    Receipt,
    arrival=Field("arrival", ARRIVAL),
    decision=Field("decision", DECISION, default=None),
    error_bound_ns=Field("error", NUMBER),
    verdict=Field("verdict", VERDICT),
)


_HEARTBEAT: Final = Form(
    Heartbeat,
    at_ns=Field("at", NUMBER),
    closed_ns=Field("closed", NUMBER),
    retired=Field("retired", FLAG, default=False),
    leaving=Field("leaving", FLAG, default=False),
)


def heartbeat_text(heartbeat: Heartbeat) -> str:
    """A heartbeat as JSON."""
    return _HEARTBEAT.encode(heartbeat)


def heartbeat_of(text: str) -> Heartbeat:
    """The heartbeat of a text by `heartbeat_text`. Raises StoredFormatError."""
    return read_text(text, _HEARTBEAT.decode)


def cause_text(cause: FaultCause) -> str:
    """A cause by its name, for a column of its own."""
    return _CAUSES[cause]


def cause_of(text: str) -> FaultCause:
    """The cause of a name by `cause_text`. Raises StoredFormatError."""
    return read(text, CAUSE.decode)


audience_text: Final = _AUDIENCES.__getitem__
"""An audience by its name, for a column of its own."""


def audience_of(text: str) -> Audience:
    """The audience of a name by `audience_text`. Raises StoredFormatError."""
    return read(text, AUDIENCE.decode)


def step_text(step: Step) -> str:
    """The events of one version."""
    return _STEP.encode(step)


def step_of(text: str) -> Step:
    """The events of a text by `step_text`. Raises StoredFormatError."""
    return read_text(text, _STEP.decode)


def step_of_raw(raw: Json) -> Step:
    """The events of a parsed text by `step_text`. Raises StoredFormatError."""
    return read(raw, _STEP.decode)


def refusal_text(refusal: Refusal) -> str:
    """A refusal with its figures."""
    return _REFUSAL.encode(refusal)


def refusal_of(text: str) -> Refusal:
    """The refusal of a text by `refusal_text`. Raises StoredFormatError."""
    return read_text(text, _REFUSAL.decode)


receipt_text: Final = _RECEIPT.encode
"""How a command stood to the clock."""


def receipt_of(text: str) -> Receipt:
    """The receipt of a text by `receipt_text`. Raises StoredFormatError."""
    return read_text(text, _RECEIPT.decode)
