"""A command with a token that is not in memory keeps its place in the line while the store is asked (K4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast

import pytest

from engine.view import Audience
from service.matches import token_hash
from service.ports import Credential, StoreUnavailableError
from service.rpc import auth
from service.rpc.arrival import Stamped
from service.rpc.auth import Gatekeeper
from service.rpc.edge import Context
from service.rpc.match_service import MatchService
from service.rpc.render import Renderer
from service.rpc.statuses import StatusError
from spectacularbid.v1 import match_service_pb2 as pb
from tests.support.players import START, new_id
from tests.support.ports import MemoryStore, Process
from tests.support.virtual_matches import MATCH_ID, log_of, seated
from tests.support.virtual_time import in_virtual_time, settle

TOKEN = "sbs_one"


class SlowStore(MemoryStore):
    """Looks tokens up only when it is told to."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(logs=store.logs, due=store.due)
        self.credentials[token_hash(TOKEN)] = Credential(token_hash(TOKEN), MATCH_ID, Audience.SEAT_ONE)
        self.answers = asyncio.Event()

    async def credential(self, token_hash: bytes) -> Credential | None:
        await self.answers.wait()
        return await super().credential(token_hash)


@dataclass
class FakeContext:
    """What a handler asks of grpc.aio."""

    token: str

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self.token}"),)


@dataclass
class Edge:
    """The handlers on a process whose store is slow with tokens."""

    process: Process
    store: SlowStore
    handlers: MatchService

    def submit(self, token: str = TOKEN, command_id: str = "") -> asyncio.Task[bytes]:
        """A call of SubmitCommand with Start."""
        request = pb.SubmitCommandRequest(match_id=MATCH_ID, command_id=command_id or new_id(), command=START)
        context = cast("Context", FakeContext(token))
        stamped = Stamped(self.process.core.clock.arrival(), request)
        return asyncio.ensure_future(self.handlers.submit_command(stamped, context))


@asynccontextmanager
async def edge() -> AsyncIterator[Edge]:
    """Fresh handlers that know no token yet, as after a restart."""
    store = SlowStore(seated())
    async with Process.running(store) as process:
        handlers = MatchService(
            matches=process.matches,
            gatekeeper=Gatekeeper(store, process.metrics),
            renderer=Renderer(),
            clock=process.core.clock,
            store=store,
            metrics=process.metrics,
        )
        yield Edge(process, store, handlers)


@in_virtual_time
async def test_a_command_waits_for_its_sender_to_be_known() -> None:
    """And is stamped with its arrival, not with the answer of the store."""
    async with edge() as given:
        sent_ns = given.process.core.clock.now_ns()
        call = given.submit()
        await asyncio.sleep(1)
        assert len(log_of(given.process)) == 1
        given.store.answers.set()
        outcome = pb.SubmitCommandResponse.FromString(await call).outcome
        assert outcome.accepted.version == 2
        assert outcome.receipt.arrival_latest_unix_ns == sent_ns


@in_virtual_time
async def test_a_command_counts_although_its_sender_hung_up_before_it_was_known_who_it_was() -> None:
    """A call that is cancelled is carried out all the same."""
    async with edge() as given:
        command_id = new_id()
        call = given.submit(command_id=command_id)
        await settle()
        call.cancel()
        await settle()
        assert call.cancelled()
        given.store.answers.set()
        await settle()
        assert len(log_of(given.process)) == 2
        again = pb.SubmitCommandResponse.FromString(await given.submit(command_id=command_id))
        assert again.outcome.repeated


@in_virtual_time
async def test_a_command_of_nobody_is_turned_away_and_holds_nobody_up() -> None:
    """Its place in the line is given up."""
    async with edge() as given:
        strangers = [given.submit(f"sbs_{number}") for number in range(3)]
        player = given.submit()
        await settle()
        given.store.answers.set()
        assert pb.SubmitCommandResponse.FromString(await player).outcome.accepted.version == 2
        for stranger in strangers:
            with pytest.raises(StatusError, match="INVALID_TOKEN"):
                await stranger


@in_virtual_time
async def test_when_the_store_cannot_say_who_it_is_the_command_is_to_be_sent_again() -> None:
    """Nothing of it stays in the line."""
    async with edge() as given:
        await given.process.matches.get(MATCH_ID).state()
        call = given.submit()
        await settle()
        given.store.is_down = True
        given.store.answers.set()
        with pytest.raises(StoreUnavailableError):
            await call
        given.store.is_down = False
        assert pb.SubmitCommandResponse.FromString(await given.submit()).outcome.accepted.version == 2


@in_virtual_time
async def test_tokens_that_are_not_in_memory_any_more_are_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded; what falls out of it works on."""
    monkeypatch.setattr(auth, "KNOWN_TOKENS", 1)
    async with edge() as given:
        given.store.answers.set()
        hashes = [token_hash(f"sbw_{number}") for number in range(3)]
        for hashed in hashes:
            await given.store.add_credential(Credential(hashed, MATCH_ID, Audience.SPECTATOR))
        gatekeeper = given.handlers.gatekeeper
        for hashed in hashes * 2:
            assert (await gatekeeper.look_up(hashed)).audience is Audience.SPECTATOR
        assert [gatekeeper.known(hashed) is not None for hashed in hashes] == [False, False, True]
