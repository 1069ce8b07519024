"""One match on this server: its cached state, its line, and the one writer that works the line off."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from engine import invariants
from engine.clock import Arrival, Verdict
from engine.commands import CheckClock, Request
from engine.decide import decide, decide_service
from engine.events import Step
from engine.evolve import advance
from engine.faults import Fault, FaultCause
from engine.refusals import Refusal
from engine.state import MatchState, Phase, acting_seat
from engine.tiles import Tile
from engine.view import Audience
from service.deadlines import Deadlines
from service.ledger import FaultLedger
from service.line import Done, Line, PlayerOrder, ServiceOrder, Ticket
from service.logs import get_logger
from service.metrics import Metrics
from service.ports import (
    Append,
    Bus,
    Clock,
    CommandRecord,
    DuplicateCommandError,
    Entropy,
    Receipt,
    Store,
    StoreUnavailableError,
    VersionConflictError,
)
from service.watches import Recent, Watch
from service.watermark import Watermark

CONFLICT_RETRIES = 8
"""How often a command is decided again because another writer moved the match."""
STORE_RETRY_NS = 1_000_000_000
"""When a deadline is tried again that met an unavailable store."""
REPLAY_SLICE = 256
"""Steps folded before the event loop gets its turn."""


class UnknownMatchError(Exception):
    """There is no such match."""


@dataclass(frozen=True, slots=True)
class Services:
    """What every match works with."""

    store: Store
    clock: Clock
    bus: Bus
    entropy: Entropy
    metrics: Metrics
    deadlines: Deadlines
    ledger: FaultLedger
    watermark: Watermark
    spawn: Callable[[Coroutine[object, object, None]], object]


class Match:
    """One match. Everything that changes it passes through its line; only `_work` touches the state."""

    def __init__(self, match_id: str, services: Services) -> None:
        self.match_id = match_id
        self.recent = Recent()
        self._services = services
        self._state: MatchState | None = None
        self._line = Line()
        self._works = False
        self._loading = asyncio.Lock()
        self._published_version = 0
        self._watches: set[Watch] = set()
        self.presence = (False, False)
        """Whether a stream of seat ONE is open here, and one of seat TWO; a shared device counts as both."""
        self._unsubscribe: Callable[[], None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nobody needs this object: it can be made again from the store."""
        return not (self._works or self._line or self._watches)

    def enter(self, arrival: Arrival, order: PlayerOrder | ServiceOrder | None = None) -> Ticket:
        """Take a place in the line. Without an order, `fill` or `withdraw` must follow. Raises LineFullError."""
        ticket = self._line.enter(arrival, order)
        self.wake()
        return ticket

    def fill(self, ticket: Ticket, order: PlayerOrder) -> None:
        """The sender of an earlier `enter` was checked."""
        self._line.fill(ticket, order)

    def withdraw(self, ticket: Ticket) -> None:
        """The sender of an earlier `enter` was turned away."""
        self._line.withdraw(ticket)

    def wake(self) -> None:
        """Work the line off, and whatever is due. The work belongs to the server: no client's death stops it."""
        if not self._works:
            self._works = True
            self._services.spawn(self._work())

    async def state(self) -> MatchState:
        """The match now. Raises UnknownMatchError or StoreUnavailableError."""
        if self._state is None:
            async with self._loading:
                if self._state is None:
                    self._state = await self._load()
        return self._state

    def watch(self, audience: Audience, after_version: int) -> Watch:
        """Begin to watch; `unwatch` must follow."""
        watch = Watch(audience, after_version)
        self._watches.add(watch)
        if self._unsubscribe is None:
            self._unsubscribe = self._services.bus.subscribe(self.match_id, self._heard)
        self._update_presence()
        return watch

    def unwatch(self, watch: Watch) -> None:
        """End a watch."""
        self._watches.discard(watch)
        if not self._watches and self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        self._update_presence()

    def send_away(self) -> None:
        """Ask every stream to end with its resume point."""
        for watch in self._watches:
            watch.going_away = True
            watch.wake()

    def _update_presence(self) -> None:
        audiences = {watch.audience for watch in self._watches}
        device = Audience.DEVICE in audiences
        presence = (device or Audience.SEAT_ONE in audiences, device or Audience.SEAT_TWO in audiences)
        if presence != self.presence:
            self.presence = presence
            for watch in self._watches:
                watch.wake()

    def _heard(self, version: int) -> None:
        if self._state is not None and self._state.version < version and not self._works:
            self._state = None  # another replica moved the match
        for watch in self._watches:
            watch.wake()

    async def _load(self) -> MatchState:
        state: MatchState | None = None
        steps = await self._services.store.steps(self.match_id)
        for number, step in enumerate(steps, start=1):
            state = advance(state, step)
            self.recent.add(number, step)
            if number % REPLAY_SLICE == 0:
                await asyncio.sleep(0)
        if state is None:
            raise UnknownMatchError
        return state

    async def _work(self) -> None:
        try:
            while await self._work_once():
                pass
        except Exception as error:  # noqa: BLE001  whatever it is, those in the line wait for it
            self._turn_all_away(error)
        finally:
            self._works = False

    async def _work_once(self) -> bool:
        """Handle the first ticket, or what is due before it; False when there is nothing to do."""
        state = await self.state()
        ticket = self._line.first()
        due_ns = state.due_ns
        if due_ns is not None and (ticket is None or ticket.stamp_ns >= due_ns):
            if self._services.watermark.closed_ns < due_ns <= self._services.clock.now_ns():
                await self._services.watermark.reach(due_ns)  # K4: something older may still be on its way in
                return True
            if ticket is None and self._services.watermark.closed_ns >= due_ns:
                await self._settle_due(due_ns)
                return True
        if ticket is None:
            self._services.deadlines.arm(self.match_id, due_ns)
            return False
        if ticket.order is None:
            await self._line.changed()
            return True
        await self._carry_out(ticket, ticket.order)
        return True

    async def _settle_due(self, due_ns: int) -> None:
        try:
            self._publish((await self._service_attempt(ServiceOrder(CheckClock(due_ns)))).state)
        except VersionConflictError:
            self._state = None

    def _publish(self, state: MatchState) -> None:
        if state.version > self._published_version:
            self._published_version = state.version
            self._services.bus.publish(self.match_id, state.version)

    async def _carry_out(self, ticket: Ticket, order: PlayerOrder | ServiceOrder) -> None:
        self._line.leave(ticket)
        try:
            done = await self._done(order)
        except Exception as error:  # noqa: BLE001  whatever it is, the sender waits for it
            self._state = None  # the outcome of the write is unknown; the store knows
            if not ticket.done.done():
                ticket.done.set_exception(error)
            return
        if not ticket.done.done():  # a sender that hung up cancelled its future; the command counts all the same
            ticket.done.set_result(done)
        self._publish(done.state)  # after the reply, so that a stream sends the outcome before the update

    async def _done(self, order: PlayerOrder | ServiceOrder) -> Done:
        for _ in range(CONFLICT_RETRIES):
            try:
                if isinstance(order, PlayerOrder):
                    return await self._player_attempt(order)
                return await self._service_attempt(order)
            except VersionConflictError:
                self._state = None  # decide again on the newer state, with the same stamp
            except DuplicateCommandError:
                assert isinstance(order, PlayerOrder)
                return await self._repeated(order)
        raise StoreUnavailableError

    async def _player_attempt(self, order: PlayerOrder) -> Done:
        state = await self.state()
        services = self._services
        seat = order.seat or acting_seat(state)
        request = Request(seat, order.command, order.arrival, order.expected_version)
        evidence = services.ledger.evidence(self.match_id)
        ruling = decide(state, request, now_ns=services.clock.now_ns(), deal=self._deal(state), evidence=evidence)
        decision = None if ruling.verdict is Verdict.NOT_TIMED else state.decision
        receipt = Receipt(request.arrival, decision, services.clock.error_bound_ns(), ruling.verdict)
        version = state.version + 1 if ruling.events and ruling.refusal is None else state.version
        record = CommandRecord(order.sender, order.command_id, order.body_hash, version, ruling.refusal, receipt)
        if ruling.verdict is Verdict.UNPROVABLE:
            self._blame(FaultCause.STAMP_STRADDLES, request.arrival, "a stamp across the deadline is too wide")
        try:
            after = await self._commit(state, ruling.events, record=record)
        except StoreUnavailableError:
            if decision is not None and ruling.refusal is None:
                self._blame(FaultCause.NOT_COMMITTED, request.arrival, "a command in time could not be stored")
            raise
        services.metrics.command(request.command, ruling.refusal)
        services.metrics.committed(services.clock.now_ns() - request.arrival.latest_ns)
        return Done(after, record)

    def _blame(self, cause: FaultCause, arrival: Arrival, evidence: str) -> None:
        fault = Fault(cause, arrival.earliest_ns, max(arrival.latest_ns, self._services.clock.now_ns()), evidence)
        self._services.ledger.record(fault, self.match_id)

    async def _service_attempt(self, order: ServiceOrder) -> Done:
        state = await self.state()
        ruling = decide_service(
            state,
            order.command,
            now_ns=self._services.clock.now_ns(),
            deal=self._deal(state),
            evidence=self._services.ledger.evidence(self.match_id),
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
    ) -> MatchState:
        """Make the step durable, then known. Nobody hears of it before."""
        after = advance(state, step) if step else state
        invariants.check(after)
        await self._services.store.append(
            Append(
                match_id=self.match_id,
                expected_version=state.version,
                events=step,
                due_ns=after.due_ns,
                live=after.result is None,
                record=record,
                credentials=(joining.credential,) if joining and joining.credential else (),
                seat_request=joining.seat_request if joining else None,
            ),
        )
        if step:
            self._state = after
            self.recent.add(after.version, step)
            self._services.metrics.step(step)
            if after.result is not None:
                self._services.ledger.forget(self.match_id)
        return after

    async def _repeated(self, order: PlayerOrder) -> Done:
        record = await self._services.store.command(self.match_id, order.sender, order.command_id)
        assert record is not None
        return Done(await self.state(), record, repeated=True)

    def _deal(self, state: MatchState) -> tuple[Tile, ...]:
        return self._services.entropy.deal() if state.phase in (Phase.NOT_STARTED, Phase.SETTLED) else ()

    def _turn_all_away(self, error: Exception) -> None:
        self._state = None
        while (ticket := self._line.first()) is not None:
            self._line.leave(ticket)
            if not ticket.done.done():
                ticket.done.set_exception(error)
        if not isinstance(error, UnknownMatchError):
            get_logger().error("match_not_worked", match_id=self.match_id, exc_info=error)
            retry_ns = self._services.clock.now_ns() + STORE_RETRY_NS
            self._services.deadlines.arm(self.match_id, retry_ns)
