"""The one writer of a match: decides an order on the cached state, makes the result durable, moves the state on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from engine import invariants
from engine.clock import Arrival, Verdict
from engine.commands import CheckClock, Request
from engine.decide import Evidence, Ruling, decide, decide_service
from engine.events import MatchAborted, Step
from engine.evolve import advance
from engine.faults import Fault, FaultCause
from engine.refusals import Refusal
from engine.state import MatchState, Phase, acting_seat
from engine.tiles import Tile
from service.deadlines import Deadlines
from service.ledger import FaultLedger
from service.line import Done, PlayerOrder, ServiceOrder
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
from service.watches import Recent
from service.watermark import Watermark

CONFLICT_RETRIES = 8
"""How often a command is decided again because another writer moved the match."""
REPLAY_SLICE = 256
"""Steps folded before the event loop gets its turn."""


class UnknownMatchError(Exception):
    """There is no such match."""


class ClocksStandError(Exception):
    """The service is about to stop and the match's clocks stand: repeat the command when it is back."""


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


class MatchWriter:
    """The state of one match as the store has it, and the only code that changes it."""

    def __init__(self, match_id: str, services: Services) -> None:
        self.recent = Recent()
        self._match_id = match_id
        self._services = services
        self._state: MatchState | None = None
        self._loading = asyncio.Lock()

    async def state(self) -> MatchState:
        """The match now. Raises UnknownMatchError or StoreUnavailableError."""
        if self._state is None:
            async with self._loading:
                if self._state is None:
                    self._state = await self._load()
        return self._state

    def forget(self, *, older_than: int | None = None) -> None:
        """The store may know more than the cached state, or does when that is older than this version."""
        if older_than is None or (self._state is not None and self._state.version < older_than):
            self._state = None

    async def settle_due(self, due_ns: int) -> MatchState:
        """Settle what is due at this instant; everything stamped before it has been handled."""
        return (await self.carry_out(ServiceOrder(CheckClock(due_ns)))).state

    async def carry_out(self, order: PlayerOrder | ServiceOrder) -> Done:
        """Decide and store. After an error the outcome of the write may be unknown: `forget` must follow."""
        for _ in range(CONFLICT_RETRIES):
            try:
                if isinstance(order, PlayerOrder):
                    return await self._player_attempt(order)
                return await self._service_attempt(order)
            except VersionConflictError:
                self.forget()  # decide again on the newer state, with the same stamp
            except DuplicateCommandError:
                assert isinstance(order, PlayerOrder)
                return await self._repeated(order)
        raise StoreUnavailableError

    async def _load(self) -> MatchState:
        state: MatchState | None = None
        self.recent = Recent()
        steps = await self._services.store.steps(self._match_id)
        for number, step in enumerate(steps, start=1):
            state = advance(state, step)
            self.recent.add(number, step)
            if number % REPLAY_SLICE == 0:
                await asyncio.sleep(0)
        if state is None:
            raise UnknownMatchError
        return state

    async def _player_attempt(self, order: PlayerOrder) -> Done:
        state = await self.state()
        if state.suspended_at_ns is not None:
            raise ClocksStandError
        services = self._services
        seat = order.seat or acting_seat(state)
        request = Request(seat, order.command, order.arrival, order.expected_version, order.seat is not None)
        evidence = services.ledger.evidence(self._match_id)
        ruling = decide(state, request, now_ns=services.clock.now_ns(), deal=self._deal(state), evidence=evidence)
        decision = None if ruling.verdict is Verdict.NOT_TIMED else state.decision
        receipt = Receipt(request.arrival, decision, services.clock.error_bound_ns(), ruling.verdict)
        version = state.version + 1 if ruling.events and ruling.refusal is None else state.version
        record = CommandRecord(order.sender, order.command_id, order.body_hash, version, ruling.refusal, receipt)
        self._prove(ruling, request.arrival, evidence, is_over=state.result is not None)
        try:
            after = await self._commit(state, ruling.events, record=record)
        except StoreUnavailableError:
            if decision is not None and ruling.refusal is None:
                self._blame(FaultCause.NOT_COMMITTED, request.arrival, "a command in time could not be stored")
            raise
        services.metrics.command(request.command, ruling.refusal)
        services.metrics.committed(services.clock.now_ns() - request.arrival.latest_ns)
        return Done(after, record)

    def _prove(self, ruling: Ruling, arrival: Arrival, evidence: Evidence, *, is_over: bool) -> None:
        """An abort that no row of the ledger speaks for is proven by the command's own stamp: that becomes a row."""
        known = [str(fault) for fault in evidence.faults]
        for event in ruling.events:
            if isinstance(event, MatchAborted) and event.evidence not in known:
                self._blame(
                    FaultCause.NOT_COMMITTED if is_over else FaultCause.STAMP_STRADDLES, arrival, event.evidence
                )

    def _blame(self, cause: FaultCause, arrival: Arrival, evidence: str) -> None:
        fault = Fault(cause, arrival.earliest_ns, max(arrival.latest_ns, self._services.clock.now_ns()), evidence)
        self._services.ledger.record(fault, self._match_id)

    async def _service_attempt(self, order: ServiceOrder) -> Done:
        state = await self.state()
        ruling = decide_service(
            state,
            order.command,
            now_ns=self._services.clock.now_ns(),
            deal=self._deal(state),
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
    ) -> MatchState:
        """Make the step durable, then known. Nobody hears of it before."""
        after = advance(state, step) if step else state
        invariants.check(after)
        await self._services.store.append(
            Append(
                match_id=self._match_id,
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
                self._services.ledger.forget(self._match_id)
        return after

    async def _repeated(self, order: PlayerOrder) -> Done:
        record = await self._services.store.command(self._match_id, order.sender, order.command_id)
        assert record is not None
        return Done(await self.state(), record, repeated=True)

    def _deal(self, state: MatchState) -> tuple[Tile, ...]:
        return self._services.entropy.deal() if state.phase in (Phase.NOT_STARTED, Phase.SETTLED) else ()
