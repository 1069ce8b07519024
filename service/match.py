"""One match on this server: its line, worked off by one task at a time, and the streams that watch it."""

from __future__ import annotations

from collections.abc import Callable

from engine.clock import Arrival
from engine.events import Step
from engine.state import MatchState
from engine.view import Audience
from service.failures import failure_of
from service.line import Line, PlayerOrder, ServiceOrder, Ticket, Waiter
from service.logs import about, get_logger
from service.metrics.game import Failure
from service.metrics.process import Limit
from service.ports import StoreUnavailableError
from service.services import Services
from service.watches import Recent, Watch
from service.writer import UNCERTAIN_NS, MatchWriter, UnknownMatchError

STORE_RETRY_NS = 1_000_000_000
"""When a match is tried again that met an unavailable store."""


class VersionsLostError(Exception):
    """The store has lost versions that streams were shown: who watches must begin anew."""


class Match:
    """One match. Everything that changes it passes through its line."""

    def __init__(self, match_id: str, services: Services) -> None:
        self.match_id = match_id
        self._services = services
        self._writer = MatchWriter(match_id, services)
        self._line = Line(lambda: services.metrics.process.shed(Limit.LINE), services.watermark.in_flight.discard)
        self._works = False
        self._published_version = 0
        self._watches: dict[Watch, None] = {}  # in the order of their coming, which a set does not keep
        self.presence = (False, False)
        """Whether a stream of seat ONE is open here, and one of seat TWO; a shared device counts as both."""
        self._unsubscribe: Callable[[], None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nobody needs this object: it can be made again from the store."""
        return not (self._works or self._line or self._watches or self._writer.is_in_doubt)

    @property
    def is_watched(self) -> bool:
        """Whether a stream is open here."""
        return bool(self._watches)

    @property
    def recent(self) -> Recent:
        """The events of the last versions."""
        return self._writer.recent

    @property
    def tail(self) -> tuple[int, Step] | None:
        """The last version that is known here and the step that made it, if any is."""
        return self._writer.tail

    def start_over(self) -> None:
        """The store has lost what is known here; streams end, as they may have shown what is no more."""
        self._writer.start_over()
        self._published_version = 0
        for watch in self._watches:
            watch.end(VersionsLostError())
        self.wake()

    def durable_ns(self, version: int) -> int | None:
        """When this version became durable, if it is the last one that was made here."""
        return self._writer.durable_ns(version)

    async def state(self) -> MatchState:
        """The match now, wherever it was moved last. Raises UnknownMatchError or StoreUnavailableError."""
        self._look_again_if_shared()
        return await self._writer.state()

    @property
    def known(self) -> MatchState | None:
        """The match as far as news of it have come, None when that is to be looked up."""
        return self._writer.known

    async def known_state(self) -> MatchState:
        """The match as far as news of it have come, for a stream that follows it. Raises as `state`."""
        return await self._writer.state()

    def _look_again_if_shared(self) -> None:
        if self._services.bus.poll_seconds is not None:
            self._writer.forget()

    def enter(
        self, arrival: Arrival, order: PlayerOrder | ServiceOrder | None = None, waiter: Waiter | None = None
    ) -> Ticket:
        """Take a place in the line. Without an order, `fill` or `withdraw` must follow.

        Raises LineFullError, or StoreUnavailableError while the clock is too far from the store's.
        """
        if self._services.clock.error_bound_ns() > UNCERTAIN_NS:
            self._services.metrics.clock.unstamped.inc()
            error = StoreUnavailableError("the clock is not sure")
            self._count_failure(order, error)
            raise error
        ticket = self._line.enter(arrival, order, waiter)
        self._services.watermark.in_flight.add(ticket)
        self.wake()
        return ticket

    def fill(self, ticket: Ticket, order: PlayerOrder | ServiceOrder) -> None:
        """The sender of an earlier `enter` was checked, or the time of an earlier `hold` has come."""
        self._line.fill(ticket, order)

    def withdraw(self, ticket: Ticket) -> None:
        """The sender of an earlier `enter` was turned away."""
        self._line.withdraw(ticket)

    def lose(self, ticket: Ticket) -> None:
        """The store could not say who sent an earlier `enter`: if it was in time, that is the service's failure."""
        self._writer.turned_away(ticket)
        self._line.withdraw(ticket)

    def hold(self, arrival: Arrival) -> Ticket:
        """Take a place for the service, however long the line is; `fill` must follow. What came later waits."""
        ticket = self._line.hold(arrival)
        self.wake()
        return ticket

    def wake(self) -> None:
        """Work the line off, and whatever is due. The work belongs to the server: no client's death stops it."""
        if not self._works:
            self._works = True
            self._services.spawn(self._work())

    def watch(self, audience: Audience, after_version: int) -> Watch:
        """Begin to watch; `unwatch` must follow."""
        watch = Watch(audience, after_version)
        self._watches[watch] = None
        if self._unsubscribe is None:
            self._look_again_if_shared()
            self._unsubscribe = self._services.bus.subscribe(self.match_id, self.heard)
        else:
            self._writer.forget(older_than=after_version)  # the viewer may have seen more elsewhere
        self._update_presence()
        return watch

    def unwatch(self, watch: Watch) -> None:
        """End a watch."""
        self._watches.pop(watch, None)
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

    def is_behind(self, version: int) -> bool:
        """Whether the match may be older here than this."""
        return self._writer.is_behind(version)

    def look_again(self) -> None:
        """Another process may have moved the match, or should have settled it and is gone."""
        self._writer.forget()
        self.wake()

    def heard(self, version: int | None) -> None:
        """The match is at this version; with None anything may have been missed."""
        self._writer.forget(older_than=version)
        self._published_version = max(self._published_version, version or 0)  # whoever moved it told everybody
        for watch in self._watches:
            watch.wake()

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
        state = self._writer.known or await self._writer.state()
        self._published_version = self._published_version or state.version  # what was there at first is no news
        self._publish(state)  # what is there after a write whose answer was lost may be
        ticket = self._line.first()
        due_ns = state.due_ns
        if due_ns is not None and (ticket is None or ticket.stamp_ns >= due_ns):
            closed_ns = self._services.watermark.closed_ns
            if closed_ns < due_ns <= self._services.clock.now_ns():
                # K4: something older may still be on its way in; when it has come here, others wait for that.
                await self._services.watermark.approach(due_ns)
                return True
            is_players = ticket is not None and isinstance(ticket.order, PlayerOrder)  # whose refusal says it was late
            if not is_players and closed_ns >= due_ns:
                self._publish(await self._writer.settle_due(due_ns))
                return True
        if ticket is None:
            self._services.deadlines.arm(self.match_id, due_ns)
            return False
        if ticket.order is None:
            await self._line.changed()
            return True
        await self._carry_out(ticket, ticket.order)
        return True

    def _publish(self, state: MatchState) -> None:
        if state.version > self._published_version:
            self._published_version = state.version
            self._services.bus.publish(self.match_id, state.version)

    async def _carry_out(self, ticket: Ticket, order: PlayerOrder | ServiceOrder) -> None:
        about.set((self.match_id, self._published_version, order))
        try:
            done = await self._writer.carry_out(order)
        except Exception as error:  # noqa: BLE001  whatever it is, the sender waits for it
            self._writer.forget()  # the outcome of the write is unknown; the store knows
            self._count_failure(order, error)
            if not ticket.waiter.done():
                ticket.waiter.set_exception(error)
            return
        finally:
            about.set(None)
            self._line.leave(ticket)
        if not ticket.waiter.done():  # a sender that hung up cancelled its future; the command counts all the same
            ticket.waiter.set_result(done)
        self._publish(done.state)  # after the reply, so that a stream sends the outcome before the update
        durable_ns = self.durable_ns(done.state.version)
        if done.record is not None and done.record.refusal is None and not done.repeated and durable_ns is not None:
            self._services.metrics.timing.published(self._services.clock.now_ns() - durable_ns)

    def _turn_all_away(self, error: Exception) -> None:
        self._writer.forget()
        while (ticket := self._line.first()) is not None:
            if isinstance(error, StoreUnavailableError):
                self._writer.turned_away(ticket)
            self._count_failure(ticket.order, error)
            self._line.leave(ticket)
            if not ticket.waiter.done():
                ticket.waiter.set_exception(error)
        if not isinstance(error, UnknownMatchError):
            if isinstance(error, StoreUnavailableError):
                get_logger().warning("match_waits_for_store", match_id=self.match_id)
            else:
                get_logger().error("match_not_worked", match_id=self.match_id, exc_info=error)
            retry_ns = self._services.clock.now_ns() + STORE_RETRY_NS
            self._services.deadlines.retry(self.match_id, retry_ns)

    def _count_failure(self, order: PlayerOrder | ServiceOrder | None, error: Exception) -> None:
        if isinstance(order, PlayerOrder):
            why = failure_of(error)
            self._services.metrics.game.failed(order.command, why)
            if order.trace is not None:
                order.trace.end(self.match_id, why.value, self._services.clock.now_ns(), {})
            if why is Failure.INTERNAL_ERROR:
                get_logger().error("command_failed", exc_info=error)
