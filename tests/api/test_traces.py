"""OpenTelemetry on and off: spans of calls and commands in the callers' traces, and nothing secret in them."""

import socket
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from unittest.mock import patch

import grpc
import pytest
import pytest_asyncio
import structlog
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from service import logs
from service.core import GRACE_SECONDS
from service.rpc import otel
from spectacularbid.v1 import match_service_pb2 as pb
from tests.support.openmetrics import families_of, openmetrics
from tests.support.players import PASS, START, Table, in_stream, legal_commands, new_id, new_table, read_play
from tests.support.rejections import rejection
from tests.support.server import UNHURRIED, Server, run_command, served, server_process

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
SPAN_ID = "b7ad6b7169203331"
SAMPLED, NOT_SAMPLED = (f"00-{TRACE_ID}-{SPAN_ID}-{flags}" for flags in ("01", "00"))


class Traced:
    """A service that traces, and the spans that it has sent."""

    def __init__(self, server: Server, exporter: InMemorySpanExporter) -> None:
        self.server = server
        self._exporter = exporter

    def spans(self, name: str) -> Sequence[ReadableSpan]:
        """The spans of this name that have ended."""
        tracing = self.server.service._tracing
        assert isinstance(tracing, otel.Otel)
        tracing._provider.force_flush()
        return [span for span in self._exporter.get_finished_spans() if span.name == name]

    def span(self, name: str) -> ReadableSpan:
        """The one span of this name."""
        (span,) = self.spans(name)
        return span

    def everything(self) -> str:
        """All spans as text."""
        return "".join(span.to_json() for span in self._exporter.get_finished_spans())


@pytest_asyncio.fixture(loop_scope="session")
async def traced(tmp_path: Path) -> AsyncIterator[Traced]:
    """Everything is real but the way out."""
    exporter = InMemorySpanExporter()
    chosen = UNHURRIED.model_copy(update={"traces": True})
    with patch.object(otel, "OTLPSpanExporter", lambda: exporter):
        async with served(tmp_path / "matches.sqlite3", chosen=chosen) as server:
            yield Traced(server, exporter)


def call_of(method: str) -> str:
    """The name of a call's span."""
    return f"spectacularbid.v1.MatchService/{method}"


async def submit(table: Table, *, traceparent: str, command_id: str = "") -> None:
    """Seat ONE is ready, and says of which trace its call is a part."""
    metadata = (*table.one.metadata, ("traceparent", traceparent))
    await table.one.stub.SubmitCommand(table.one.request(START, command_id=command_id), metadata=metadata)


async def test_a_call_and_its_command_are_parts_of_the_caller_s_trace(traced: Traced) -> None:
    """From its metadata; the command begins with its stamp and knows its stages."""
    table = await new_table(traced.server.channel)
    await submit(table, traceparent=SAMPLED)
    call, command = traced.span(call_of("SubmitCommand")), traced.span("command Start")
    assert call.context is not None
    assert call.parent is not None
    assert command.context is not None
    assert command.parent is not None
    assert f"{call.context.trace_id:032x}" == f"{command.context.trace_id:032x}" == TRACE_ID
    assert f"{call.parent.span_id:016x}" == SPAN_ID
    assert command.parent.span_id == call.context.span_id
    assert call.resource.attributes["service.name"] == "spectacular-bid"
    assert call.attributes == {
        "rpc.system": "grpc",
        "rpc.service": "spectacularbid.v1.MatchService",
        "rpc.method": "SubmitCommand",
        "rpc.grpc.status_code": 0,
    }
    assert command.attributes == {
        "specbid.command": "Start",
        "specbid.match_id": table.one.match_id,
        "specbid.outcome": "accepted",
    }
    instants = [command.start_time, *(event.timestamp for event in command.events), command.end_time]
    assert [event.name for event in command.events] == ["begun", "decided"]
    assert None not in instants
    assert instants == sorted(instant for instant in instants if instant is not None)


async def test_the_trace_can_be_found_from_a_slow_command_and_from_the_log(traced: Traced) -> None:
    """The exemplar and every line that is logged on the way have its id."""
    table = await new_table(traced.server.channel)
    await submit(table, traceparent=SAMPLED)
    text = openmetrics(traced.server.service._metrics.registry)
    samples = families_of(text)["specbid_arrival_to_commit_seconds"].samples
    (exemplar,) = [sample.exemplar for sample in samples if sample.exemplar]
    assert exemplar.labels == {"match_id": table.one.match_id, "trace_id": TRACE_ID}
    store = traced.server.service._core._watermark._store
    metadata = (*table.two.metadata, ("traceparent", SAMPLED))
    with (
        structlog.testing.capture_logs(processors=[logs.with_order]) as entries,
        patch.object(store, "append", side_effect=ZeroDivisionError),
    ):
        await rejection(table.two.stub.SubmitCommand(table.two.request(START), metadata=metadata))
    told = {entry["event"]: entry.get("trace_id") for entry in entries}
    assert told == {"command_failed": TRACE_ID, "internal_error": TRACE_ID}
    failed = traced.spans("command Start")[-1]
    assert failed.attributes is not None
    assert failed.attributes["specbid.outcome"] == "internal_error"
    assert traced.spans(call_of("SubmitCommand"))[-1].status.status_code is StatusCode.ERROR


