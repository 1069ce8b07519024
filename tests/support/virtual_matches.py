"""Matches for the core on fakes in virtual time: stored at a certain point, and commands for them."""

import hashlib

from engine import commands as cmd
from engine import events as ev
from engine.clock import SECOND_NS
from engine.events import Step
from engine.evolve import advance, replay
from engine.legal import LegalCommand, legal_actions
from engine.seats import SEATS, PerSeat, Seat
from engine.state import MatchState, acting_seat
from engine.tiles import DOUBLE_SIX
from engine.view import Audience
from service.line import PlayerOrder, Ticket
from tests.support.players import new_id
from tests.support.ports import MemoryStore, Process
from tests.support.store import NOON_NS

MATCH_ID = "v" * 26
SENDERS = {Seat.ONE: Audience.SEAT_ONE, Seat.TWO: Audience.SEAT_TWO}
START_TIMEOUT_NS, CONTINUE_TIMEOUT_NS = 600 * SECOND_NS, 60 * SECOND_NS
BIRTH: Step = (
    ev.MatchCreated(
        NOON_NS, shared_device=False, start_timeout_ns=START_TIMEOUT_NS, continue_timeout_ns=CONTINUE_TIMEOUT_NS
    ),
    *(ev.PlayerSeated(seat, seat.name.title()) for seat in SEATS),
)


def stored(*steps: Step) -> MemoryStore:
    """A store with a match that has this log."""
    store = MemoryStore()
    store.logs[MATCH_ID] = list(steps)
    state = replay(steps)
    store.due[MATCH_ID] = (state.due_ns, state.result is None)
    return store


def seated() -> MemoryStore:
    """Both players are seated, and nobody is ready."""
    return stored(BIRTH)


def started(turn: Seat = Seat.ONE) -> MemoryStore:
    """The opening of the first round is due, by this seat; its decision began at noon."""
    order = DOUBLE_SIX if turn is Seat.TWO else (*DOUBLE_SIX[7:14], *DOUBLE_SIX[:7], *DOUBLE_SIX[14:])
    return stored(BIRTH, *(step for step in _dealt(order, turn)))


def settled() -> MemoryStore:
    """A round was dominoed at noon; both must continue."""
    store = started()
    state = replay(store.logs[MATCH_ID])
    assert state.decision is not None
    dominoed: Step = (ev.ClockStopped(Seat.ONE, 0), ev.RoundDominoed(Seat.ONE, NOON_NS))
    return stored(*store.logs[MATCH_ID], dominoed)


def bidding() -> MemoryStore:
    """Seat TWO speaks first in an auction; its decision began at noon."""
    store = settled()
    hands = PerSeat(tuple(DOUBLE_SIX[:7]), tuple(DOUBLE_SIX[7:14]))
    dealt = ev.RoundDealt(2, hands, tuple(DOUBLE_SIX[14:]), Seat.TWO, Seat.ONE, None)
    return stored(*store.logs[MATCH_ID], (dealt, ev.ClockStarted(Seat.TWO, NOON_NS)))


def _dealt(order: tuple[tuple[int, int], ...], turn: Seat) -> tuple[Step, Step]:
    tiles = tuple(DOUBLE_SIX[DOUBLE_SIX.index(tile)] for tile in order)
    hands = PerSeat(tuple(sorted(tiles[:7])), tuple(sorted(tiles[7:14])))
    must_open = max(tile for tile in hands[turn.index] if tile.is_double)
    dealt = ev.RoundDealt(1, hands, tiles[14:], turn, None, must_open)
    return (ev.PlayerReady(Seat.ONE),), (ev.PlayerReady(Seat.TWO), dealt, ev.ClockStarted(turn, NOON_NS))


def legal_command(state: MatchState) -> cmd.Command:
    """Some command that the player on turn may give."""
    action = legal_actions(state, acting_seat(state))[0]
    assert isinstance(action, LegalCommand)
    return action.command


def order(process: Process, command: cmd.Command, state: MatchState, *, seat: Seat | None = None) -> PlayerOrder:
    """A command that arrives now, by the player on turn if no seat is given."""
    sender = seat or acting_seat(state)
    return PlayerOrder(
        command=command,
        arrival=process.core.clock.arrival(),
        seat=sender,
        sender=SENDERS[sender],
        command_id=new_id(),
        body_hash=hashlib.sha256(repr(command).encode()).digest(),
    )


async def submit(process: Process, command: cmd.Command, *, seat: Seat | None = None) -> Ticket:
    """Enter a command that arrives now into the line."""
    match = process.matches.get(MATCH_ID)
    sent = order(process, command, await match.state(), seat=seat)
    return match.enter(sent.arrival, sent)


def log_of(process: Process) -> list[Step]:
    """What is stored of the match."""
    return process.store.logs[MATCH_ID]


def state_of(process: Process) -> MatchState:
    """The match as it is stored."""
    state: MatchState | None = None
    for step in log_of(process):
        state = advance(state, step)
    assert state is not None
    return state
