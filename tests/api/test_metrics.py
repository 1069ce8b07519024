"""The metrics of a whole service, seen to move by real calls, and what the scrape endpoint offers."""

import asyncio
import platform
import time
import urllib.request
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from importlib.metadata import version
from pathlib import Path

import grpc
import pytest
import pytest_asyncio

from service import limits
from service.limits import LimitedError, StreamReplacedError, TokenRevokedError, TooManySpectatorsError
from service.metrics.streams import StreamEnd
from service.ports import StoreUnavailableError
from service.rpc.statuses import FUTURE_VERSION, SLOW_READER, StatusError
from service.rpc.stream_ends import stream_end
from service.settings import Settings
from service.writer import UnknownMatchError
from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1.time_service_pb2 import SyncRequest
from spectacularbid.v1.time_service_pb2_grpc import TimeServiceStub
from tests.support.openmetrics import ACCEPT, families_of
from tests.support.players import (
    PASS,
    RESIGN,
    START,
    Table,
    in_stream,
    is_over,
    legal_commands,
    new_id,
    new_table,
    play_until,
    read_play,
    read_to_end,
    read_update,
)
from tests.support.rejections import rejection
from tests.support.server import Server, served
from tests.support.waiting import until

MOST_SERIES = 1_500
MATCHES = "spectacularbid.v1.MatchService"


@pytest_asyncio.fixture(loop_scope="session")
async def fresh(tmp_path: Path) -> AsyncIterator[Server]:
    """A service that nobody has called yet."""
    async with served(tmp_path / "matches.sqlite3") as running:
        yield running


def calls(server: Server, metric: str, method: str, **labels: str) -> float:
    """A gRPC metric of a method of MatchService."""
    return server.sample(f"grpc_server_{metric}", grpc_service=MATCHES, grpc_method=method, **labels)


def streams(server: Server, kind: str) -> float:
    """How many streams of a kind are open."""
    return server.sample("specbid_streams_open", kind=kind)


def ended(server: Server, kind: str, reason: str) -> float:
    """How many streams of a kind have ended for this reason."""
    return server.sample("specbid_streams_ended_total", kind=kind, reason=reason)


def shed(server: Server, limit: str) -> float:
    """How many requests met a limit."""
    return server.sample("specbid_load_shed_total", limit=limit)


async def scrape(server: Server, accept: str = "*/*") -> tuple[str, str]:
    """What the endpoint says to whoever accepts this: the kind of text, and the text."""
    request = urllib.request.Request(f"http://{server.service.addresses.metrics}/metrics", headers={"Accept": accept})

    def read() -> tuple[str, str]:
        with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310  our own address
            return response.headers["Content-Type"], response.read().decode()

    return await asyncio.to_thread(read)


