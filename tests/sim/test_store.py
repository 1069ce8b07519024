"""The simulated stores keep the contract of the real ones: the same tests, on the fakes."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from random import Random
from typing import cast

import pytest

from engine.view import Audience
from service.ports import DuplicateRequestError, FencedError, Heartbeat, SeatRequest, Store
from service.secret import Secret
from service.store.postgres import PostgresStore
from service.store.postgres_append_sql import EVERYTHING, MOVES
from tests.service.store import test_contract_appending, test_contract_keeping
from tests.sim.disk import Disk
from tests.sim.eager import EagerWorld, process
from tests.sim.moving import CONDITIONS, MOVING
from tests.sim.postgres import Server
from tests.sim.process import SimProcess
from tests.sim.store import Owner, SimStore, Weather
from tests.sim.tables import FENCE_AFTER_NS, SEAL, Tables
from tests.sim.truth import Truth
from tests.sim.world import NOON_NS
from tests.support.store import OpenStore, creation

globals().update(
    {
        name: test
        for module in (test_contract_appending, test_contract_keeping)
        for name, test in vars(module).items()
        if name.startswith("test_")
    }
)


@pytest.fixture
def open_sqlite() -> OpenStore:
    """Opens a store on one disk; it may be opened again."""
    world = EagerWorld(1)
    disk = Disk(lambda: world.now_ns)

    async def open_again() -> Store:
        return SimStore(cast("Owner", process()), world, disk, Weather(), Random(1))

    return open_again


@pytest.fixture
def server() -> Iterator[Server]:
    """A database in place of PostgreSQL."""
    world = EagerWorld(1)
    server = Server(world, Truth(world), Tables(Disk(lambda: world.now_ns), world.service_ns))
    with server.in_place_of_asyncpg():
        yield server


@pytest.fixture
def open_postgres(server: Server) -> OpenStore:
    """Opens the service's own store on it, as one more replica, which has beaten."""
    numbers = count()

    async def open_again() -> Store:
        number = next(numbers)
        server.processes[number] = cast("SimProcess", process(number))
        store = PostgresStore(Secret(f"postgresql://replica/{number}"), SEAL, f"replica/{number}")
        await store.beat(Heartbeat(NOON_NS, NOON_NS))
        return store

    return open_again


@pytest.fixture(params=["open_sqlite", "open_postgres"])
def open_store(request: pytest.FixtureRequest) -> OpenStore:
    """Opens the store."""
    opener: OpenStore = request.getfixturevalue(request.param)
    return opener


@pytest.fixture
async def store(open_store: OpenStore) -> Store:
    """An empty store."""
    return await open_store()


def test_every_condition_of_the_statements_that_move_matches_is_known_to_the_fake() -> None:
    """So that taking one away makes a difference."""
    assert all(piece in EVERYTHING for piece in CONDITIONS)
    assert [piece for piece in CONDITIONS if piece not in MOVES] == ["FROM seat_requests AS r"]
    assert all(MOVING in statement for statement in (MOVES, EVERYTHING))


async def test_a_fenced_replica_moves_nothing_until_it_beats_again(server: Server, open_postgres: OpenStore) -> None:
    """And nobody is fenced who was seen a moment ago."""
    one, two = await open_postgres(), await open_postgres()
    (peer,) = (await two.others()).peers
    await two.fence(peer)
    await one.append(creation("a"))
    server.world.now_ns += FENCE_AFTER_NS + 1
    await two.fence(peer)
    with pytest.raises(FencedError):
        await one.append(creation("b"))
    await one.beat(Heartbeat(NOON_NS, NOON_NS))
    await one.append(creation("b"))
    assert [seen.epoch for seen in (await two.others()).peers] == [2]


async def test_a_statement_whose_answer_is_lost_is_repeated_and_has_one_effect(
    server: Server, open_postgres: OpenStore
) -> None:
    """The commit was made, is made later, or never."""
    store = await open_postgres()
    for trouble in ("answer lost", "late commit", "lost commit"):
        server.weather.next_moves.append((trouble, lambda: None))
        with suppress(DuplicateRequestError):  # which says that it was made
            await store.append(creation(trouble, seat_request=SeatRequest(trouble, trouble, Audience.SEAT_ONE)))
    assert sorted(server.tables.disk.logs) == ["answer lost", "late commit", "lost commit"]
