"""The one writer of a match: decides an order on the cached state, makes the result durable, moves the state on."""

from __future__ import annotations

import asyncio

from engine import invariants
from engine.clock import Arrival, Verdict
from engine.commands import CheckClock, Request, Start
from engine.decide import Evidence, Ruling, decide, decide_service
from engine.events import MatchAborted, Step
from engine.evolve import advance
from engine.faults import Fault, FaultCause
from engine.refusals import Refusal
from engine.state import MatchState, acting_seat
from service.dealing import MatchDeals, may_deal
from service.footing import Footing
from service.late_turns import LateTurns
from service.line import Done, PlayerOrder, ServiceOrder, Ticket
from service.logs import get_logger
from service.metrics.timing import Instants
from service.owed_stamps import OwedStamps
from service.past import Past
from service.ports import (
    Append,
    CommandRecord,
    DealSecrets,
    DuplicateCommandError,
    Receipt,
    StoreUnavailableError,
    VersionConflictError,
)
from service.services import Services
from service.watches import Recent

CONFLICT_RETRIES = 8
"""How often a command is decided again because another writer moved the match."""
BLAMED_EVERY_NS = 1_000_000_000
"""One row of the ledger is enough for so long; it concerns the decision that ran when its command came."""
UNCERTAIN_NS = 50_000_000
"""A clock that may be so far from the store's stamps nothing: too much could not be proven."""


class UnknownMatchError(Exception):
    """There is no such match."""


class ClocksStandError(Exception):
    """The service is about to stop and the match's clocks stand: repeat the command when it is back."""