def series_of(text: str) -> set[str]:
    """The names and labels of all samples."""
    return {line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")}


async def test_calls_and_messages_are_counted_by_method_and_kind_of_call(fresh: Server) -> None:
    """Under the names that dashboards for Go's services know."""
    table = await new_table(fresh.channel)
    await table.one.submit(START)
    await rejection(table.one.stub.GetMatch(pb.GetMatchRequest(match_id="a" * 26), metadata=table.one.metadata))
    assert calls(fresh, "started_total", "SubmitCommand", grpc_type="unary") == 1
    assert calls(fresh, "handled_total", "SubmitCommand", grpc_type="unary", grpc_code="OK") == 1
    assert calls(fresh, "msg_received_total", "SubmitCommand") == calls(fresh, "msg_sent_total", "SubmitCommand") == 1
    assert 0 < calls(fresh, "handling_seconds_sum", "SubmitCommand", grpc_type="unary") < 10
    # A status may be read before the server has counted it.
    await until(lambda: calls(fresh, "handled_total", "GetMatch", grpc_code="PermissionDenied") == 1)
    assert (calls(fresh, "msg_received_total", "GetMatch"), calls(fresh, "msg_sent_total", "GetMatch")) == (1, 0)
    async with table.two.playing() as play:
        await read_play(play)
        await play.write(in_stream(START))
        await read_play(play)
        assert calls(fresh, "msg_received_total", "PlayMatch", grpc_type="bidi_stream") == 2
        assert calls(fresh, "msg_sent_total", "PlayMatch") >= 2
        assert calls(fresh, "handled_total", "PlayMatch") == 0
    async with table.spectator.watching() as watch:
        await read_update(watch)
    await until(lambda: calls(fresh, "handled_total", "SpectateMatch", grpc_type="server_stream") == 1)
    await until(lambda: calls(fresh, "handled_total", "PlayMatch", grpc_code="Canceled") == 1)
    with pytest.raises(AssertionError):
        calls(fresh, "handling_seconds_count", "PlayMatch")
    await TimeServiceStub(fresh.channel).Sync(SyncRequest())
    assert fresh.sample("grpc_server_handled_total", grpc_method="Sync", grpc_code="OK") == 1


async def test_streams_are_counted_by_kind_while_they_are_open_and_by_reason_when_they_end(tmp_path: Path) -> None:
    """A viewer who leaves, one who is done, one who asks for the future, one with too many, one with an old token."""
    async with AsyncExitStack() as open_streams:
        async with served(tmp_path / "matches.sqlite3") as server:
            table = await new_table(server.channel)
            async with table.one.watching() as watch, table.spectator.watching() as spectate:
                await asyncio.gather(read_update(watch), read_update(spectate))
                assert (streams(server, "watch"), streams(server, "spectate"), streams(server, "play")) == (1, 1, 0)
            await until(lambda: ended(server, "watch", "client_gone") == ended(server, "spectate", "client_gone") == 1)
            assert (streams(server, "watch"), streams(server, "spectate")) == (0, 0)
            async with table.one.playing() as play:
                await read_play(play)
                assert streams(server, "play") == 1
                await play.done_writing()
                await read_to_end(play)
            assert ended(server, "play", "finished") == 1
            await rejection(table.one.watch(after_version=1_000).read())
            assert ended(server, "watch", "refused") == 1
            calls = [await open_streams.enter_async_context(table.one.watching()) for _ in range(3)]
            await rejection(read_to_end(calls[0]))
            assert ended(server, "watch", "replaced") == 1
            await table.one.stub.RotateToken(
                pb.RotateTokenRequest(match_id=table.one.match_id), metadata=table.one.metadata
            )
            await asyncio.gather(*(rejection(read_to_end(call)) for call in calls[1:]))
            assert ended(server, "watch", "token_rotated") == 2
            last = await open_streams.enter_async_context(table.spectator.watching())
            await read_update(last)
            assert server.sample("specbid_draining") == 0
        assert ended(server, "spectate", "going_away") == 1
        assert server.sample("specbid_streams_open") == 0
        assert server.sample("specbid_draining") == 1


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (grpc.aio.UsageError("x"), StreamEnd.CLIENT_GONE),
        (grpc.RpcError(), StreamEnd.CLIENT_GONE),
        (StreamReplacedError(), StreamEnd.REPLACED),
        (TokenRevokedError(), StreamEnd.TOKEN_ROTATED),
        (StatusError(SLOW_READER), StreamEnd.SLOW_READER),
        (StatusError(FUTURE_VERSION), StreamEnd.REFUSED),
        (LimitedError(1), StreamEnd.REFUSED),
        (TooManySpectatorsError(), StreamEnd.REFUSED),
        (UnknownMatchError(), StreamEnd.REFUSED),
        (StoreUnavailableError(), StreamEnd.UNAVAILABLE),
        (ValueError(), StreamEnd.INTERNAL_ERROR),
    ],
)
def test_every_error_that_ends_a_stream_has_its_reason(error: Exception, reason: StreamEnd) -> None:
    """Ours and the client's apart: they are counted against different people."""
    assert stream_end(error) is reason


async def test_what_streams_deliver_is_measured_from_the_moment_it_is_durable(fresh: Server) -> None:
    """Not what a stream begins with, and not a change of presence."""
    table = await new_table(fresh.channel, start=True)
    async with table.spectator.watching() as watch:
        await read_update(watch)
        assert fresh.sample("specbid_delivery_seconds_count") == 0
        view = await table.on_turn_view()
        await table.seat(view.own.seat).do(legal_commands(view)[0])
        await read_update(watch)
        await until(lambda: fresh.sample("specbid_delivery_seconds_count") == 1)
        assert 0 < fresh.sample("specbid_delivery_seconds_sum") < 10


async def test_operations_of_the_store_are_counted_and_measured(fresh: Server) -> None:
    """By outcome: a repeated command is found to be stored already."""

    def operations(operation: str, outcome: str) -> float:
        return fresh.sample("specbid_store_operations_total", operation=operation, outcome=outcome)

    table = await new_table(fresh.channel)
    before = operations("append", "ok")
    command_id = new_id()
    for _ in range(3):
        await table.one.submit(START, command_id=command_id)
    assert (operations("append", "ok"), operations("append", "conflict")) == (before + 1, 2)
    assert operations("command", "ok") == 2
    assert operations("beat", "ok") >= 1
    assert fresh.sample("specbid_store_seconds_count", operation="append") == before + 3
    assert 0 < fresh.sample("specbid_store_seconds_sum", operation="append") < 10


