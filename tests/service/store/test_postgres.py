"""What is special about the PostgreSQL store: replicas that race, locks, lost connections, what lies in the tables."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from engine import events as ev
from engine.deal import deal
from engine.seats import PerSeat, Seat
from engine.tiles import DOUBLE_SIX, Tile
from engine.view import Audience
from service.ports import (
    DamagedError,
    DealSecrets,
    DuplicateCommandError,
    Heartbeat,
    StoreUnavailableError,
    VersionConflictError,
)
from service.secret import Secret
from service.store.postgres import PostgresStore
from tests.service.store.conftest import SEAL, OpenReplica
from tests.support.postgres import PostgresServer, connected, postgres_server
from tests.support.proxy import Proxy, proxy_to
from tests.support.store import CREATED, NOON_NS, creation, move, outcome, state_at, together, turn

BEAT = Heartbeat(NOON_NS, NOON_NS)


async def test_of_two_replicas_one_makes_each_version(open_replica: OpenReplica) -> None:
    """Two hundred writers on two replicas race for ten matches; whoever loses reads on and tries again."""
    one, two = await open_replica(), await open_replica()
    for number in range(10):
        await one.append(creation(f"m{number}"))

    async def play(store: PostgresStore, match_id: str, command_id: str) -> int:
        version, conflicts = 1, 0
        while True:
            try:
                await store.append(move(match_id, version, record=outcome(command_id)))
            except VersionConflictError:
                conflicts += 1
                version += len(await store.steps(match_id, after_version=version))
            else:
                return conflicts

    writers = [
        play(store, f"m{task % 10}", f"{name} {task}")
        for task in range(100)
        for name, store in (("a", one), ("b", two))
    ]
    assert sum(await asyncio.gather(*writers)) > 0
    for number in range(10):
        assert await two.steps(f"m{number}") == [CREATED, *(turn(version) for version in range(2, 22))]


async def test_a_command_that_reaches_two_replicas_counts_once(open_replica: OpenReplica) -> None:
    """Whatever each of them decided."""
    one, two = await open_replica(), await open_replica()
    for number in range(20):
        await one.append(creation(f"m{number}"))
    changes = [move(f"m{number}", 1, record=outcome("c")) for number in range(20)]
    results = await asyncio.gather(together(one, changes), together(two, changes))
    for first, second in zip(*results, strict=True):
        assert {first, second} == {None, DuplicateCommandError}


async def test_changes_that_wait_together_share_a_statement(store_of_one: PostgresStore) -> None:
    """One hundred changes that are handed in at once need no hundred commits."""
    before = store_of_one.commits
    await asyncio.gather(*(store_of_one.append(creation(f"m{number}")) for number in range(100)))
    assert len(await store_of_one.live_matches()) == 100
    assert store_of_one.commits <= before + 10


async def test_a_locked_match_holds_up_nobody_else(store_of_one: PostgresStore, dsn: Secret[str]) -> None:
    """Somebody's shell keeps a row locked: other matches go on, this one as soon as it can."""
    for match_id in ("m", "n"):
        await store_of_one.append(creation(match_id))
    async with connected(dsn.reveal()) as shell:
        transaction = shell.transaction()
        await transaction.start()
        await shell.execute("SELECT FROM matches WHERE match_id = 'm' FOR UPDATE")
        locked = asyncio.ensure_future(store_of_one.append(move("m", 1)))
        await store_of_one.append(move("n", 1))
        await store_of_one.append(move("n", 2))
        assert not locked.done()
        await transaction.rollback()
    await locked
    assert await store_of_one.steps("m") == [CREATED, turn(2)]


