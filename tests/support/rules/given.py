"""Given a state, when a command comes, then these events: the words of the rule tests.

States are written down directly, so that a test shows all that matters to it. Instants count from `STARTED_NS`, at
which the decision under test began; a result is stored `STORING_NS` after the command arrived.
"""

from dataclasses import dataclass, field, replace

from engine import commands as cmd
from engine import events as ev
from engine.auction import Auction, StandingBid
from engine.clock import BANK_NS, SECOND_NS, Arrival, Decision
from engine.decide import NO_FAULTS, Evidence, Ruling, decide, decide_service
from engine.evolve import advance, found
from engine.invariants import check
from engine.refusals import Refusal, RefusalReason
from engine.seats import PerSeat, Seat
from engine.state import MatchState, OpeningPrivilege, Phase, Round
from engine.tiles import DOUBLE_SIX, Tile
from tests.support.rules.notation import layout as layout_of
from tests.support.rules.notation import tile, tiles

ONE, TWO = Seat.ONE, Seat.TWO
STARTED_NS = 1_000 * SECOND_NS
STORING_NS = 3_000_000
CREATED = ev.MatchCreated(0, shared_device=False, start_timeout_ns=600 * SECOND_NS, continue_timeout_ns=60 * SECOND_NS)
ON_SHARED_DEVICE = replace(CREATED, shared_device=True)
FIRST_HAND = "0-1 0-2 0-3 0-4 0-5 0-6 6-6"
SECOND_HAND = "1-1 1-2 1-3 1-4 1-5 1-6 5-5"


def seconds(count: int) -> int:
    """Whole seconds in nanoseconds."""
    return count * SECOND_NS


def playing(
    layout: str,
    *,
    one: str | None = None,
    two: str | None = None,
    boneyard: str | None = None,
    turn: Seat = ONE,
    must_play: str | None = None,
    passes: int = 0,
) -> MatchState:
    """A round in play. What is None holds the tiles named nowhere: the boneyard first of all, else a hand."""
    table = layout_of(layout)
    shares = [boneyard, two, one]
    named = [*table.tiles(), *(held for share in shares if share is not None for held in tiles(share))]
    rest = tuple(spare for spare in DOUBLE_SIX if spare not in named)
    unnamed = next((index for index, share in enumerate(shares) if share is None), None)
    held = [rest if index == unnamed else tiles(share or "") for index, share in enumerate(shares)]
    current = Round(
        number=1,
        opening=OpeningPrivilege.RANKED,
        hands=PerSeat(tuple(sorted(held[2])), tuple(sorted(held[1]))),
        boneyard=held[0],
        turn=turn,
        must_play=None if must_play is None else tile(must_play),
        layout=table,
        passes=passes,
    )
    return found(CREATED)._replace(
        version=20,
        phase=Phase.PLAYING if table.main_line else Phase.OPENING,
        round=current,
        waiting_until_ns=None,
        decision=Decision(turn, STARTED_NS, BANK_NS),
    )


def bidding(*, jockey: Seat = ONE, balances: tuple[int, int] = (150, 150), standing: int | None = None) -> MatchState:
    """An auction, with a standing bid or before the first; bids alternate in fives from 15, the opponent's first."""
    state = playing("", one=FIRST_HAND, two=SECOND_HAND)
    opponent_spoke_last = standing is not None and (standing - 15) // 5 % 2 == 0
    bidder = jockey.other if opponent_spoke_last else jockey
    bid = None if standing is None else StandingBid(bidder, standing)
    return bidding_on(state, Auction(jockey, bid), balances)


def bidding_on(state: MatchState, auction: Auction, balances: tuple[int, int]) -> MatchState:
    """The state with this auction in its round, and the player who must speak on turn."""
    turn = auction.jockey.other if auction.standing is None else auction.standing.bidder.other
    current = state.current._replace(number=2, opening=OpeningPrivilege.AUCTION, auction=auction, turn=turn)
    clocked = state._replace(decision=Decision(turn, STARTED_NS, BANK_NS))
    return clocked._replace(phase=Phase.BIDDING, round=current, balances=PerSeat(*balances))


def with_balances(state: MatchState, one: int, two: int) -> MatchState:
    """The state with other balances."""
    return state._replace(balances=PerSeat(one, two))


def with_bank(state: MatchState, bank_ns: int) -> MatchState:
    """The state with another bank for the player on turn."""
    assert state.decision is not None
    banks_ns = state.banks_ns.having(state.decision.seat, bank_ns)
    return state._replace(banks_ns=banks_ns, decision=replace(state.decision, bank_ns=bank_ns))