class MatchWriter:
    """The state of one match as the store has it, and the only code that changes it."""

    def __init__(self, match_id: str, services: Services) -> None:
        self.recent = Recent()
        self._match_id = match_id
        self._services = services
        self._state: MatchState | None = None
        self._doubts = self._settled_doubts = 0
        """How often the cached state was doubted, and how many of these a look into the store has settled."""
        self._deals = MatchDeals(match_id, services.store, services.shuffle)
        self._late_turns = LateTurns(match_id, services.clock, services.ledger)
        self._past = Past(match_id, services.store)
        self._loading = asyncio.Lock()
        self._is_known = False
        self._unproven: Ticket | None = None
        """Stands for strangers' commands that could not be checked: no expiry is settled before it is known whether
        there is such a match, which is then told of its fault. Anybody can make up the id of a match."""
        self._owed = OwedStamps()
        self._blamed_ns = -BLAMED_EVERY_NS
        self._footing = Footing(services.turns)
        self._decided_ns = self._stored_ns = 0
        self._moved = (0, 0)

    async def state(self) -> MatchState:
        """The match now. Raises UnknownMatchError or StoreUnavailableError."""
        while (known := self.known) is None:  # also while somebody else is still looking
            async with self._loading:
                if self.known is None:
                    await self._load()
        return known

    @property
    def known(self) -> MatchState | None:
        """The match as far as is known here; None while that is nothing, or is doubted."""
        return None if self._doubts > self._settled_doubts else self._state

    @property
    def is_in_doubt(self) -> bool:
        """Whether a command could not be checked that the match, if there is one, must be told of."""
        return self._unproven is not None

    def durable_ns(self, version: int) -> int | None:
        """When this version became durable, if it is the last one that was made here."""
        return self._moved[1] if self._moved[0] == version else None

    def forget(self, *, older_than: int | None = None) -> None:
        """The store may know more than the cached state, or does when that is older than this version."""
        if older_than is None or self.is_behind(older_than):
            self._doubts += 1
            self._deals.forget()

    @property
    def tail(self) -> tuple[int, Step] | None:
        """The last version that is known here and the step that made it, if any is."""
        return None if self._state is None else (self._state.version, self.recent.step(self._state.version))

    def start_over(self) -> None:
        """The store has lost what is known here: it is to be read from the beginning."""
        self._state, self._moved, self.recent = None, (0, 0), Recent()
        self._late_turns = LateTurns(self._match_id, self._services.clock, self._services.ledger)
        self._deals.forget()

    def is_behind(self, version: int) -> bool:
        """Whether the cached state is, or may be, older than this version."""
        known = self.known
        return known is None or known.version < version

    async def settle_due(self, due_ns: int) -> MatchState:
        """Settle what is due at this instant; everything stamped before it has been handled."""
        return (await self.carry_out(ServiceOrder(CheckClock(due_ns)))).state

    async def carry_out(self, order: PlayerOrder | ServiceOrder) -> Done:
        """Decide and store. After an error the outcome of the write may be unknown: `forget` must follow."""
        self._footing.begin()
        for _ in range(CONFLICT_RETRIES):
            try:
                if isinstance(order, PlayerOrder):
                    return await self._player_attempt(order)
                return await self._service_attempt(order)
            except VersionConflictError as error:
                self._late_turns.overtaken(error)
                self.forget()  # decide again on the newer state, with the same stamp
            except DuplicateCommandError as error:
                assert isinstance(order, PlayerOrder)
                self._late_turns.overtaken(error)
                return await self._repeated(order)
            except StoreUnavailableError:
                if isinstance(order, PlayerOrder):
                    self._owed.owe(order)
                raise
        raise StoreUnavailableError

    def turned_away(self, ticket: Ticket) -> None:
        """The store could not even say what the command meets or who sent it; but it may have been in time."""
        if isinstance(ticket.order, PlayerOrder):  # whose token was good, so there is such a match
            self._owed.owe(ticket.order)
            self._blame_undecided(ticket.stamp_ns)
        elif self._is_known:
            self._blame_undecided(ticket.stamp_ns)
        elif ticket.order is None and (self._unproven is None or ticket.stamp_ns < self._unproven.stamp_ns):
            self._end_doubt()
            self._unproven = Ticket(ticket.stamp_ns, 0)
            self._services.watermark.in_flight.add(self._unproven)

    def _end_doubt(self) -> None:
        if self._unproven is not None:
            self._services.watermark.in_flight.discard(self._unproven)
            self._unproven = None

    def _blame_undecided(self, stamp_ns: int) -> None:
        is_covered = self._blamed_ns <= stamp_ns < self._blamed_ns + BLAMED_EVERY_NS
        if not is_covered:  # such as an older one that is turned away after a newer one
            self._blamed_ns = stamp_ns
            arrival = Arrival(stamp_ns, self._services.clock.now_ns())
            self._blame(FaultCause.NOT_COMMITTED, arrival, "a command could not be decided")

    async def _load(self) -> None:
        """Read what the store has behind the cached state. Raises UnknownMatchError or StoreUnavailableError."""
        state, doubts, turn = self._state, self._doubts, self._services.turns.turn
        version, began_ns = 0 if state is None else state.version, self._services.clock.now_ns()
        recent = self.recent
        state, first, folded = await self._past.read(state, recent)
        if turn != self._services.turns.turn or recent is not self.recent:
            return  # what was read, or known before, may be lost: look again
        if state is None:
            self._end_doubt()
            raise UnknownMatchError
        self._is_known, self._settled_doubts = True, doubts
        if self._unproven is not None:
            self._blame_undecided(self._unproven.stamp_ns)
            self._end_doubt()
        if self._state is None or self._state.version <= version:  # else a write was faster
            self._late_turns.found(first, began_ns)
        if self._state is None or self._state.version < state.version:
            self._state = state
            self._services.metrics.game.loaded(self._match_id, folded, state)
        self._services.metrics.timing.loaded(self._services.clock.now_ns() - began_ns)

    async def _player_attempt(self, order: PlayerOrder) -> Done:
        state = self.known or await self.state()
        self._footing.read()
        starts_a_clock = state.handover is not None  # or it had one, which was suspended
        if state.suspended_at_ns is not None or (starts_a_clock and self._services.standstill.has_begun):
            raise ClocksStandError
        services = self._services
        seat = order.seat or acting_seat(state)
        arrival = self._owed.first(order)
        request = Request(seat, order.command, arrival, order.expected_version, order.seat is not None)
        deal = await self._deals.order_for(state, order) if may_deal(state, order) else ()
        evidence = services.ledger.evidence(self._match_id)
        begun_ns = services.clock.now_ns()
        ruling = decide(state, request, now_ns=begun_ns, deal=deal, evidence=evidence)
        opens = isinstance(order.command, Start) and ruling.refusal is None
        opened = await self._deals.opened_by(state, order, seat) if opens else None
        decision = None if ruling.verdict is Verdict.NOT_TIMED else state.decision
        receipt = Receipt(request.arrival, decision, services.clock.error_bound_ns(), ruling.verdict)
        version = state.version + 1 if ruling.events and ruling.refusal is None else state.version
        record = CommandRecord(order.sender, order.command_id, order.body_hash, version, ruling.refusal, receipt)
        self._prove(ruling, request.arrival, evidence, is_over=state.result is not None)
        try:
            after = await self._commit(state, ruling.events, record=record, opened=opened)
        except StoreUnavailableError:
            if decision is not None and ruling.refusal is None:
                since = Arrival(max(arrival.earliest_ns, decision.started_at_ns), arrival.latest_ns)
                self._blame(FaultCause.NOT_COMMITTED, since, "a command in time could not be stored")
            raise
        self._owed.settle(order)
        self._count(order, record, Instants(begun_ns, self._decided_ns, self._stored_ns))
        return Done(after, record)

    def _count(self, order: PlayerOrder, record: CommandRecord, instants: Instants) -> None:
        metrics = self._services.metrics
        metrics.game.decided(order.command, record.refusal)
        metrics.timing.judged(record.receipt, accepted=record.refusal is None)
        example = {"match_id": self._match_id}
        if order.trace is not None:
            outcome = "accepted" if record.refusal is None else record.refusal.reason.name.lower()
            order.trace.end(self._match_id, outcome, instants.committed_ns, instants.marks())
            example["trace_id"] = order.trace.trace_id
        metrics.timing.committed(example, record.receipt.arrival, instants)

    def _prove(self, ruling: Ruling, arrival: Arrival, evidence: Evidence, *, is_over: bool) -> None:
        """An abort that no row of the ledger speaks for is proven by the command's own stamp: that becomes a row."""
        for event in ruling.events:
            if isinstance(event, MatchAborted) and event.evidence not in map(str, evidence.faults):
                self._blame(
                    FaultCause.NOT_COMMITTED if is_over else FaultCause.STAMP_STRADDLES, arrival, event.evidence
                )

    def _blame(self, cause: FaultCause, arrival: Arrival, evidence: str) -> None:
        fault = Fault(cause, arrival.earliest_ns, max(arrival.latest_ns, self._services.clock.now_ns()), evidence)
        self._services.ledger.record(fault, self._match_id)

    async def _service_attempt(self, order: ServiceOrder) -> Done:
        state = await self.state()
        deal = await self._deals.order_for(state, order) if may_deal(state, order) else ()
        ruling = decide_service(
            state,
            order.command,
            now_ns=self._services.clock.now_ns(),
            deal=deal,
            evidence=self._services.ledger.evidence(self._match_id),
        )
        if isinstance(ruling, Refusal):
            return Done(state, None, refusal=ruling)
        return Done(await self._commit(state, ruling, joining=order) if ruling else state, None)

    async def _commit(
        self,
        state: MatchState,
        step: Step,
        *,
        record: CommandRecord | None = None,
        joining: ServiceOrder | None = None,
        opened: DealSecrets | None = None,
    ) -> MatchState:
        """Make the step durable, then known. Nobody hears of it before."""
        after = advance(state, step) if step else state
        invariants.check(after)
        if isinstance(after.result, MatchAborted):
            await self._services.ledger.store()  # the proof before what follows from it
        change = Append(
            match_id=self._match_id,
            expected_version=state.version,
            events=step,
            due_ns=after.due_ns,
            live=after.result is None,
            record=record,
            credentials=(joining.credential,) if joining and joining.credential else (),
            seat_request=joining.seat_request if joining else None,
            deal=opened,
            snapshot=self._past.snapshot(step, after),
        )
        self._footing.require(change)
        self._late_turns.handing_in(step)
        self._decided_ns = self._services.clock.now_ns()
        await self._services.store.append(change)
        self._stored_ns = self._services.clock.now_ns()
        if opened is not None:
            self._deals.keep(opened)
        if change.snapshot is not None:
            self._past.stored(change.snapshot)
        if step:
            self._move(step, after)
        return after

    def _move(self, step: Step, after: MatchState) -> None:
        """A step was stored: everybody may know."""
        if self._state is None or self._state.version < after.version:  # else a read was faster, and may know more
            self._state = after
        self._moved = after.version, self._stored_ns
        self.recent.add(after.version, step)
        self._services.metrics.game.stored(self._match_id, step, after)
        self._late_turns.stored(step, self._stored_ns)
        if after.result is not None:
            self._services.ledger.forget(self._match_id)
            get_logger().info("match_finished", match_id=self._match_id, result=after.result.reason.name.lower())

    async def _repeated(self, order: PlayerOrder) -> Done:
        record = await self._services.store.command(self._match_id, order.sender, order.command_id)
        assert record is not None
        self._services.metrics.game.repeated()
        if order.trace is not None:
            order.trace.end(self._match_id, "repeated", self._services.clock.now_ns(), {})
        self.forget(older_than=record.version)  # another process may have carried it out
        return Done(await self.state(), record, repeated=True)
