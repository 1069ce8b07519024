"""A server that was started anew may lack what it acknowledged: real ones that do, and real ones that do not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from service.ports import Heartbeat, StoreUnavailableError
from service.secret import Secret
from service.store.postgres import PostgresStore
from tests.service.store.conftest import SEAL, OpenReplica
from tests.support.postgres import PostgresServer, connected, postgres_server
from tests.support.store import CREATED, NOON_NS, creation, move, turn

UNTRUSTED = r"^what the server has kept must be looked at first$"
SECOND_NS = 1_000_000_000


def beat(number: int) -> Heartbeat:
    """The heartbeat of a second."""
    at_ns = NOON_NS + number * SECOND_NS
    return Heartbeat(at_ns, at_ns)


@asynccontextmanager
async def replica(dsn: Secret[str], name: str = "r") -> AsyncIterator[PostgresStore]:
    """A store that has beaten once."""
    store = await PostgresStore.open(dsn, seal=SEAL, replica_id=name, durability="single-node")
    await store.beat(beat(1))
    try:
        yield store
    finally:
        await store.close()


async def look(store: PostgresStore, turn: int = 1) -> None:
    """Have it connect anew, wherever that leads, until it notices."""
    async with asyncio.timeout(20):
        while store.lineage.turn < turn:
            with suppress(StoreUnavailableError):
                await store.beat(beat(3))


@pytest.mark.parametrize("mode", ["fast", "immediate"])
async def test_a_server_that_was_started_anew_is_asked_nothing_until_it_was_looked_at(mode: str) -> None:
    """It has lost nothing, but who knows; time it may tell, and which steps it has."""
    with postgres_server() as server:
        async with replica(await server.migrated_dsn()) as store:
            await store.append(creation("m"))
            await store.beat(beat(2))
            server.stop(mode)
            server.start()
            await look(store)
            for attempt in (store.append(move("m", 1)), store.steps("m"), store.faults(0), store.beat(beat(3))):
                with pytest.raises(StoreUnavailableError):
                    await attempt
            assert await store.service_ns() > NOON_NS
            assert await store.lineage.steps_at({"m": 1, "n": 1}) == {"m": CREATED}
            assert (store.lineage.turn, store.lineage.has_lost) == (1, False)
            assert store.lineage.kept_until_ns == beat(2).at_ns
            store.lineage.trust(1, is_whole=True)
            await store.beat(beat(3))
            await store.append(move("m", 1))
            assert await store.steps("m") == [CREATED, turn(2)]


async def test_a_connection_that_breaks_is_no_reason_to_look(open_replica: OpenReplica, dsn: Secret[str]) -> None:
    """A server that goes on has lost nothing."""
    store = await open_replica()
    await break_connections(dsn)
    await asyncio.gather(store.append(creation("m")), store.beat(beat(2)), return_exceptions=True)
    await store.beat(beat(3))
    assert await store.steps("m") == [CREATED]
    assert store.lineage.turn == 0


async def test_a_server_whose_files_were_put_back_lacks_a_heartbeat() -> None:
    """As when one machine is restored from a copy of its disk: what came after is known to be lost, and since when."""
    with postgres_server() as server:
        async with replica(await server.migrated_dsn()) as store:
            await store.append(creation("m"))
            server.stop()
            server.keep()
            server.start()
            await look(store)
            store.lineage.trust(1, is_whole=True)
            await store.beat(beat(2))
            await store.append(move("m", 1))
            server.stop()
            server.put_back()
            server.start()
            await look(store, 2)
            assert (store.lineage.turn, store.lineage.has_lost) == (2, True)
            assert store.lineage.kept_until_ns == beat(1).at_ns
            assert await store.lineage.steps_at({"m": 2}) == {}
            store.lineage.trust(2, is_whole=True)
            await store.beat(beat(4))
            assert await store.steps("m") == [CREATED]
            await look_again(store)
            assert (store.lineage.turn, store.lineage.has_lost) == (2, False)


async def look_again(store: PostgresStore) -> None:
    """Have the heartbeats' link connect anew."""
    await store.lineage.link.close()
    store.lineage.link._closed = False
    await store.beat(beat(5))


@asynccontextmanager
async def standby_of(primary: PostgresServer) -> AsyncIterator[PostgresServer]:
    """A standby in the same place, not started: it will have what was committed until it is stopped again."""
    with TemporaryDirectory(prefix="specbid-pg-") as folder:
        standby = PostgresServer(primary.binaries, Path(folder))
        primary.copy_to(standby.folder)
        standby.start()
        try:
            yield standby
        finally:
            standby.stop("immediate")