async def test_a_write_that_waited_for_a_lock_knows_until_when_its_match_had_not_moved(
    store_of_one: PostgresStore, dsn: Secret[str]
) -> None:
    """Another one's change was under way for so long; how late it came is to be proven."""
    await store_of_one.append(creation("m"))
    loop = asyncio.get_running_loop()
    async with connected(dsn.reveal()) as shell:
        transaction = shell.transaction()
        await transaction.start()
        await shell.execute("UPDATE matches SET version = 2 WHERE match_id = 'm'")
        began = loop.time()
        waiting = asyncio.ensure_future(store_of_one.append(move("m", 1)))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(waiting), 0.2)
        await transaction.commit()
    with pytest.raises(VersionConflictError) as caught:
        await waiting
    assert caught.value.unmoved_at is not None
    assert began < caught.value.unmoved_at < loop.time()


async def test_a_lock_that_stays_makes_the_store_unavailable_for_its_match(
    store_of_one: PostgresStore, dsn: Secret[str]
) -> None:
    """After two seconds, and nothing is written behind anybody's back later."""
    await store_of_one.append(creation("m"))
    async with connected(dsn.reveal()) as shell, shell.transaction():
        await shell.execute("SELECT FROM matches WHERE match_id = 'm' FOR UPDATE")
        with pytest.raises(StoreUnavailableError, match=r"^somebody keeps the match locked$"):
            await store_of_one.append(move("m", 1))
    await store_of_one.append(move("m", 1))


SETTINGS = {
    "synchronous_commit": "on",
    "statement_timeout": "2s",
    "idle_in_transaction_session_timeout": "2s",
    "application_name": "spectacular-bid",
    "default_transaction_isolation": "read committed",
}


async def test_every_connection_is_durable_and_gives_up_in_time(store_of_one: PostgresStore) -> None:
    """No test can pull the plug, so the settings that it depends on are pinned."""
    await store_of_one.append(creation("m"))
    await store_of_one.steps("m")
    links = [store_of_one._appending, store_of_one.lineage.link, *store_of_one._reading]
    opened = [link for link in links if link._connection is not None]
    assert len(opened) >= 3
    for link in opened:
        async with link.use() as connection:
            found = {name: await connection.fetchval(f"SHOW {name}") for name in SETTINGS}
        assert found == SETTINGS


@pytest.fixture
async def store_of_one(open_replica: OpenReplica) -> PostgresStore:
    """A store with one replica."""
    return await open_replica()


@pytest.fixture
async def proxy(postgres: PostgresServer) -> AsyncIterator[Proxy]:
    """Between the service and PostgreSQL."""
    async with proxy_to(postgres.port) as proxy:
        yield proxy


@pytest.fixture
async def far_store(postgres: PostgresServer, dsn: Secret[str], proxy: Proxy) -> AsyncIterator[PostgresStore]:
    """A store behind the proxy, its connections made and its statements known."""
    far = Secret(dsn.reveal().replace(f":{postgres.port}/", f":{proxy.port}/"))
    store = await PostgresStore.open(far, seal=SEAL, replica_id="far", durability="single-node")
    await store.beat(BEAT)
    for number in range(8):
        await store.append(creation(f"warm{number}"))
        await store.append(move(f"warm{number}", 1, record=outcome("c")))
    yield store
    await store.close()


async def test_a_commit_whose_answer_is_lost_is_told_by_the_repeat(far_store: PostgresStore, proxy: Proxy) -> None:
    """The command is stored once; its sender gets what is stored."""
    await far_store.append(creation("m"))
    proxy.loses_answers = 1
    with pytest.raises(DuplicateCommandError):
        await far_store.append(move("m", 1, record=outcome("c")))
    assert proxy.loses_answers == 0
    assert await far_store.command("m", Audience.SEAT_ONE, "c") == outcome("c")
    assert await far_store.steps("m") == [CREATED, turn(2)]


async def test_a_lost_answer_without_a_record_is_a_conflict(far_store: PostgresStore, proxy: Proxy) -> None:
    """Whoever decided it reads on: it is there already."""
    await far_store.append(creation("m"))
    proxy.loses_answers = 1
    with pytest.raises(VersionConflictError):
        await far_store.append(move("m", 1))
    assert await far_store.steps("m") == [CREATED, turn(2)]


