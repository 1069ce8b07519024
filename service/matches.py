"""All matches of this server: found or loaded, created, joined, recovered after a stop, suspended before one."""

from __future__ import annotations

import asyncio
import hashlib
from base64 import b32encode
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from engine import events as ev
from engine.clock import Arrival
from engine.commands import Abort, Leave, ResumeClocks, ServiceCommand, SuspendClocks, TakeSeat
from engine.events import Step
from engine.evolve import advance
from engine.seats import Seat
from engine.state import MatchState
from engine.view import Audience
from service import fair_deal
from service.dealing import current_rules_hash
from service.line import Done, ServiceOrder
from service.logs import get_logger
from service.match import Match
from service.ports import (
    Append,
    Credential,
    DealSecrets,
    DueMatch,
    DuplicateRequestError,
    SeatRequest,
    StoreUnavailableError,
)
from service.secret import Secret
from service.services import Services

SUSPENDED_AT_ONCE = 1_000
"""Matches whose clocks are stopped at the same instant."""
SUSPENDING_SECONDS = 5.0
"""How long a planned stop waits for a store that does not take heartbeats."""
CACHED_MATCHES = 10_000
"""Matches kept in memory, some 26 kB each; a longer unused one is read from the store when it is needed again."""
LOOKS = 8
"""How many of the longest unused are looked at for a new one: those in use stay, so there may be more for a while."""
TOKEN_PREFIXES = {
    Audience.SEAT_ONE: "sbs_",
    Audience.SEAT_TWO: "sbs_",
    Audience.DEVICE: "sbd_",
    Audience.SPECTATOR: "sbw_",
}


@dataclass(frozen=True, slots=True)
class NewMatch:
    """What a player asks for when creating a match. Lengths in nanoseconds."""

    request_id: str
    shared_device: bool
    display_name: str
    second_display_name: str
    start_timeout_ns: int
    continue_timeout_ns: int


NO_TOKEN = Secret("")


@dataclass(frozen=True, slots=True)
class Admission:
    """A seat taken: the token is shown once and kept only as a hash."""

    match_id: str
    state: MatchState
    audience: Audience
    token: Secret[str]
    spectator_token: Secret[str] = NO_TOKEN
    invite_code: str = ""


class CannotJoinError(Exception):
    """The invite code is unknown, or the seat is taken."""


class NotForSubjectError(Exception):
    """The platform's subject holds the other seat, or another subject made the request."""


def token_hash(token: str) -> bytes:
    """What is stored of a token: its SHA-256, 32 bytes. Tokens are 256 random bits, so no salt is needed."""
    return hashlib.sha256(token.encode()).digest()


def invite_code(request_id: str, match_id: str) -> str:
    """The invite code of a match: 50 bits, the same for a repeated request, derivable by nobody else."""
    digest = hashlib.sha256(f"invite {request_id} {match_id}".encode()).digest()
    text = b32encode(digest)[:10].decode()
    return f"{text[:5]}-{text[5:]}"


def invite_hash(code: str) -> bytes:
    """What is stored of an invite code; case, dashes and blanks do not matter."""
    plain = "".join(letter for letter in code.upper() if letter.isalnum())
    return hashlib.sha256(f"invite code {plain}".encode()).digest()


def _request_key(request_id: str) -> str:
    return hashlib.sha256(f"request {request_id}".encode()).hexdigest()