async def test_what_a_limit_turns_away_is_counted_under_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each limit under its own name."""
    async with served(tmp_path / "m.sqlite3", chosen=Settings(guests_per_second=3)) as server:
        table = await new_table(server.channel)
        await table.one.submit(PASS)
        await asyncio.gather(*(table.one.submit(PASS) for _ in range(30)), return_exceptions=True)
        assert shed(server, "commands") >= 5
        await asyncio.gather(*(table.two.view() for _ in range(15)), return_exceptions=True)
        assert shed(server, "reads") >= 2
        request = pb.CreateMatchRequest(request_id=new_id())
        await asyncio.gather(*(table.one.stub.CreateMatch(request) for _ in range(9)), return_exceptions=True)
        assert shed(server, "guests") >= 2
        monkeypatch.setattr(limits, "SPECTATORS", 0)
        await rejection(table.spectator.watch().read())
        assert shed(server, "spectators") == 1
        assert shed(server, "line") == shed(server, "unanswered") == shed(server, "creates") == 0


async def test_a_header_that_claims_a_time_of_arrival_is_counted(fresh: Server) -> None:
    """It has no effect, but somebody tries."""
    table = await new_table(fresh.channel)
    request, forged = table.one.request(START), ("x-request-start", "0")
    await table.one.stub.SubmitCommand(request, metadata=(*table.one.metadata, forged))
    assert fresh.sample("specbid_forged_arrival_headers_total") == 1


async def test_a_round_and_a_match_that_end_are_counted_by_how(fresh: Server) -> None:
    """And by how long the match took."""
    table = await new_table(fresh.channel, start=True)
    assert fresh.sample("specbid_matches_live", phase="opening") == 1
    await play_until(table, lambda view: view.public.round_number == 3)
    assert fresh.sample("specbid_rounds_finished_total") == 2
    if not is_over(await table.one.view()):
        await table.one.do(RESIGN)
    assert fresh.sample("specbid_matches_finished_total") == fresh.sample("specbid_matches_created_total") == 1
    assert fresh.sample("specbid_matches_live") == 0
    assert 0 < fresh.sample("specbid_match_duration_seconds_sum") < 100


async def test_the_process_tells_what_it_is_and_how_it_is(fresh: Server) -> None:
    """Its versions, its resources, its clock beside the wall's, its bus."""
    build = {"version": version("spectacular-bid"), "python": platform.python_version(), "grpcio": grpc.__version__}
    assert fresh.sample("specbid_build_info", **build) == 1
    assert fresh.sample("specbid_bus_connected") == 1
    assert abs(fresh.sample("specbid_clock_skew_seconds")) < 60
    assert fresh.sample("process_resident_memory_bytes") > 10_000_000
    assert 0 < fresh.sample("process_start_time_seconds") < time.time()


async def test_the_skew_is_how_far_service_time_has_left_the_wall_clock(
    fresh: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step of the wall clock shows here, and nowhere else."""
    before = fresh.sample("specbid_clock_skew_seconds")
    now_ns = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now_ns() - 90 * 10**9)
    assert fresh.sample("specbid_clock_skew_seconds") == pytest.approx(before + 90, abs=5)


async def test_exemplars_come_with_openmetrics_only_and_name_the_match_alone(fresh: Server) -> None:
    """A match's id opens no door; a token or a tile would."""
    table = await new_table(fresh.channel, start=True)
    plain_type, plain = await scrape(fresh)
    open_type, text = await scrape(fresh, ACCEPT)
    assert (plain_type.split(";")[0], open_type.split(";")[0]) == ("text/plain", "application/openmetrics-text")
    assert table.one.match_id not in plain
    samples = [sample for family in families_of(text).values() for sample in family.samples if sample.exemplar]
    assert {sample.name for sample in samples} == {"specbid_arrival_to_commit_seconds_bucket"}
    assert [sample.exemplar.labels for sample in samples if sample.exemplar] == (
        [{"match_id": table.one.match_id}] * len(samples)
    )
    assert samples


async def load(server: Server) -> None:
    """Many matches, players, watchers and mistakes at once."""

    async def one(number: int) -> None:
        table = await new_table(server.channel, start=True, shared_device=number % 4 == 0)
        table.chance.seed(number)
        async with table.spectator.watching() as watch, table.one.playing() as play:
            await asyncio.gather(read_update(watch), read_play(play))
            await play_until(table, lambda view: view.public.round_number == 2)
        await asyncio.gather(*(_mistake(table) for _ in range(5)))

    await asyncio.gather(*(one(number) for number in range(10)))


async def _mistake(table: Table) -> None:
    await table.one.submit(PASS)
    await rejection(table.one.stub.SubmitCommand(pb.SubmitCommandRequest(match_id="no"), metadata=table.one.metadata))


async def test_after_a_load_there_are_no_more_series_than_before_it_and_no_more_than_a_process_may_have(
    fresh: Server,
) -> None:
    """Every label set is there from the beginning; a dashboard shows zeros instead of gaps."""
    _, before = await scrape(fresh)
    await load(fresh)
    _, after = await scrape(fresh)
    assert series_of(after) == series_of(before)
    assert len(series_of(after)) <= MOST_SERIES
    assert after != before
