"""What must be there before the service uses a database: a server, a schema, a standby, a key."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from service.secret import Secret
from service.store.postgres import Durability, PostgresStore
from service.store.postgres_link import NotReadyError
from service.store.postgres_schema import Migration, migrate, migrations, require_schema
from service.store.sealing import KEY_BYTES, Seal
from tests.service.store.conftest import SEAL
from tests.support.free_ports import free_port
from tests.support.postgres import PostgresServer, connected, postgres_server


async def opened(dsn: Secret[str], *, seal: Seal = SEAL, durability: Durability = "single-node") -> None:
    """Opens the store and closes it."""
    store = await PostgresStore.open(dsn, seal=seal, replica_id="r", durability=durability)
    await store.close()


Where = Callable[[PostgresServer], str]
UNUSABLE: list[tuple[Where, str]] = [
    (lambda _: f"postgresql://u:sesame@127.0.0.1:{free_port()}/postgres", "PostgreSQL cannot be reached"),
    (lambda _: "postgresql://u:sesame@nowhere.invalid/postgres", "PostgreSQL cannot be reached"),
    (lambda server: f"postgresql://postgres:sesame@127.0.0.1:{server.port}/none", "has no database of the name"),
    (lambda server: f"postgresql://nobody:sesame@127.0.0.1:{server.port}/postgres", "refuses the user or the password"),
    (lambda _: "postgresql://u:sesame@127.0.0.1:port/postgres", "is no address such as"),
]


@pytest.mark.parametrize(("where", "sentence"), UNUSABLE, ids=["port", "host", "name", "user", "address"])
async def test_a_database_that_cannot_be_used_is_a_sentence_without_its_password(
    postgres: PostgresServer, where: Where, sentence: str
) -> None:
    """Which names the setting to look at."""
    for attempt in (opened, migrate):
        with pytest.raises(NotReadyError) as caught:
            await attempt(Secret(where(postgres)))
        assert sentence in str(caught.value)
        assert "SPECBID_DATABASE_URL" in str(caught.value)
        assert "sesame" not in str(caught.value)
        assert "\n" not in str(caught.value)


async def test_a_password_that_is_wrong_is_said_to_be() -> None:
    """Of a server that asks for one."""
    with postgres_server() as server:
        await server.execute("CREATE ROLE player LOGIN PASSWORD 'right'")
        (server.folder / "data" / "pg_hba.conf").write_text("host all all 127.0.0.1/32 scram-sha-256\n")
        server.stop()
        server.start()
        with pytest.raises(NotReadyError, match="refuses the user or the password") as caught:
            await opened(Secret(f"postgresql://player:sesame@127.0.0.1:{server.port}/postgres"))
        assert "sesame" not in str(caught.value)


async def test_without_a_schema_the_command_is_named(postgres: PostgresServer) -> None:
    """The service never changes the schema by itself."""
    dsn = await postgres.new_dsn()
    with pytest.raises(NotReadyError, match=r"has schema 0, but \d+ is needed: run `spectacular-bid migrate`$"):
        await opened(dsn)
    await migrate(dsn)
    await opened(dsn)


async def test_migrating_again_does_nothing(postgres: PostgresServer) -> None:
    """Nor does doing it twice at once."""
    dsn = await postgres.new_dsn()
    both = await asyncio.gather(migrate(dsn), migrate(dsn))
    assert sorted(map(len, both)) == [0, len(migrations())]
    assert await migrate(dsn) == ()


def further(number: int, *, works_from: int) -> Migration:
    """A migration of a later version."""
    script = f"-- Works with services from schema {works_from} on.\nCREATE TABLE later_{number} (id int);"
    return Migration(number, f"{number:04}_later.sql", script)


async def test_the_version_before_goes_on_with_a_schema_that_was_expanded(postgres: PostgresServer) -> None:
    """And stops with a sentence before one in which something that it needs is gone."""
    dsn, known = await postgres.migrated_dsn(), migrations()
    expanded = (*known, further(len(known) + 1, works_from=len(known)))
    assert await migrate(dsn, expanded) == (expanded[-1].name,)
    await opened(dsn)
    contracted = (*expanded, further(len(known) + 2, works_from=len(known) + 1))
    await migrate(dsn, contracted)
    with pytest.raises(NotReadyError, match="it needs a newer one"):
        await opened(dsn)
    async with connected(dsn.reveal()) as connection:
        await require_schema(connection, len(known) + 1)


async def test_a_migration_that_fails_leaves_nothing_behind(postgres: PostgresServer) -> None:
    """It can be mended and run again."""
    dsn, known = await postgres.migrated_dsn(), migrations()
    number = len(known) + 1
    good = further(number, works_from=1)
    broken = Migration(number, good.name, f"{good.script}\nSELECT nonsense;")
    with pytest.raises(NotReadyError, match="PostgreSQL cannot be used"):
        await migrate(dsn, (*known, broken))
    assert await migrate(dsn, (*known, good)) == (good.name,)


async def test_every_migration_says_with_which_services_it_works() -> None:
    """None may shut out the version before it."""
    for migration in migrations():
        assert 1 <= migration.works_from <= max(1, migration.number - 1), migration.name


async def test_another_key_stops_the_start(postgres: PostgresServer) -> None:
    """Better than a replica that cannot read the others' matches; a key beside the older one may seal."""
    dsn = await postgres.migrated_dsn()
    await opened(dsn)
    with pytest.raises(
        NotReadyError, match=r"lacks the sealing key [0-9a-f]{16}, with which this database was written"
    ):
        await opened(dsn, seal=Seal(bytes(KEY_BYTES)))
    await opened(dsn, seal=Seal(bytes(KEY_BYTES), bytes(range(KEY_BYTES))))
    with pytest.raises(NotReadyError, match="lacks the sealing key"):
        await opened(dsn)


async def test_a_commit_on_one_machine_must_be_declared(postgres: PostgresServer) -> None:
    """Durable means on two machines unless the operator says otherwise."""
    dsn = await postgres.migrated_dsn()
    with pytest.raises(NotReadyError, match=r"has no synchronous standby: .* SPECBID_DURABILITY=single-node$"):
        await opened(dsn, durability="synchronous-standby")


async def test_a_synchronous_standby_is_enough_and_takes_no_service() -> None:
    """The primary is used; the standby alone takes no writes."""
    with postgres_server() as primary, TemporaryDirectory(prefix="specbid-pg-") as folder:
        dsn = await primary.migrated_dsn()
        standby = PostgresServer(primary.binaries, Path(folder))
        primary.copy_to(standby.folder)
        standby.start()
        try:
            await primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            await primary.execute("SELECT pg_reload_conf()")
            await synchronous(primary)
            await opened(dsn, durability="synchronous-standby")
            with pytest.raises(NotReadyError, match="PostgreSQL takes no writes"):
                await opened(Secret(dsn.reveal().replace(f":{primary.port}/", f":{standby.port}/")))
        finally:
            standby.stop("immediate")


async def synchronous(primary: PostgresServer) -> None:
    """Returns when a commit waits for the standby."""
    async with asyncio.timeout(20), connected(primary.dsn()) as shell:
        while not await shell.fetchval("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"):
            await shell.execute("SELECT pg_sleep(0.05)")