class Matches:
    """The registry of `Match` objects, bounded, and what concerns more than one command."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._matches: OrderedDict[str, Match] = OrderedDict()
        self.are_left = False
        """Whether streams are sent away: also those that were about to open."""

    def get(self, match_id: str) -> Match:
        """The match with this id; whether it exists shows when its state is read."""
        match = self._matches.get(match_id)
        if match is None:
            self._make_room()
            match = self._matches[match_id] = Match(match_id, self._services)
        self._matches.move_to_end(match_id)
        return match

    def wake(self, match_id: str) -> None:
        """A deadline of this match has passed."""
        self.get(match_id).wake()

    async def create(self, new: NewMatch, *, subject: str = "") -> Admission:
        """Make a match, or find the one that this request made before. `subject` is the platform's name for whom.

        Raises NotForSubjectError.
        """
        earlier = await self._services.store.seat_request(_request_key(new.request_id))
        if earlier is None:
            try:
                return await self._create(new, subject)
            except DuplicateRequestError:  # the same request at the same time
                earlier = await self._services.store.seat_request(_request_key(new.request_id))
        assert earlier is not None
        return await self._readmit(new.request_id, earlier, subject)

    async def join(
        self, request_id: str, code: str, display_name: str, commitment: bytes = b"", *, subject: str = ""
    ) -> Admission:
        """Take seat TWO of the match with this invite code, maybe with a commitment.

        Raises CannotJoinError, or NotForSubjectError for a subject that holds the other seat.
        """
        store = self._services.store
        earlier = await store.seat_request(_request_key(request_id))
        if earlier is not None:
            return await self._readmit(request_id, earlier, subject)
        match_id = await store.match_for_invite(invite_hash(code))
        if match_id is None:
            raise CannotJoinError
        if subject and await store.holds(match_id, Audience.SEAT_ONE, subject):
            raise NotForSubjectError
        token, credential = self._new_token(match_id, Audience.SEAT_TWO, subject)
        order = ServiceOrder(
            TakeSeat(Seat.TWO, display_name, commitment),
            credential,
            SeatRequest(_request_key(request_id), match_id, Audience.SEAT_TWO),
        )
        try:
            done = await self._carry_out(match_id, order)
        except DuplicateRequestError:
            done = None
        if done is not None and done.refusal is None:
            return Admission(match_id, done.state, Audience.SEAT_TWO, token)
        earlier = await store.seat_request(_request_key(request_id))  # taken, maybe by this request at the same time
        if earlier is None:
            raise CannotJoinError
        return await self._readmit(request_id, earlier, subject)

    async def rotate(self, credential: Credential) -> Secret[str]:
        """A fresh token in the place of this one, durably. Raises UnknownTokenError."""
        token, fresh = self._new_token(credential.match_id, credential.audience)
        await self._services.store.replace_credential(credential.token_hash, fresh.token_hash)
        return token

    async def leave(self, match_id: str, seat: Seat) -> Done:
        """Leave before the start; `Done.refusal` says why not."""
        return await self._carry_out(match_id, ServiceOrder(Leave(seat)))

    async def abort(self, match_id: str, words: str) -> Done:
        """End a match without a result, as an operator decided; `Done.refusal` says that it is over already.

        Raises UnknownMatchError or StoreUnavailableError.
        """
        return await self._carry_out(match_id, ServiceOrder(Abort(ev.AbortReason.OPERATOR, words)))

    async def recover(self) -> int:
        """After a start: arm every live match with its exact deadline, resume suspended ones. Returns their number."""
        live = await self._armed()
        self._services.metrics.game.recovered(match.match_id for match in live)
        await self._resume(live)
        return len(live)

    async def look_anew(self) -> None:
        """The store may have lost what is known here: go on as after a start."""
        await self._resume(await self._armed())

    async def _armed(self) -> Sequence[DueMatch]:
        """Every live match, with its deadline armed."""
        live = await self._services.store.live_matches()
        for match in live:
            if match.due_ns is not None:
                self._services.deadlines.arm(match.match_id, match.due_ns)
        return live

    async def resume(self) -> None:
        """Resume what a process suspended that did not know that this one serves."""
        await self._resume(await self._services.store.live_matches())

    async def _resume(self, live: Sequence[DueMatch]) -> None:
        suspended = [match.match_id for match in live if match.due_ns is None]
        await self._command_all(suspended, ResumeClocks())

    def known(self) -> list[tuple[Match, int, Step]]:
        """Each match that was read here, with the last version that is known and the step that made it."""
        tails = [(match, match.tail) for match in self._matches.values()]
        return [(match, *tail) for match, tail in tails if tail is not None]

    def watched(self) -> list[Match]:
        """Those that streams are open for."""
        return [match for match in self._matches.values() if match.is_watched]

    async def suspend(self) -> int:
        """Before a planned stop: stop the clocks of every live match (F4). Returns their number.

        To be called while players are still served: nobody's clock may run while nobody can move; none begins any more.
        """
        self._services.standstill.has_begun = True
        now_ns = self._services.clock.now_ns()
        suspended = await self._suspend_all()
        await self._reach(now_ns)  # what came before that may have begun one meanwhile
        return suspended + await self._suspend_all()

    async def _suspend_all(self) -> int:
        live = [match.match_id for match in await self._services.store.live_matches() if match.due_ns is not None]
        for first in range(0, len(live), SUSPENDED_AT_ONCE):
            await self._suspend(live[first : first + SUSPENDED_AT_ONCE])
        return len(live)

    def send_away(self) -> None:
        """Ask every stream to end with its resume point."""
        self.are_left = True
        for match in self._matches.values():
            match.send_away()

    async def _command_all(self, match_ids: list[str], command: ServiceCommand) -> None:
        """Give one command to many matches, a bounded number at a time, sharing commits."""
        gate = asyncio.Semaphore(256)

        async def one(match_id: str) -> None:
            async with gate:
                await self._carry_out(match_id, ServiceOrder(command))

        await asyncio.gather(*(one(match_id) for match_id in match_ids))

    async def _suspend(self, match_ids: list[str]) -> None:
        """Stop these matches' clocks at one instant; whatever was stamped before it is carried out first (K4)."""
        now_ns = self._services.clock.now_ns()
        held = [(match, match.hold(Arrival.at(now_ns))) for match in map(self.get, match_ids)]
        try:
            await self._reach(now_ns)
        except StoreUnavailableError:
            for match, ticket in held:
                match.withdraw(ticket)
            raise
        for match, ticket in held:
            match.fill(ticket, ServiceOrder(SuspendClocks(now_ns)))
        await asyncio.gather(*(ticket.done for _, ticket in held))

    async def _reach(self, instant_ns: int) -> None:
        """Wait until everything stamped before the instant is in. Raises StoreUnavailableError."""
        try:
            async with asyncio.timeout(SUSPENDING_SECONDS):
                await self._services.watermark.reach(instant_ns)
        except TimeoutError:
            raise StoreUnavailableError from None

    async def _carry_out(self, match_id: str, order: ServiceOrder) -> Done:
        arrival = Arrival.at(self._services.clock.now_ns())
        return await self.get(match_id).enter(arrival, order).done

    async def _create(self, new: NewMatch, subject: str) -> Admission:
        match_id = self._services.entropy.match_id()
        audience = Audience.DEVICE if new.shared_device else Audience.SEAT_ONE
        token, credential = self._new_token(match_id, audience, subject)
        spectator_token, spectator = self._new_token(match_id, Audience.SPECTATOR)
        code = "" if new.shared_device else invite_code(new.request_id, match_id)
        secret = self._services.entropy.secret()
        step = _first_step(new, self._services.clock.now_ns(), fair_deal.server_commitment(match_id, secret))
        state = advance(None, step)
        await self._services.store.append(
            Append(
                match_id=match_id,
                expected_version=0,
                events=step,
                due_ns=state.due_ns,
                live=True,
                credentials=(credential, spectator),
                seat_request=SeatRequest(_request_key(new.request_id), match_id, audience),
                invite_hash=invite_hash(code) if code else None,
                deal=DealSecrets(current_rules_hash(), secret),
            ),
        )
        self._services.metrics.game.stored(match_id, step, state)
        get_logger().info("match_created", match_id=match_id)
        self._services.deadlines.arm(match_id, state.due_ns)
        return Admission(match_id, state, audience, token, spectator_token, code)

    async def _readmit(self, request_id: str, earlier: SeatRequest, subject: str) -> Admission:
        """The answer of a repeated create or join: the same match and seat, fresh tokens."""
        match_id, audience = earlier.match_id, earlier.audience
        if subject and not await self._services.store.holds(match_id, audience, subject):
            raise NotForSubjectError
        state = await self.get(match_id).state()
        token, credential = self._new_token(match_id, audience, subject)
        await self._services.store.add_credential(credential)
        if audience is Audience.SEAT_TWO:
            return Admission(match_id, state, audience, token)
        spectator_token, spectator = self._new_token(match_id, Audience.SPECTATOR)
        await self._services.store.add_credential(spectator)
        code = "" if audience is Audience.DEVICE else invite_code(request_id, match_id)
        return Admission(match_id, state, audience, token, spectator_token, code)

    def _new_token(self, match_id: str, audience: Audience, subject: str = "") -> tuple[Secret[str], Credential]:
        token = self._services.entropy.token(TOKEN_PREFIXES[audience])
        return Secret(token), Credential(token_hash(token), match_id, audience, subject)

    def _make_room(self) -> None:
        """While there are too many, forget the longest unused; those that somebody needs count as used now instead."""
        for _ in range(LOOKS):
            if not self._matches or len(self._matches) < CACHED_MATCHES:
                return
            match_id, match = self._matches.popitem(last=False)
            if not match.is_idle:
                self._matches[match_id] = match


def _first_step(new: NewMatch, now_ns: int, commitment: bytes) -> ev.Step:
    created = ev.MatchCreated(now_ns, new.shared_device, new.start_timeout_ns, new.continue_timeout_ns, commitment)
    one = ev.PlayerSeated(Seat.ONE, new.display_name)
    return (created, one, ev.PlayerSeated(Seat.TWO, new.second_display_name)) if new.shared_device else (created, one)
