"""What happened in a match: finished facts with the numbers worked out.

The log of a match is a sequence of steps; a step is the tuple of events of one version. Fields marked secret never
leave the server while the match is live.

Events that serve as keys in every turn are named tuples, which are made, compared and hashed in C. No two of these have
the same number of fields: else different events could be equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

from engine.layout import End
from engine.scoring import Transfer
from engine.seats import PerSeat, Seat
from engine.tiles import Tile


class WinReason(Enum):
    """How a match was won."""

    BALANCE = "balance"
    TIME = "time"
    RESIGNATION = "resignation"


class AbortReason(Enum):
    """Why a match ended without a result."""

    START_TIMEOUT = "start timeout"
    LEFT_BEFORE_START = "left before start"
    TIMING_FAILURE = "timing failure"
    OPERATOR = "operator"
    DEAL_NOT_OPENED = "deal not opened"


@dataclass(frozen=True, slots=True)
class MatchCreated:
    """The first event of every match. Timeouts are S2's; the commitment of the service to its secret is public."""

    at_ns: int
    shared_device: bool
    start_timeout_ns: int
    continue_timeout_ns: int
    server_commitment: bytes | None = None


@dataclass(frozen=True, slots=True)
class PlayerSeated:
    """A player took a seat."""

    seat: Seat
    display_name: str


@dataclass(frozen=True, slots=True)
class EntropyCommitted:
    """A seat takes part in the deal; its commitment is public, what it commits to is not known here."""

    seat: Seat
    commitment: bytes


@dataclass(frozen=True, slots=True)
class PlayerReady:
    """A seat sent Start or Continue (S1)."""

    seat: Seat


@dataclass(frozen=True, slots=True)
class ContinueTimedOut:
    """The round continues by itself (S2)."""

    at_ns: int


@dataclass(frozen=True, slots=True)
class RoundDealt:
    """A fresh round. `hands` and `boneyard` are secret, and so is `must_open`, the ranked opening's tile (X2)."""

    number: int
    hands: PerSeat[tuple[Tile, ...]]
    boneyard: tuple[Tile, ...]
    turn: Seat
    jockey: Seat | None
    must_open: Tile | None


@dataclass(frozen=True, slots=True)
class HandoverOpened:
    """The shared device must go to `seat`; no clock runs (K7)."""

    seat: Seat


@dataclass(frozen=True, slots=True)
class HandRevealed:
    """`seat` looks at the shared device."""

    seat: Seat


@dataclass(frozen=True, slots=True)
class ClockStarted:
    """A decision of `seat` began (K3)."""

    seat: Seat
    at_ns: int


class ClockStopped(NamedTuple):
    """The decision of `seat` ended and took this from the bank."""

    seat: Seat
    bank_used_ns: int


@dataclass(frozen=True, slots=True)
class BiddingDeclined:
    """The opponent left the opening to the jockey."""

    seat: Seat


@dataclass(frozen=True, slots=True)
class BidMade:
    """A bid or a raise to `points`."""

    seat: Seat
    points: int


@dataclass(frozen=True, slots=True)
class BidAccepted:
    """The bidder opens. `credit_points` of the bid were covered by the jockey's credit, the rest is `transfer`."""

    bidder: Seat
    points: int
    credit_points: int
    transfer: Transfer


class TilePlayed(NamedTuple):
    """A tile was joined at `end`; `exposed_total` is the total afterwards."""

    seat: Seat
    tile: Tile
    end: End
    exposed_total: int
    transfer: Transfer | None


@dataclass(frozen=True, slots=True)
class TileDrawn:
    """The next boneyard tile went to `seat`. `tile` is secret. `playable`: it must be played now (D2)."""

    seat: Seat
    tile: Tile
    playable: bool


@dataclass(frozen=True, slots=True)
class Passed:
    """A required pass."""

    seat: Seat


@dataclass(frozen=True, slots=True)
class RoundDominoed:
    """`seat` emptied the hand and is the next jockey."""

    seat: Seat
    at_ns: int


@dataclass(frozen=True, slots=True)
class RoundBlocked:
    """Two passes in a row. Both hands are public from now on (D5)."""

    hands: PerSeat[tuple[Tile, ...]]
    winner: Seat | None
    transfer: Transfer | None
    at_ns: int


@dataclass(frozen=True, slots=True)
class MatchWon:
    """The match has a winner."""

    winner: Seat
    reason: WinReason
    at_ns: int


@dataclass(frozen=True, slots=True)
class MatchAborted:
    """The match ended without a result."""

    reason: AbortReason
    evidence: str
    at_ns: int


@dataclass(frozen=True, slots=True)
class ClocksSuspended:
    """A planned stop of the service (F4)."""

    at_ns: int


@dataclass(frozen=True, slots=True)
class ClocksResumed:
    """The stop is over; everything timed moves by its length (F4)."""

    at_ns: int


Event: TypeAlias = (
    MatchCreated
    | PlayerSeated
    | EntropyCommitted
    | PlayerReady
    | ContinueTimedOut
    | RoundDealt
    | HandoverOpened
    | HandRevealed
    | ClockStarted
    | ClockStopped
    | BiddingDeclined
    | BidMade
    | BidAccepted
    | TilePlayed
    | TileDrawn
    | Passed
    | RoundDominoed
    | RoundBlocked
    | MatchWon
    | MatchAborted
    | ClocksSuspended
    | ClocksResumed
)
Step: TypeAlias = tuple[Event, ...]