async def caught_up(primary: PostgresServer) -> None:
    """Returns when the standby has everything."""
    behind = "SELECT count(*) FROM pg_stat_replication WHERE flush_lsn = pg_current_wal_flush_lsn()"
    async with asyncio.timeout(20), connected(primary.dsn()) as shell:
        while not await shell.fetchval(behind):
            await shell.execute("SELECT pg_sleep(0.02)")


@pytest.mark.parametrize("beats_after", [0, 1])
async def test_a_standby_that_takes_over_without_the_last_commits_is_found_out(beats_after: int) -> None:
    """Also when it lacks less than a heartbeat: then by the steps that it does not have."""
    with postgres_server() as primary:
        async with standby_of(primary) as standby:
            dsn = await primary.migrated_dsn()
            both = Secret(dsn.reveal().replace(f":{primary.port}/", f":{primary.port},127.0.0.1:{standby.port}/"))
            async with replica(both) as store:
                await store.append(creation("m"))
                await caught_up(primary)
                standby.stop("immediate")
                await store.append(move("m", 1))
                for number in range(beats_after):
                    await store.beat(beat(2 + number))
                primary.stop("immediate")
                standby.start()
                standby.promote()
                await look(store)
                assert (store.lineage.turn, store.lineage.has_lost) == (1, bool(beats_after))
                assert store.lineage.kept_until_ns == beat(1).at_ns
                assert await store.lineage.steps_at({"m": 2}) == {}
                assert await store.lineage.steps_at({"m": 1}) == {"m": CREATED}
            primary.start()


async def break_connections(dsn: Secret[str]) -> None:
    """End every session but one's own."""
    async with connected(dsn.reveal()) as shell:
        await shell.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE application_name = 'spectacular-bid' AND pid <> pg_backend_pid()"
        )


@pytest.mark.parametrize(
    ("change", "kept_until"),
    [
        ("UPDATE replicas SET at_ns = at_ns - 7", -7),
        ("UPDATE replicas SET replica_id = 'another'", 0),
        ("DELETE FROM replicas", -NOON_NS),
    ],
)
async def test_a_heartbeat_that_is_missing_shows_also_where_no_server_was_started(
    open_replica: OpenReplica, dsn: Secret[str], change: str, kept_until: int
) -> None:
    """As when the whole machine is put back, or a database is dropped and restored; then others' heartbeats tell."""
    store = await open_replica()
    async with connected(dsn.reveal()) as shell:
        await shell.execute(change)
    await break_connections(dsn)
    await look(store)
    assert (store.lineage.turn, store.lineage.has_lost) == (1, True)
    assert store.lineage.kept_until_ns == NOON_NS + kept_until
    store.lineage.trust(1, is_whole=True)
    await store.beat(beat(2))


async def test_any_user_may_ask_what_gives_a_server_away(postgres: PostgresServer, dsn: Secret[str]) -> None:
    """Of its tables only those of the service are read."""
    schema = dsn.reveal().rpartition("=")[2]
    await postgres.execute("CREATE ROLE ordinary LOGIN")
    await postgres.execute(f"GRANT USAGE ON SCHEMA {schema} TO ordinary")
    await postgres.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO ordinary")
    async with replica(Secret(dsn.reveal().replace("postgres@", "ordinary@"))) as store:
        assert await store.lineage.steps_at({"m": 1}) == {}


async def test_a_heartbeat_whose_answer_was_lost_may_be_there_later(
    open_replica: OpenReplica, dsn: Secret[str]
) -> None:
    """It was on its way when its connection broke, and came to the server after the next one: nothing is missing."""
    store = await open_replica()
    store.lineage.beating(beat(2).at_ns)
    await store.beat(beat(3))
    async with connected(dsn.reveal()) as shell:
        await shell.execute("UPDATE replicas SET at_ns = $1", beat(2).at_ns)
    await break_connections(dsn)
    await asyncio.gather(store.beat(beat(4)), return_exceptions=True)
    await store.beat(beat(5))
    assert store.lineage.turn == 0


async def test_what_was_decided_before_is_not_written_after() -> None:
    """It may build on what is lost: whoever asked is told to repeat, and nothing is written behind their back."""
    with postgres_server() as server:
        async with replica(await server.migrated_dsn()) as store:
            await store.append(creation("m"))
            server.stop()
            handed_in = asyncio.ensure_future(store.append(move("m", 1)))
            server.start()
            await look(store)
            store.lineage.trust(store.lineage.turn, is_whole=True)
            with pytest.raises(StoreUnavailableError):
                await handed_in
            assert await store.steps("m") == [CREATED]