def on_shared_device(state: MatchState) -> MatchState:
    """The state on a shared device in the hands of the player on turn."""
    return state._replace(options=replace(state.options, shared_device=True), revealed=state.turn)


def when(
    state: MatchState,
    seat: Seat,
    command: cmd.Command,
    *,
    at_ns: int = SECOND_NS,
    arrival: Arrival | None = None,
    version: int | None = None,
    deal: tuple[Tile, ...] = DOUBLE_SIX,
    evidence: Evidence = NO_FAULTS,
) -> Ruling:
    """The ruling on a command that arrives `at_ns` after the decision began, or the match ended, or `STARTED_NS`."""
    stamp = arrival or Arrival.at(_began_ns(state) + at_ns)
    request = cmd.Request(seat, command, stamp, version)
    return decide(state, request, now_ns=stamp.latest_ns + STORING_NS, deal=deal, evidence=evidence)


def _began_ns(state: MatchState) -> int:
    if state.decision is not None:
        return state.decision.started_at_ns
    return STARTED_NS if state.result is None else state.result.at_ns


def events_of(ruling: Ruling) -> ev.Step:
    """The events of an accepted command."""
    assert ruling.refusal is None, ruling.refusal
    return ruling.events


def reason_of(ruling: Ruling) -> RefusalReason:
    """The reason of a command that was refused and changed nothing."""
    assert ruling.events == ()
    assert ruling.refusal is not None
    return ruling.refusal.reason


def then(state: MatchState, ruling: Ruling) -> MatchState:
    """The state after an accepted command."""
    return advance(state, events_of(ruling))


def sent(state: MatchState, *commands: tuple[Seat, cmd.Command]) -> MatchState:
    """The state after commands that are all accepted, each one second into its decision."""
    for seat, command in commands:
        state = then(state, when(state, seat, command))
    return state


def served(
    state: MatchState, command: cmd.ServiceCommand, *, now_ns: int = STARTED_NS, evidence: Evidence = NO_FAULTS
) -> ev.Step:
    """The events of a service command that is not refused."""
    ruling = decide_service(state, command, now_ns=now_ns, deal=DOUBLE_SIX, evidence=evidence)
    assert not isinstance(ruling, Refusal), ruling
    return ruling


def started_clock(step: ev.Step) -> ev.ClockStarted:
    """The one clock that a step started."""
    (started,) = [event for event in step if isinstance(event, ev.ClockStarted)]
    return started


def stopped_clock(step: ev.Step) -> ev.ClockStopped:
    """The one clock that a step stopped."""
    (stopped,) = [event for event in step if isinstance(event, ev.ClockStopped)]
    return stopped


def played(step: ev.Step) -> ev.TilePlayed:
    """The one play of a step."""
    (event,) = [event for event in step if isinstance(event, ev.TilePlayed)]
    return event


@dataclass
class Match:
    """A match from its creation on, as its log; every step is checked against the invariants."""

    created: ev.MatchCreated = CREATED
    now_ns: int = 0
    log: list[ev.Step] = field(default_factory=list)
    deal: tuple[Tile, ...] = DOUBLE_SIX

    def __post_init__(self) -> None:
        self.state = advance(None, self._logged((self.created,)))
        for seat, name in ((ONE, "Ada"), (TWO, "Bo")):
            self.serve(cmd.TakeSeat(seat, name))

    def send(self, seat: Seat, command: cmd.Command, *, wait_ns: int = SECOND_NS, version: int | None = None) -> Ruling:
        """A player's command after a wait, stored at the instant of its arrival."""
        self.now_ns += wait_ns
        request = cmd.Request(seat, command, Arrival.at(self.now_ns), version)
        ruling = decide(self.state, request, now_ns=self.now_ns, deal=self.deal)
        self._store(ruling.events)
        return ruling

    def serve(self, command: cmd.ServiceCommand, *, wait_ns: int = 0) -> ev.Step | Refusal:
        """A command of the service after a wait."""
        self.now_ns += wait_ns
        ruling = decide_service(self.state, command, now_ns=self.now_ns, deal=self.deal)
        self._store(() if isinstance(ruling, Refusal) else ruling)
        return ruling

    def start(self) -> "Match":
        """Both seats start, or the shared device once."""
        for seat in (ONE,) if self.created.shared_device else (ONE, TWO):
            events_of(self.send(seat, cmd.Start()))
        return self

    def _store(self, step: ev.Step) -> None:
        if step:
            self.state = advance(self.state, self._logged(step))
            check(self.state)

    def _logged(self, step: ev.Step) -> ev.Step:
        self.log.append(step)
        return step
