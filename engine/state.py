"""The whole state of a match, secrets included. Only `view` decides who sees what of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

from engine.auction import Auction
from engine.clock import Decision
from engine.events import MatchAborted, MatchWon, RoundBlocked, RoundDominoed
from engine.layout import Layout
from engine.scoring import Transfer
from engine.seats import PerSeat, Seat
from engine.tiles import Tile

Hand: TypeAlias = tuple[Tile, ...]


class Phase(Enum):
    """Where a match stands."""

    NOT_STARTED = 1
    BIDDING = 2
    OPENING = 3
    PLAYING = 4
    SETTLED = 5
    OVER = 6

    __hash__ = object.__hash__  # as Seat


_OVER = Phase.OVER  # as in engine.layout


class OpeningPrivilege(Enum):
    """How a round's opening is decided."""

    RANKED = 1
    AUCTION = 2
    JOCKEY_FREE = 3
    BOUGHT = 4

    __hash__ = object.__hash__  # as Seat


@dataclass(frozen=True, slots=True)
class Options:
    """What was agreed when the match was created, and when that was."""

    shared_device: bool
    start_timeout_ns: int
    continue_timeout_ns: int
    created_at_ns: int


class Round(NamedTuple):
    """The round being bid for, played or settled. `turn` is None once it is settled."""

    number: int
    opening: OpeningPrivilege
    hands: PerSeat[Hand]
    boneyard: tuple[Tile, ...]
    turn: Seat | None
    auction: Auction | None = None
    must_play: Tile | None = None
    layout: Layout = Layout()
    passes: int = 0
    last_transfer: Transfer | None = None


class MatchState(NamedTuple):
    """A match at one version.

    Exactly one of `decision` (a clock runs), `handover`, `waiting_until_ns` (for Start or Continue), `result` is set;
    beside a decision or a wait `suspended_at_ns` may stand.
    """

    version: int
    options: Options
    phase: Phase
    display_names: PerSeat[str | None]
    balances: PerSeat[int]
    banks_ns: PerSeat[int]
    ready: PerSeat[bool]
    waiting_until_ns: int | None = None
    round: Round | None = None
    decision: Decision | None = None
    handover: Seat | None = None
    revealed: Seat | None = None
    settlement: RoundDominoed | RoundBlocked | None = None
    result: MatchWon | MatchAborted | None = None
    suspended_at_ns: int | None = None
    server_commitment: bytes = b""
    commitments: PerSeat[bytes] = PerSeat(b"", b"")

    @property
    def turn(self) -> Seat | None:
        """Whose decision is pending, also behind a handover; None between rounds."""
        return None if self.round is None or self.phase is _OVER else self.round.turn

    @property
    def due_ns(self) -> int | None:
        """When something happens by itself: the running deadline, or the end of a wait (S2)."""
        if self.suspended_at_ns is not None:
            return None
        return self.waiting_until_ns if self.decision is None else self.decision.deadline_ns

    @property
    def opened(self) -> PerSeat[bool]:
        """Whose entropy, of those who committed to some, is known to the service."""
        is_dealt, ready = self.round is not None, self.ready
        one, two = self.commitments
        return PerSeat(bool(one) and (is_dealt or ready.one), bool(two) and (is_dealt or ready.two))

    @property
    def current(self) -> Round:
        """The round, where there must be one."""
        assert self.round is not None
        return self.round


def acting_seat(state: MatchState) -> Seat:
    """The seat for which the shared device acts: on turn, or ONE between rounds (S1)."""
    return state.turn or Seat.ONE
