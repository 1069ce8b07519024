"""RulesService, TimeService, and the metrics for operators."""

import asyncio
import time
import urllib.request
from pathlib import Path

import pytest

from engine import auction, clock, deal, scoring
from engine.tiles import DOUBLE_SIX
from spectacularbid.v1.match_service_pb2 import GetMatchRequest
from spectacularbid.v1.rules_service_pb2 import GetRulesRequest, GetRulesResponse
from spectacularbid.v1.rules_service_pb2_grpc import RulesServiceStub
from spectacularbid.v1.time_service_pb2 import SyncRequest
from spectacularbid.v1.time_service_pb2_grpc import TimeServiceStub
from tests.support.players import CONTINUE, RESIGN, START, Table, new_id, new_table, read_update
from tests.support.rejections import rejection
from tests.support.server import Server, served
from tests.support.waiting import until

RULES = (Path(__file__).resolve().parents[2] / "engine" / "rules.txt").read_text(encoding="utf-8")


async def rules_of(server: Server) -> GetRulesResponse:
    """The rules as anybody may read them."""
    return await RulesServiceStub(server.channel).GetRules(GetRulesRequest())


async def test_the_rules_are_the_rule_text_by_its_headings(server: Server) -> None:
    """Nothing is lost, and every section has a heading and a text."""
    sections = (await rules_of(server)).sections
    assert all(section.heading and section.text for section in sections)
    told = "\n\n".join(f"{section.heading}\n\n{section.text}" for section in sections)
    assert told.split() == RULES.split()


async def test_the_figures_are_those_of_the_engine(server: Server) -> None:
    """A client needs to know none of them by heart."""
    figures = (await rules_of(server)).constants
    assert {field.name: value for field, value in figures.ListFields()} == {
        "starting_points": scoring.STARTING_POINTS,
        "points_per_counter": scoring.POINTS_PER_COUNTER,
        "tiles": len(DOUBLE_SIX),
        "hand_size": deal.HAND_SIZE,
        "boneyard_size": deal.BONEYARD_SIZE,
        "minimum_bid_points": auction.MINIMUM_BID_POINTS,
        "bid_step_points": auction.BID_STEP_POINTS,
        "jockey_credit_points": auction.CREDIT_POINTS,
        "bank_ns": clock.BANK_NS,
        "delay_ns": clock.DELAY_NS,
    }


async def test_reading_the_rules_touches_no_clock(server: Server, table: Table) -> None:
    """Rules help takes no time from anybody, and gives none."""
    before = await table.one.view()
    for _ in range(5):
        await rules_of(server)
    assert await table.one.view() == before


async def test_a_sample_of_the_service_clock_lies_between_sending_and_receiving(server: Server) -> None:
    """Any zero, any rate of the client's clock: it is only echoed."""
    stub = TimeServiceStub(server.channel)
    samples = []
    for _ in range(5):
        sent_ns = time.perf_counter_ns()
        sample = await stub.Sync(SyncRequest(client_sent_ns=sent_ns))
        assert sample.client_sent_ns == sent_ns
        assert sample.received_unix_ns <= sample.transmitted_unix_ns
        assert sample.transmitted_unix_ns - sample.received_unix_ns <= time.perf_counter_ns() - sent_ns
        assert sample.error_bound_ns >= 0
        samples.append(sample.transmitted_unix_ns)
    assert samples == sorted(samples)


@pytest.mark.parametrize("sent_ns", [0, -1, 2**63 - 1, -(2**63)])
async def test_any_client_time_is_echoed(server: Server, sent_ns: int) -> None:
    """It decides nothing."""
    sample = await TimeServiceStub(server.channel).Sync(SyncRequest(client_sent_ns=sent_ns))
    assert sample.client_sent_ns == sent_ns


async def test_the_sample_is_on_the_line_of_the_clocks_in_views(server: Server, table: Table) -> None:
    """A client shows the deadline less the service's time."""
    sample = await TimeServiceStub(server.channel).Sync(SyncRequest())
    running = (await table.one.view()).public.clock.running
    assert running.started_at_unix_ns <= sample.received_unix_ns < running.deadline_unix_ns
    assert (await table.one.update()).service_now_unix_ns >= sample.transmitted_unix_ns


async def scraped(server: Server) -> dict[str, float]:
    """What Prometheus would read."""
    url = f"http://{server.service.addresses.metrics}/metrics"

    def read() -> str:
        with urllib.request.urlopen(url, timeout=10) as response:
            text: str = response.read().decode()
        return text

    lines = (await asyncio.to_thread(read)).splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def counter(metric: str, **labels: str) -> str:
    """A sample's name as it is written."""
    written = ",".join(f'{name}="{value}"' for name, value in sorted(labels.items()))
    return f"{metric}{{{written}}}" if written else metric


def handled(method: str, code: str) -> str:
    """The sample of calls that ended so."""
    return counter(
        "grpc_server_handled_total",
        grpc_type="server_stream" if method == "SpectateMatch" else "unary",
        grpc_service="spectacularbid.v1.MatchService",
        grpc_method=method,
        grpc_code=code,
    )


async def test_the_metrics_count_what_happened(tmp_path: Path) -> None:
    """Commands by kind and outcome, calls by method and code, matches, streams; repeats are counted once."""
    async with served(tmp_path / "matches.sqlite3") as server:
        quiet = ("grpc_", "specbid_commands", "specbid_matches", "specbid_streams")
        assert all(value == 0 for name, value in (await scraped(server)).items() if name.startswith(quiet))
        table = await new_table(server.channel)
        command_id = new_id()
        for _ in range(3):
            await table.one.submit(START, command_id=command_id)
        await table.one.submit(START)
        await table.two.submit(START)
        await table.one.submit(CONTINUE)
        await table.two.submit(RESIGN)
        await rejection(table.one.stub.GetMatch(GetMatchRequest(match_id="a" * 26), metadata=table.one.metadata))
        async with table.spectator.watching() as call:
            await read_update(call)
            seen = await scraped(server)
        assert seen[counter("specbid_streams_open", kind="spectate")] == 1
        await until(lambda: not server.sample("specbid_streams_open"))
        after = await scraped(server)
    commands = {name: value for name, value in seen.items() if name.startswith("specbid_commands_total") and value}
    assert commands == {
        counter("specbid_commands_total", kind="Start", outcome="accepted"): 2,
        counter("specbid_commands_total", kind="Start", outcome="already_ready"): 1,
        counter("specbid_commands_total", kind="Continue", outcome="wrong_phase"): 1,
        counter("specbid_commands_total", kind="Resign", outcome="accepted"): 1,
    }
    assert seen[handled("SubmitCommand", "OK")] == 7
    assert seen[handled("GetMatch", "PermissionDenied")] == 1
    assert seen[handled("CreateMatch", "OK")] == seen[handled("JoinMatch", "OK")] == 1
    assert seen["specbid_matches_created_total"] == 1
    assert seen[counter("specbid_matches_finished_total", result="resignation")] == 1
    assert seen["specbid_arrival_to_commit_seconds_count"] == 5
    assert after[handled("SpectateMatch", "Canceled")] == 1
    assert after[counter("specbid_streams_open", kind="spectate")] == 0


async def test_the_metrics_name_nobody(server: Server, table: Table) -> None:
    """Channel 16: no ids, no players, no texts; the labels are closed sets, there before the first sample."""
    before = set(await scraped(server))
    fresh = await new_table(server.channel, start=True)
    names = set(await scraped(server))
    assert names == before
    for secret in (table.one.match_id, fresh.one.token, "Ada", fresh.invite_code):
        assert not any(secret in name for name in names)
