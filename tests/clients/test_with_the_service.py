"""The client and the real service together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from service.wiring import serving
from spectacularbid.client import Desync, Settings, UnauthenticatedError, connect
from spectacularbid.client.bots import greedy_choice, random_choice, run_bot
from spectacularbid.client.commands.demo import demo
from spectacularbid.client.commands.duel import seat_bots
from spectacularbid.client.commands.play import play
from spectacularbid.client.commands.smoke import smoke
from spectacularbid.client.commands.verify import verify
from spectacularbid.v1.commands_pb2 import Command, Resign, Start
from spectacularbid.v1.match_service_pb2 import MatchUpdate
from spectacularbid.v1.tiles_pb2 import SEAT_ONE
from tests.clients.terminals import Typed, arguments, paper_terminal
from tests.support import server as support
from tests.support.platform import Platform
from tests.support.server import UNHURRIED

RESTART_AT_VERSION = 20


@asynccontextmanager
async def served(database: Path, *, port: int = 0) -> AsyncIterator[str]:
    """The address of a service for as long as the context lasts."""
    settings = UNHURRIED.model_copy(
        update={"port": port, "metrics_port": 0, "database": database, "drain_seconds": 0.0, "log_level": "error"}
    )
    async with serving(settings) as running:
        yield running.addresses.grpc


@pytest.fixture
async def real_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """A service with a file of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    async with served(tmp_path / "matches.sqlite3") as address:
        yield address


async def test_smoke_passes(real_address: str) -> None:
    """A whole match, consistent from the outside."""
    terminal, paper = paper_terminal()
    status = await smoke(terminal, arguments("smoke", "--server", real_address, "--seed", "1"))
    assert paper.lines[0].startswith("smoke passed: ")
    assert status == 0


async def test_the_demo_tells_everything(real_address: str) -> None:
    """No event is missed, and it ends with a rated result."""
    terminal, paper = paper_terminal()
    assert await demo(terminal, arguments("demo", "--server", real_address, "--seed", "1"), None) == 0
    assert "Round 1: ranked opening" in paper.lines
    assert "(some events were not told)" not in paper.lines
    assert any(line.endswith("(rated)") for line in paper.lines)


async def test_both_seats_take_part_in_the_deal_and_anybody_can_check_it(real_address: str) -> None:
    """Sessions commit and open by themselves; the proof holds what each of them kept."""
    async with connect(real_address) as service:
        duel = await seat_bots(service)
        one, two = duel.seats
        for seat in duel.seats:
            assert (await seat.submit(Command(start=Start()))).HasField("accepted")
        await one.submit(Command(resign=Resign()))
        proof = await duel.gallery.deal_proof()
        assert [seat.entropy for seat in proof.seats] == [one.part.reveal(), two.part.reveal()]
        assert all(len(seat.part.reveal()) == 32 and not seat.part.problems(proof) for seat in duel.seats)
    terminal, paper = paper_terminal()
    words = ("--server", real_address, "--match", one.match_id, "--token", two.token.reveal())
    assert await verify(terminal, arguments("verify", *words)) == 0
    assert paper.lines[0].startswith(f"Match {one.match_id}: 1 rounds")


async def test_a_shared_device_takes_part_in_the_deal(real_address: str) -> None:
    """With the entropy of the one who made the match."""
    async with connect(real_address) as service:
        session = await service.create_shared_match("Ann", "Bob")
        assert (await session.submit(Command(start=Start()))).HasField("accepted")
        await session.submit(Command(resign=Resign(seat=SEAT_ONE)))
        proof = await session.deal_proof()
        assert proof.seats[0].entropy == session.part.reveal() != b""
        assert session.part.problems(proof) == []


async def test_always_the_first_choice_plays_a_whole_match(real_address: str) -> None:
    """As `yes 1 | spectacular-bid play` does."""
    terminal, paper = paper_terminal()
    args = arguments("play", "--server", real_address, "--against", "bot:random")
    assert await play(terminal, args, Typed(["1"] * 10_000)) == 0
    assert not any(line.startswith("Refused") for line in paper.lines)
    assert any(line.endswith("(rated)") for line in paper.lines)


async def test_two_players_share_a_device(real_address: str) -> None:
    """Start, then reveal and play in turn; leaving keeps the match."""
    terminal, paper = paper_terminal()
    args = arguments("play", "--server", real_address, "--pass-and-play")
    assert await play(terminal, args, Typed(["1"] * 30)) == 0
    assert not any(line.startswith("Refused") for line in paper.lines)
    assert paper.lines.count("1) reveal") > 5
    assert paper.lines[-1].startswith("To go on: ")


async def test_a_match_outlives_a_planned_restart_of_the_service(tmp_path: Path) -> None:
    """Both bots play on over the same connection, and every digest matches."""
    desyncs: list[Desync] = []
    is_time = asyncio.Event()

    def look(update: MatchUpdate) -> None:
        if update.view.public.version >= RESTART_AT_VERSION:
            is_time.set()

    database = tmp_path / "matches.sqlite3"
    async with served(database) as address:
        service = connect(address, settings=Settings(on_desync=desyncs.append))
        duel = await seat_bots(service)
        bots = [
            asyncio.ensure_future(run_bot(session, strategy, rng=Random(1), on_update=look))
            for session, strategy in zip(duel.seats, (greedy_choice, random_choice), strict=True)
        ]
        await is_time.wait()
    async with served(database, port=int(address.rpartition(":")[2])), service:
        first, second = await asyncio.gather(*bots)
    assert first == second
    assert first.rated
    assert desyncs == []


async def test_a_session_rotates_its_token(real_address: str) -> None:
    """It goes on with the fresh one; the old one is good for nothing."""
    async with connect(real_address) as service:
        ann = await service.create_match("Ann")
        old = ann.token
        fresh = await ann.rotate_token()
        assert fresh.reveal() != old.reveal()
        assert (await ann.get()).view.own.seat == SEAT_ONE
        with pytest.raises(UnauthenticatedError):
            await service.resume(ann.match_id, old).get()


async def test_a_platform_token_goes_with_each_create_and_join(tmp_path: Path) -> None:
    """A fresh one each time: it lives for minutes only."""
    platform = Platform()
    names = iter(("ann", "bo"))
    chosen = Settings(platform_token=lambda: platform.token(sub=next(names)))
    async with served_by_the_platform(tmp_path, platform) as address, connect(address, settings=chosen) as service:
        ann = await service.create_match("Ann")
        bo = await service.join_match(ann.invite_code, "Bo")
        assert bo.match_id == ann.match_id
    async with served_by_the_platform(tmp_path, platform) as address, connect(address) as service:
        with pytest.raises(UnauthenticatedError):
            await service.create_match("Eve")


@asynccontextmanager
async def served_by_the_platform(folder: Path, platform: Platform) -> AsyncIterator[str]:
    """The address of a service that takes no guests."""
    async with support.served(folder / "platform.sqlite3", chosen=platform.settings(folder)) as running:
        yield running.address
