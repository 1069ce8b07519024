"""The bus over a real NATS: versions reach other replicas, and nothing is wrong when they do not."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from service.fanout.nats import SUBJECT, NatsBus
from service.secret import Secret
from tests.support.nats import NatsServer, nats_client, nats_server
from tests.support.nats_credentials import Accounts

Heard = asyncio.Queue[int | None]
SOON_SECONDS = 10.0
"""What a loaded machine may take; the client's own patience of 1 s was not enough for one that stood still."""
REFUSED = "NATS refuses the credentials of SPECBID_NATS_URL or SPECBID_NATS_CREDENTIALS_FILE"


class Replica:
    """A bus with what it reported and what its watchers heard."""

    def __init__(self, url: str, credentials: Path | None = None) -> None:
        self.reports: asyncio.Queue[str | None] = asyncio.Queue()
        self.bus = NatsBus(Secret(url), credentials, self.reports.put_nowait)

    def watch(self, match_id: str) -> tuple[Heard, Callable[[], None]]:
        """What a watcher of this match hears, and how to leave."""
        heard: Heard = asyncio.Queue()
        return heard, self.bus.subscribe(match_id, heard.put_nowait)

    async def watches(self, match_id: str) -> Heard:
        """A watcher whose subscription is in force."""
        heard, _ = self.watch(match_id)
        assert await soon(heard) is None
        return heard


async def soon(queue: asyncio.Queue[int | None]) -> int | None:
    """The next thing heard."""
    return await asyncio.wait_for(queue.get(), SOON_SECONDS)


@asynccontextmanager
async def running(url: str, credentials: Path | None = None) -> AsyncIterator[Replica]:
    """A bus that was started."""
    replica = Replica(url, credentials)
    replica.bus.start()
    try:
        yield replica
    finally:
        await replica.bus.close()


async def reported(replica: Replica, what: str | None) -> None:
    """Returns when it reports this."""
    while await asyncio.wait_for(replica.reports.get(), 20) != what:
        pass


@pytest.fixture
async def nats() -> AsyncIterator[NatsServer]:
    """A server."""
    async with nats_server() as server:
        yield server


async def test_a_version_reaches_the_watchers_of_its_match_on_every_replica(nats: NatsServer) -> None:
    """At once here, over NATS there; nobody hears twice."""
    async with running(nats.url) as one, running(nats.url) as two:
        here, there = await one.watches("m"), await two.watches("m")
        elsewhere = await two.watches("n")
        one.bus.publish("m", 7)
        assert here.get_nowait() == 7
        assert await soon(there) == 7
        one.bus.publish("n", 3)
        assert await soon(elsewhere) == 3
        assert here.empty()
        assert there.empty()


async def test_only_match_and_version_are_carried(nats: NatsServer) -> None:
    """Whoever listens to everything learns no more."""
    async with running(nats.url) as one, nats_client(nats) as stranger:
        everything = await stranger.subscribe(">")
        await stranger.flush()
        await reported(one, None)
        one.bus.publish("m", 7)
        message = await everything.next_msg(SOON_SECONDS)
        assert (message.subject, message.data, message.headers) == (f"{SUBJECT}m", b"7", None)


async def test_who_left_hears_nothing_more(nats: NatsServer) -> None:
    """The subscription at NATS goes with the last watcher."""
    async with running(nats.url) as one, running(nats.url) as two:
        first, leave = two.watch("m")
        assert await soon(first) is None
        second, leave_too = two.watch("m")
        leave()
        one_ready = await one.watches("n")
        one.bus.publish("m", 7)
        assert await soon(second) == 7
        leave_too()
        rest = await two.watches("other")
        one.bus.publish("m", 8)
        one.bus.publish("other", 9)
        assert await soon(rest) == 9
        assert first.empty()
        assert second.empty()
        assert one_ready.empty()


async def test_after_a_restart_of_nats_watchers_are_told_to_look_and_hear_again(nats: NatsServer) -> None:
    """Meanwhile the bus asks them to look more often; what was published then is for the store to tell."""
    async with running(nats.url) as one, running(nats.url) as two:
        there = await two.watches("m")
        await reported(one, None)
        assert (one.bus.poll_seconds, two.bus.poll_seconds) == (5.0, 5.0)
        nats.kill()
        for replica in (one, two):
            await reported(replica, "NATS cannot be reached at the address of SPECBID_NATS_URL")
            assert replica.bus.poll_seconds == 0.5
        one.bus.publish("m", 7)
        nats.start()
        await reported(one, None)
        await reported(two, None)
        assert await soon(there) is None
        one.bus.publish("m", 8)
        assert await soon(there) == 8


async def test_nats_may_come_later_than_the_service() -> None:
    """The service serves; its news begin to flow."""
    async with nats_server() as nats:
        nats.kill()
        async with running(nats.url) as one:
            await reported(one, "NATS cannot be reached at the address of SPECBID_NATS_URL")
            heard, _ = one.watch("m")
            one.bus.publish("m", 1)
            assert heard.get_nowait() == 1
            nats.start()
            await reported(one, None)
            assert await soon(heard) is None


async def test_wrong_credentials_are_one_sentence_without_them() -> None:
    """Said once, tried again and again; the right ones get in."""
    async with nats_server("--user=service", "--pass=right") as nats:
        wrong = nats.url.replace("//", "//service:sesame@")
        async with running(wrong) as one:
            await reported(one, REFUSED)
            assert one.bus.poll_seconds == 0.5
        async with running(nats.url.replace("//", "//service:right@")) as two:
            await reported(two, None)


async def test_a_credentials_file_lets_its_user_in_and_no_other(tmp_path: Path) -> None:
    """A user of another operator is refused, in one sentence."""
    ours, others = Accounts(), Accounts()
    ours.write_configuration(tmp_path / "nats.conf")
    ours.write_credentials(tmp_path / "ours.creds")
    others.write_credentials(tmp_path / "others.creds")
    async with nats_server(f"--config={tmp_path / 'nats.conf'}") as nats:
        async with running(nats.url, tmp_path / "ours.creds") as one:
            await reported(one, None)
        async with running(nats.url, tmp_path / "others.creds") as two:
            await reported(two, REFUSED)


async def test_a_credentials_file_that_is_none_is_named(nats: NatsServer, tmp_path: Path) -> None:
    """Whether it is missing or holds something else."""
    (tmp_path / "diary").write_text("Dear diary")
    for name in ("nowhere", "diary"):
        async with running(nats.url, tmp_path / name) as one:
            await reported(one, "SPECBID_NATS_CREDENTIALS_FILE cannot be read as NATS credentials")


async def test_garbage_on_the_bus_is_passed_over(nats: NatsServer) -> None:
    """It may be anybody's."""
    async with running(nats.url) as one, nats_client(nats) as stranger:
        heard = await one.watches("m")
        for garbage in (b"", b"-1", b"seven", b"\xff", b"7.5"):
            await stranger.publish(f"{SUBJECT}m", garbage)
        await stranger.publish(f"{SUBJECT}m", b"7")
        assert await soon(heard) == 7
        assert heard.empty()