async def test_a_short_cut_costs_no_change(far_store: PostgresStore, proxy: Proxy) -> None:
    """The change waits for the connection."""
    await far_store.append(creation("m"))
    await proxy.cut()
    append = asyncio.ensure_future(far_store.append(move("m", 1)))
    await asyncio.wait([append], timeout=0.05)
    assert not append.done()
    proxy.mend()
    await append
    assert await far_store.steps("m") == [CREATED, turn(2)]


@pytest.mark.parametrize("mode", ["fast", "immediate"])
async def test_a_server_that_stops_makes_the_store_unavailable_until_it_is_back(mode: str) -> None:
    """Nothing acknowledged is gone; the driver's words stay inside."""
    with postgres_server() as server:
        dsn = await server.migrated_dsn()
        store = await PostgresStore.open(dsn, seal=SEAL, replica_id="r", durability="single-node")
        await store.beat(BEAT)
        await store.append(creation("m"))
        server.stop(mode)
        for attempt in (store.append(move("m", 1)), store.steps("m"), store.beat(BEAT)):
            with pytest.raises(StoreUnavailableError, match=r"^the store cannot answer now$"):
                await attempt
        server.start()
        assert await store.lineage.steps_at({"m": 1}) == {"m": CREATED}
        store.lineage.trust(1, is_whole=True)
        await store.append(move("m", 1))
        assert await store.steps("m") == [CREATED, turn(2)]
        await store.close()


DEALT = deal(DOUBLE_SIX)
STEP: ev.Step = (
    ev.RoundDealt(1, DEALT.hands, DEALT.boneyard, Seat.TWO, None, Tile(2, 2)),
    ev.TileDrawn(Seat.TWO, Tile(3, 5), playable=True),
)
SECRETS = DealSecrets(b"r" * 32, b"server secret " * 2 + b"1234", PerSeat(b"entropy of seat one 1234567890 a", b""))


async def test_an_analyst_with_all_tables_sees_no_hidden_tile(store_of_one: PostgresStore, dsn: Secret[str]) -> None:
    """Whoever reads the database has not got the key."""
    await store_of_one.append(creation("m")._replace(events=(*CREATED, *STEP), deal=SECRETS, snapshot=state_at(1)))
    assert await store_of_one.steps("m") == [(*CREATED, *STEP)]
    assert await store_of_one.deal_secrets("m") == SECRETS
    assert await store_of_one.snapshot("m") == state_at(1)
    async with connected(dsn.reveal()) as shell:
        tables = await shell.fetch("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        assert len(tables) == 11
        text = repr([await shell.fetch(f'TABLE "{name}"') for (name,) in tables])
    for tile in DOUBLE_SIX:
        assert f'"{tile.low}-{tile.high}' not in text
        assert f"{tile.low}-{tile.high} " not in text
    assert "boneyard" not in text
    assert "server secret" not in text
    assert "entropy of seat" not in text


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE snapshots SET format = 2",
        "UPDATE snapshots SET version = 2",
        "UPDATE snapshots SET state = ''",
        "UPDATE snapshots SET state = substr(state, 1, 99)",
    ],
)
async def test_a_snapshot_that_is_not_what_was_written_is_told_apart(
    store_of_one: PostgresStore, dsn: Secret[str], change: str
) -> None:
    """The log of the match counts; the next one takes its place."""
    await store_of_one.append(creation("m")._replace(snapshot=state_at(1)))
    async with connected(dsn.reveal()) as shell:
        await shell.execute(change)
    with pytest.raises(DamagedError):
        await store_of_one.snapshot("m")
    await store_of_one.append(move("m", 1)._replace(snapshot=state_at(2)))
    assert await store_of_one.snapshot("m") == state_at(2)


async def test_the_database_tells_its_time(store_of_one: PostgresStore) -> None:
    """It never goes back between two questions."""
    first = await store_of_one.service_ns()
    assert NOON_NS - 10**17 < first <= await store_of_one.service_ns()
