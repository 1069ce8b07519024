"""What players and the service may ask of a match."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from engine.clock import Arrival
from engine.events import AbortReason
from engine.layout import End
from engine.seats import Seat
from engine.tiles import Tile


@dataclass(frozen=True, slots=True)
class Start:
    """Ready for the first round."""


@dataclass(frozen=True, slots=True)
class Continue:
    """Ready for the next round."""


@dataclass(frozen=True, slots=True)
class Reveal:
    """The next player holds the shared device."""


@dataclass(frozen=True, slots=True)
class DeclineBidding:
    """Leave the opening to the jockey."""


@dataclass(frozen=True, slots=True)
class Bid:
    """The first bid, in points."""

    points: int


@dataclass(frozen=True, slots=True)
class Raise:
    """A higher bid: the new total in points (A4)."""

    points: int


@dataclass(frozen=True, slots=True)
class AcceptBid:
    """Let the standing bid win."""


class PlayTile(NamedTuple):
    """Play `tile` at `end`."""

    tile: Tile
    end: End


@dataclass(frozen=True, slots=True)
class DrawTile:
    """Draw one tile (D1)."""


@dataclass(frozen=True, slots=True)
class Pass:
    """Pass the turn."""


@dataclass(frozen=True, slots=True)
class Resign:
    """Give the match up (X1)."""


@dataclass(frozen=True, slots=True)
class CommitEntropy:
    """Take part in the deal: `commitment` is 32 bytes, and public. Replaces an earlier one until the own Start."""

    commitment: bytes


Command: TypeAlias = (
    Start
    | Continue
    | Reveal
    | DeclineBidding
    | Bid
    | Raise
    | AcceptBid
    | PlayTile
    | DrawTile
    | Pass
    | Resign
    | CommitEntropy
)


class Request(NamedTuple):
    """A player's command with its stamp. `expected_version`, when given, must be the current one.

    `names_seat` is False where a shared device left open for whom it speaks.
    """

    seat: Seat
    command: Command
    arrival: Arrival
    expected_version: int | None = None
    names_seat: bool = True


@dataclass(frozen=True, slots=True)
class TakeSeat:
    """Seat a player, with the player's commitment to entropy if there is one."""

    seat: Seat
    display_name: str
    commitment: bytes = b""


@dataclass(frozen=True, slots=True)
class Leave:
    """A seated player leaves before the start (X1)."""

    seat: Seat


@dataclass(frozen=True, slots=True)
class CheckClock:
    """Settle what is due: every command stamped before `closed_ns` has been handled (K4)."""

    closed_ns: int


@dataclass(frozen=True, slots=True)
class Abort:
    """End the match without a result."""

    reason: AbortReason
    evidence: str


@dataclass(frozen=True, slots=True)
class SuspendClocks:
    """A planned stop of the service begins (F4): clocks stand from `at_ns` on, or else from the instant of storing.

    Every command stamped before `at_ns` has been handled.
    """

    at_ns: int | None = None


@dataclass(frozen=True, slots=True)
class ResumeClocks:
    """A planned stop of the service has ended (F4)."""


ServiceCommand: TypeAlias = TakeSeat | Leave | CheckClock | Abort | SuspendClocks | ResumeClocks
