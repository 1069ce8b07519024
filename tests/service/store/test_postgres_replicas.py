"""Replicas on one database: who lives, who was fenced and comes back, what they tell each other of faults."""

from collections.abc import Awaitable, Callable

import pytest

from engine.faults import Fault, FaultCause
from engine.view import Audience
from service.ports import FencedError, Heartbeat, LedgerRow, Others, Peer, VersionConflictError
from service.secret import Secret
from service.store.postgres import PostgresStore
from tests.service.store.conftest import SEAL, OpenReplica
from tests.support.postgres import connected
from tests.support.store import CREATED, NOON_NS, creation, move, outcome

SECOND_NS = 1_000_000_000
BEAT = Heartbeat(NOON_NS, NOON_NS)

Forget = Callable[[str, int], Awaitable[None]]


@pytest.fixture
def unseen(dsn: Secret[str]) -> Forget:
    """Puts the last sign of a replica so many seconds back."""

    async def put_back(name: str, seconds: int) -> None:
        async with connected(dsn.reveal()) as shell:
            statement = "UPDATE replicas SET seen_at = seen_at - make_interval(secs => $2) WHERE replica_id = $1"
            await shell.execute(statement, name, seconds)

    return put_back


async def peer_of(store: PostgresStore) -> Peer:
    """The only other replica."""
    (peer,) = (await store.beat(BEAT)).peers
    return peer


async def test_replicas_see_each_others_heartbeats(open_replica: OpenReplica) -> None:
    """As they were stored last, and how long ago that was."""
    one, two = await open_replica(), await open_replica()
    await two.beat(Heartbeat(NOON_NS + 7, NOON_NS + 5))
    peer = await peer_of(one)
    assert (peer.name, peer.epoch, peer.heartbeat) == ("replica 2", 1, Heartbeat(NOON_NS + 7, NOON_NS + 5))
    assert 0 <= peer.unseen_ns < 3 * SECOND_NS
    await two.beat(Heartbeat(NOON_NS + 9, NOON_NS + 8, leaving=True))
    assert (await peer_of(one)).heartbeat == Heartbeat(NOON_NS + 9, NOON_NS + 8, leaving=True)
    assert (await one.others()).peers[0].heartbeat.leaving


async def test_a_replica_that_retired_is_no_peer(open_replica: OpenReplica) -> None:
    """Its absence holds up nobody."""
    one, two = await open_replica(), await open_replica()
    await two.beat(Heartbeat(NOON_NS, NOON_NS, retired=True))
    assert await one.beat(BEAT) == Others()


async def test_a_replica_that_does_not_serve_yet_is_no_peer(open_replica: OpenReplica, dsn: Secret[str]) -> None:
    """Before its first heartbeat it takes no commands, and what it hands in is refused."""
    one = await open_replica()
    await one.append(creation("m"))
    silent = await PostgresStore.open(dsn, seal=SEAL, replica_id="silent", durability="single-node")
    assert (await silent.others()).peers[0].name == "replica 1"
    assert await one.beat(BEAT) == Others()
    with pytest.raises(FencedError):
        await silent.append(move("m", 1))
    await silent.close()


async def test_a_fenced_replica_moves_no_match_until_it_is_back(open_replica: OpenReplica, unseen: Forget) -> None:
    """Neither a new one nor an old one, nor a record; its next heartbeat opens a new epoch."""
    one, two = await open_replica(), await open_replica()
    await one.append(creation("m"))
    await unseen("replica 2", 4)
    peer = await peer_of(one)
    assert peer.unseen_ns >= 3 * SECOND_NS
    await one.fence(peer)
    assert await one.beat(BEAT) == Others()
    for change in (creation("n"), move("m", 1), move("m", 1, record=outcome("c"))):
        with pytest.raises(FencedError):
            await two.append(change)
    assert await one.steps("n") == []
    assert await one.steps("m") == [CREATED]
    assert await one.command("m", Audience.SEAT_ONE, "c") is None
    await two.beat(BEAT)
    assert (await peer_of(one)).epoch == 2
    await two.append(move("m", 1, record=outcome("c")))


async def test_what_a_fenced_replica_is_told_first_is_the_conflict(open_replica: OpenReplica, unseen: Forget) -> None:
    """It has to read on in any case."""
    one, two = await open_replica(), await open_replica()
    await one.append(creation("m"))
    await unseen("replica 2", 4)
    await one.fence(await peer_of(one))
    with pytest.raises(VersionConflictError):
        await two.append(move("m", 5))


async def test_a_replica_that_was_seen_since_is_not_fenced(open_replica: OpenReplica, unseen: Forget) -> None:
    """It was late, not lost."""
    one, two = await open_replica(), await open_replica()
    await unseen("replica 2", 4)
    peer = await peer_of(one)
    await two.beat(BEAT)
    await one.fence(peer)
    await two.append(creation("m"))
    assert (await peer_of(one)).epoch == 1


async def test_a_fence_is_for_the_epoch_that_was_lost(open_replica: OpenReplica, unseen: Forget) -> None:
    """Whoever decided on what it saw long ago fences nobody who came back since."""
    one, two = await open_replica(), await open_replica()
    await unseen("replica 2", 4)
    peer = await peer_of(one)
    await one.fence(peer)
    await two.beat(BEAT)
    await unseen("replica 2", 4)
    await one.fence(peer)
    await two.append(creation("m"))


def fault(number: int) -> LedgerRow:
    """One of many."""
    return LedgerRow(Fault(FaultCause.STORE_GAP, NOON_NS, NOON_NS + number, f"fault {number}"))


async def test_replicas_hear_of_each_others_faults_once(open_replica: OpenReplica) -> None:
    """With the next heartbeat, in order; nobody hears of its own."""
    one, two = await open_replica(), await open_replica()
    await one.record_fault(fault(1))
    await two.record_fault(fault(2))
    await two.record_fault(fault(3))
    assert (await one.beat(BEAT)).faults == (fault(2), fault(3))
    assert (await one.beat(BEAT)).faults == ()
    assert (await two.beat(BEAT)).faults == (fault(1),)
    assert await two.faults(0) == [fault(1), fault(2), fault(3)]


async def test_what_was_loaded_is_no_news(open_replica: OpenReplica) -> None:
    """A replica that starts reads the ledger first."""
    one = await open_replica()
    await one.record_fault(fault(1))
    two = await open_replica()
    await two.faults(NOON_NS)
    await one.record_fault(fault(2))
    assert (await two.beat(BEAT)).faults == (fault(2),)


async def test_replicas_that_are_gone_for_long_are_forgotten(open_replica: OpenReplica, unseen: Forget) -> None:
    """Each start of a process leaves a row behind."""
    one, two = await open_replica(), await open_replica()
    await two.beat(Heartbeat(NOON_NS, NOON_NS, retired=True))
    await unseen("replica 2", 100_000)
    await one.others()
    await two.beat(BEAT)
    assert (await peer_of(one)).epoch == 1