async def test_a_refusal_and_a_repeat_are_outcomes_and_a_caller_s_mistake_is_no_error(traced: Traced) -> None:
    """A span fails only where the service did."""
    table = await new_table(traced.server.channel)
    command_id = new_id()
    for _ in range(2):
        await submit(table, traceparent=SAMPLED, command_id=command_id)
    await table.one.submit(PASS)
    await rejection(table.one.stub.GetMatch(pb.GetMatchRequest(match_id="a" * 26), metadata=table.one.metadata))
    outcomes = [dict(span.attributes or {})["specbid.outcome"] for span in traced.spans("command Start")]
    assert outcomes == ["accepted", "repeated"]
    assert dict(traced.span("command Pass").attributes or {})["specbid.outcome"] == "wrong_phase"
    call = traced.span(call_of("GetMatch"))
    assert dict(call.attributes or {})["rpc.grpc.status_code"] == grpc.StatusCode.PERMISSION_DENIED.value[0]
    assert call.status.status_code is StatusCode.UNSET


async def test_a_stream_is_not_traced_but_its_commands_are(traced: Traced) -> None:
    """In the trace in which it was opened, else each in one of its own."""
    table = await new_table(traced.server.channel)
    call = table.one.stub.PlayMatch(metadata=(*table.one.metadata, ("traceparent", SAMPLED)))
    await call.write(pb.PlayMatchRequest(open=pb.PlayMatchOpen(match_id=table.one.match_id)))
    await call.write(in_stream(START))
    async with table.two.playing() as other:
        await other.write(in_stream(START))
        for stream in (call, other):
            while not (await read_play(stream)).HasField("outcome"):
                pass
    call.cancel()
    one, two = traced.spans("command Start")
    assert {f"{span.context.trace_id:032x}" == TRACE_ID for span in (one, two) if span.context} == {True, False}
    assert traced.spans(call_of("PlayMatch")) == []


async def test_what_the_caller_does_not_sample_is_not_sent_and_named_nowhere(traced: Traced) -> None:
    """Its trace id would lead to nothing."""
    table = await new_table(traced.server.channel)
    await submit(table, traceparent=NOT_SAMPLED)
    assert traced.spans("command Start") == []
    assert TRACE_ID not in openmetrics(traced.server.service._metrics.registry)


async def test_spans_hold_no_token_no_tile_and_no_word_of_an_error(traced: Traced) -> None:
    """Whatever happens in a match: bids, plays, draws, mistakes, and a caller that fills its headers."""
    table = await new_table(traced.server.channel, start=True)
    for _ in range(20):
        view = await table.on_turn_view()
        await table.seat(view.own.seat).do(table.chance.choice(legal_commands(view)))
    secret = ("baggage", "hand=5-5"), ("x-secret", "hunter2")
    await table.one.stub.GetMatch(
        pb.GetMatchRequest(match_id=table.one.match_id), metadata=(*table.one.metadata, *secret)
    )
    await rejection(table.one.stub.SubmitCommand(pb.SubmitCommandRequest(match_id="hunter2"), metadata=()))
    assert traced.spans(call_of("SubmitCommand"))
    text = traced.everything()
    for word in (table.one.token, table.two.token, "hunter2", "5-5", "Ada", "127.0.0.1"):
        assert word not in text
    allowed = {"rpc.system", "rpc.service", "rpc.method", "rpc.grpc.status_code"}
    allowed |= {"specbid.command", "specbid.match_id", "specbid.outcome"}
    for span in traced._exporter.get_finished_spans():
        assert set(span.attributes or {}) <= allowed
        assert all(not event.attributes for event in span.events)


async def test_a_service_that_stops_sends_what_it_has_under_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last batch is not lost; the standard variable names the service."""
    monkeypatch.setenv("OTEL_SERVICE_NAME", "mine")
    exporter = InMemorySpanExporter()
    with patch.object(otel, "OTLPSpanExporter", lambda: exporter):
        chosen = UNHURRIED.model_copy(update={"traces": True})
        async with served(tmp_path / "matches.sqlite3", chosen=chosen) as server:
            await new_table(server.channel)
    spans = exporter.get_finished_spans()
    assert {span.name for span in spans} == {call_of("CreateMatch"), call_of("JoinMatch")}
    assert {span.resource.attributes["service.name"] for span in spans} == {"mine"}


async def test_a_collector_that_does_not_answer_does_not_hold_up_a_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes connections and says nothing; the process ends well and in time all the same."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        async with (
            server_process(tmp_path / "m.sqlite3", TRACES="true", DRAIN_SECONDS="0") as server,
            grpc.aio.insecure_channel(server.address) as channel,
        ):
            await new_table(channel, start=True)
            began = time.monotonic()
            assert await server.stop() == 0
            assert time.monotonic() - began < GRACE_SECONDS


@pytest.fixture
def not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever imports OpenTelemetry fails, as without the extra."""
    package = tmp_path / "opentelemetry"
    package.mkdir()
    (package / "__init__.py").write_text("raise ModuleNotFoundError('not installed')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


@pytest.mark.usefixtures("not_installed")
async def test_nothing_of_opentelemetry_is_imported_when_it_is_switched_off(tmp_path: Path) -> None:
    """A service without the extra serves."""
    async with server_process(tmp_path / "m.sqlite3") as server, grpc.aio.insecure_channel(server.address) as channel:
        await new_table(channel, start=True)
        assert await server.stop() == 0


@pytest.mark.usefixtures("not_installed")
async def test_switched_on_without_the_extra_the_start_says_what_to_install(tmp_path: Path) -> None:
    """In one sentence, with the status of a start that failed."""
    finished = await run_command("serve", database=tmp_path / "m.sqlite3", TRACES="true")
    assert finished.status == 2
    assert finished.errors.splitlines()[-1] == (
        "spectacular-bid cannot start: SPECBID_TRACES needs the extra: pip install 'spectacular-bid[otel]'"
    )
