"""MatchService: each handler checks, calls, maps and answers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from engine.clock import Arrival
from engine.seats import Seat
from engine.view import Audience
from service.line import Ticket
from service.match import Match
from service.matches import Admission, Matches
from service.metrics import Metrics
from service.ports import Clock, Credential, Store, StoreUnavailableError
from service.rpc import requests
from service.rpc.arrival import Stamped
from service.rpc.auth import Gatekeeper, checked
from service.rpc.edge import Context, message_of
from service.rpc.play_stream import CommandReader, opening_of, order_of, seat_of
from service.rpc.render import Renderer
from service.rpc.statuses import CANNOT_LEAVE, StatusError
from service.rpc.streams import Outbox, Presenter, Pump
from service.rpc.wire import SubMessage
from spectacularbid.v1 import match_service_pb2 as pb

_created_update = SubMessage(pb.CreateMatchResponse.DESCRIPTOR, "update")
_joined_update = SubMessage(pb.JoinMatchResponse.DESCRIPTOR, "update")
_got_update = SubMessage(pb.GetMatchResponse.DESCRIPTOR, "update")
_left_update = SubMessage(pb.LeaveMatchResponse.DESCRIPTOR, "update")
_submitted_outcome = SubMessage(pb.SubmitCommandResponse.DESCRIPTOR, "outcome")


@dataclass(frozen=True, slots=True)
class MatchService:
    """The players' service."""

    matches: Matches
    gatekeeper: Gatekeeper
    renderer: Renderer
    clock: Clock
    store: Store
    metrics: Metrics

    async def create_match(self, stamped: Stamped[pb.CreateMatchRequest], _: Context) -> bytes:
        """Make a match and seat the caller."""
        admission = await self.matches.create(requests.new_match(message_of(stamped)))
        message = pb.CreateMatchResponse(
            match_id=admission.match_id,
            token=admission.token.reveal(),
            invite_code=admission.invite_code,
            spectator_token=admission.spectator_token.reveal(),
        )
        return message.SerializeToString() + _created_update(self._first_update(admission))

    async def join_match(self, stamped: Stamped[pb.JoinMatchRequest], _: Context) -> bytes:
        """Take the free seat."""
        admission = await self.matches.join(*requests.join_fields(message_of(stamped)))
        message = pb.JoinMatchResponse(match_id=admission.match_id, token=admission.token.reveal())
        return message.SerializeToString() + _joined_update(self._first_update(admission))

    async def get_match(self, stamped: Stamped[pb.GetMatchRequest], context: Context) -> bytes:
        """The caller's view now."""
        credential = await self._credential(message_of(stamped).match_id, context)
        match = self.matches.get(credential.match_id)
        return _got_update(self._presenter(match, credential.audience).update(await match.state(), 0))

    async def leave_match(self, stamped: Stamped[pb.LeaveMatchRequest], context: Context) -> bytes:
        """Abort a match that has not started."""
        credential = await self._credential(message_of(stamped).match_id, context)
        seat = seat_of(credential) or Seat.ONE
        done = await self.matches.leave(credential.match_id, seat)
        if done.refusal is not None:
            raise StatusError(CANNOT_LEAVE)
        presenter = self._presenter(self.matches.get(credential.match_id), credential.audience)
        return _left_update(presenter.update(done.state, 0))

    async def submit_command(self, stamped: Stamped[pb.SubmitCommandRequest], context: Context) -> bytes:
        """One command, one outcome. The command is the server's from here on, whatever becomes of the call."""
        message = message_of(stamped)
        match_id = requests.match_id_of(message.match_id)
        hashed = self.gatekeeper.hash_of(context.invocation_metadata() or ())
        fields = requests.command_fields(message)
        match = self.matches.get(match_id)
        credential = self.gatekeeper.known(hashed)
        if credential is not None:
            order = order_of(checked(credential, match_id), fields, stamped.arrival)
            ticket = match.enter(stamped.arrival, order)
        else:
            ticket, credential = await self._enter_stranger(match, hashed, fields, stamped.arrival)
        done = await ticket.done
        presenter = self._presenter(match, credential.audience)
        return _submitted_outcome(await presenter.outcome(fields, done))

    async def watch_match(self, stamped: Stamped[pb.WatchMatchRequest], context: Context) -> None:
        """The caller's view after every change."""
        message = message_of(stamped)
        credential = await self._credential(message.match_id, context)
        match = self.matches.get(credential.match_id)
        watch = match.watch(credential.audience, requests.cursor_of(message.after_version))
        self.metrics.streams.inc()
        try:
            pump = self._pump(context, match, credential.audience, pb.WatchMatchResponse)
            await pump.run(watch)
        finally:
            self.metrics.streams.dec()
            match.unwatch(watch)

    async def play_match(self, _: Stamped[pb.PlayMatchRequest], context: Context) -> None:
        """Watch and submit on one stream."""
        opening = await opening_of(context)
        credential = await self._credential(opening.match_id, context)
        seat_of(credential)
        match = self.matches.get(credential.match_id)
        watch = match.watch(credential.audience, requests.cursor_of(opening.after_version))
        outbox = Outbox(watch.wake)
        commands = CommandReader(match, credential, self._presenter(match, credential.audience), outbox)
        reader = asyncio.create_task(commands.read(context))
        self.metrics.streams.inc()
        try:
            await self._pump(context, match, credential.audience, pb.PlayMatchResponse).run(watch, outbox)
            if reader.done():
                reader.result()
        finally:
            self.metrics.streams.dec()
            match.unwatch(watch)
            reader.cancel()

    async def _enter_stranger(
        self, match: Match, hashed: bytes, fields: requests.CommandFields, arrival: Arrival
    ) -> tuple[Ticket, Credential]:
        """Keep the command's place in the line while the store is asked who sent it."""
        ticket = match.enter(arrival)
        checking = asyncio.ensure_future(self._check_stranger(match, ticket, hashed, fields, arrival))
        checking.add_done_callback(lambda checked: checked.cancelled() or checked.exception())  # maybe nobody is left
        return ticket, await asyncio.shield(checking)  # a caller who hangs up now has sent the command all the same

    async def _check_stranger(
        self, match: Match, ticket: Ticket, hashed: bytes, fields: requests.CommandFields, arrival: Arrival
    ) -> Credential:
        try:
            credential = checked(await self.gatekeeper.look_up(hashed), match.match_id)
            order = order_of(credential, fields, arrival)
        except StoreUnavailableError:
            match.lose(ticket)
            raise
        except BaseException:
            match.withdraw(ticket)
            raise
        match.fill(ticket, order)
        return credential

    async def _credential(self, match_id: str, context: Context) -> Credential:
        hashed = self.gatekeeper.hash_of(context.invocation_metadata() or ())
        requests.match_id_of(match_id)
        return checked(await self.gatekeeper.look_up(hashed), match_id)

    def _presenter(self, match: Match, audience: Audience) -> Presenter:
        return Presenter(match, audience, renderer=self.renderer, clock=self.clock, store=self.store)

    def _pump(
        self,
        context: Context,
        match: Match,
        audience: Audience,
        response: type[pb.WatchMatchResponse | pb.PlayMatchResponse],
    ) -> Pump:
        presenter = self._presenter(match, audience)
        return Pump(context, match, presenter, clock=self.clock, response=response)

    def _first_update(self, admission: Admission) -> bytes:
        match = self.matches.get(admission.match_id)
        return self._presenter(match, admission.audience).update(admission.state, 0)
