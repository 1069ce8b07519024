"""MatchService: each handler checks, calls, maps and answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from engine.clock import Arrival
from engine.seats import Seat
from engine.view import Audience
from service.limits import holder_of
from service.line import Ticket
from service.match import Match
from service.matches import Admission, Matches
from service.metrics import Metrics
from service.metrics.streams import StreamEnd, StreamKind
from service.ports import Clock, Credential, Store, StoreUnavailableError
from service.rpc import requests
from service.rpc.arrival import Stamped
from service.rpc.auth import Gatekeeper, checked
from service.rpc.deal_proof import deal_proof
from service.rpc.edge import Context, message_of
from service.rpc.outbound import Guard
from service.rpc.play_stream import CommandReader, opening_of, order_of, seat_of
from service.rpc.render import Renderer
from service.rpc.statuses import CANNOT_LEAVE, PERMISSION_DENIED, SPECTATE_INSTEAD, StatusError
from service.rpc.stream_ends import stream_end
from service.rpc.streams import Outbox, Presenter, Pump, StreamResponse
from service.rpc.wire import sub_message
from service.secret import Secret
from service.watches import Watch
from spectacularbid.v1 import match_service_pb2 as pb

_created_update = sub_message(pb.CreateMatchResponse.DESCRIPTOR, "update")
_joined_update = sub_message(pb.JoinMatchResponse.DESCRIPTOR, "update")
_got_update = sub_message(pb.GetMatchResponse.DESCRIPTOR, "update")
_left_update = sub_message(pb.LeaveMatchResponse.DESCRIPTOR, "update")
_submitted_outcome = sub_message(pb.SubmitCommandResponse.DESCRIPTOR, "outcome")


@dataclass(frozen=True, slots=True)
class MatchService:
    """The players' service."""

    matches: Matches
    gatekeeper: Gatekeeper
    renderer: Renderer
    clock: Clock
    store: Store
    metrics: Metrics

    async def create_match(self, stamped: Stamped[pb.CreateMatchRequest], context: Context) -> bytes:
        """Make a match and seat the caller."""
        subject = self.gatekeeper.admit(context)
        admission = await self.matches.create(requests.new_match(message_of(stamped)), subject=subject)
        message = pb.CreateMatchResponse(
            match_id=admission.match_id,
            token=admission.token.reveal(),
            invite_code=admission.invite_code,
            spectator_token=admission.spectator_token.reveal(),
            server_commitment=admission.state.server_commitment,
        )
        return message.SerializeToString() + _created_update(self._first_update(admission))

    async def join_match(self, stamped: Stamped[pb.JoinMatchRequest], context: Context) -> bytes:
        """Take the free seat."""
        subject = self.gatekeeper.admit(context)
        admission = await self.matches.join(*requests.join_fields(message_of(stamped)), subject=subject)
        message = pb.JoinMatchResponse(match_id=admission.match_id, token=admission.token.reveal())
        return message.SerializeToString() + _joined_update(self._first_update(admission))

    async def get_match(self, stamped: Stamped[pb.GetMatchRequest], context: Context) -> bytes:
        """The caller's view now."""
        credential = _player(await self._credential(message_of(stamped).match_id, context))
        self.gatekeeper.limits.reads.take(holder_of(credential))
        match = self.matches.get(credential.match_id)
        update = self._presenter(match, credential.audience).update(await match.state(), 0)
        return _got_update(self._guard(credential).release(update))

    async def leave_match(self, stamped: Stamped[pb.LeaveMatchRequest], context: Context) -> bytes:
        """Abort a match that has not started."""
        credential = await self._credential(message_of(stamped).match_id, context)
        seat = seat_of(credential) or Seat.ONE
        self.gatekeeper.limits.commands.take(holder_of(credential))
        done = await self.matches.leave(credential.match_id, seat)
        if done.refusal is not None:
            raise StatusError(CANNOT_LEAVE)
        presenter = self._presenter(self.matches.get(credential.match_id), credential.audience)
        return _left_update(self._guard(credential).release(presenter.update(done.state, 0)))

    async def get_deal_proof(self, stamped: Stamped[pb.GetDealProofRequest], context: Context) -> bytes:
        """Everything that fixed the tiles, when the match is over."""
        credential = await self._credential(message_of(stamped).match_id, context)
        self.gatekeeper.limits.reads.take(holder_of(credential))
        state = await self.matches.get(credential.match_id).state()
        proof = await deal_proof(self.store, credential.match_id, state)
        return pb.GetDealProofResponse(proof=proof).SerializeToString()

    async def rotate_token(self, stamped: Stamped[pb.RotateTokenRequest], context: Context) -> bytes:
        """A fresh token; the old one is good for nothing from here on."""
        credential = await self._credential(message_of(stamped).match_id, context)
        self.gatekeeper.limits.commands.take(holder_of(credential))
        token = await asyncio.shield(self._rotated(credential))
        return pb.RotateTokenResponse(token=token.reveal()).SerializeToString()

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
            self.gatekeeper.limits.commands.take(holder_of(credential))
            ticket = match.enter(stamped.arrival, order)
        else:
            ticket, credential = await self._enter_stranger(match, hashed, fields, stamped.arrival)
        done = await ticket.done
        presenter = self._presenter(match, credential.audience)
        return _submitted_outcome(self._guard(credential).release(await presenter.outcome(fields, done)))

    async def watch_match(self, stamped: Stamped[pb.WatchMatchRequest], context: Context) -> None:
        """The caller's view after every change."""
        message = message_of(stamped)
        credential = _player(await self._credential(message.match_id, context))
        await self._watch(context, credential, message.after_version, pb.WatchMatchResponse)

    async def spectate_match(self, stamped: Stamped[pb.SpectateMatchRequest], context: Context) -> None:
        """What everyone may see, after every change."""
        message = message_of(stamped)
        credential = await self._credential(message.match_id, context)
        if credential.audience is not Audience.SPECTATOR:
            raise StatusError(PERMISSION_DENIED)
        await self._watch(context, credential, message.after_version, pb.SpectateMatchResponse)

    async def play_match(self, _: Stamped[pb.PlayMatchRequest], context: Context) -> None:
        """Watch and submit on one stream."""
        opening = await opening_of(context)
        credential = await self._credential(opening.match_id, context)
        seat_of(credential)
        with self._watching(credential, opening.after_version, StreamKind.PLAY) as (match, watch):
            outbox = Outbox(watch.wake)
            presenter = self._presenter(match, credential.audience)
            commands = CommandReader(match, credential, presenter, outbox, watch, self.gatekeeper.limits)
            reader = asyncio.create_task(commands.read(context))
            try:
                await self._pump(context, match, credential, pb.PlayMatchResponse).run(watch, outbox)
                if reader.done():
                    reader.result()
            finally:
                reader.cancel()

    async def _watch(
        self, context: Context, credential: Credential, after_version: int, response: StreamResponse
    ) -> None:
        kind = StreamKind.SPECTATE if credential.audience is Audience.SPECTATOR else StreamKind.WATCH
        with self._watching(credential, after_version, kind) as (match, watch):
            await self._pump(context, match, credential, response).run(watch)

    @contextmanager
    def _watching(self, credential: Credential, after_version: int, kind: StreamKind) -> Iterator[tuple[Match, Watch]]:
        """A watch that counts as one of its holder's streams inside the block."""
        limits, match = self.gatekeeper.limits, self.matches.get(credential.match_id)
        limits.reads.take(holder_of(credential))
        watch = match.watch(credential.audience, requests.cursor_of(after_version))
        watch.going_away = self.matches.are_left
        self.metrics.streams.opened(kind)
        why = StreamEnd.CLIENT_GONE
        try:
            limits.streams.open(credential, watch)
            yield match, watch
            why = StreamEnd.GOING_AWAY if watch.going_away else StreamEnd.FINISHED
        except Exception as error:
            why = stream_end(error)
            raise
        finally:
            limits.streams.close(credential, watch)
            self.metrics.streams.ended(kind, why)
            match.unwatch(watch)

    async def _rotated(self, credential: Credential) -> Secret[str]:
        """Carried out although the caller may hang up: the store and this process must agree."""
        token = await self.matches.rotate(credential)
        self.gatekeeper.revoke(credential)
        return token

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
            self.gatekeeper.limits.commands.take(holder_of(credential))
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

    def _guard(self, holder: Credential | Admission) -> Guard:
        return Guard(holder.match_id, holder.audience, self.metrics)

    def _pump(self, context: Context, match: Match, credential: Credential, response: StreamResponse) -> Pump:
        presenter, guard = self._presenter(match, credential.audience), self._guard(credential)
        return Pump(
            context, match, presenter, guard=guard, clock=self.clock, response=response, metrics=self.metrics.streams
        )

    def _first_update(self, admission: Admission) -> bytes:
        presenter = self._presenter(self.matches.get(admission.match_id), admission.audience)
        return self._guard(admission).release(presenter.update(admission.state, 0))


def _player(credential: Credential) -> Credential:
    """The credential of a seat or a shared device. What goes to spectators is of types that hold no hand."""
    if credential.audience is Audience.SPECTATOR:
        raise StatusError(SPECTATE_INSTEAD)
    return credential
