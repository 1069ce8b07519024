"""`make dev` as a person meets it: printed instructions that work, and a clean end."""

import asyncio
import re
import signal
import sys
import urllib.request
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest

from tests.support.players import is_over, new_table, play_until
from tests.support.programs import answers
from tests.support.server import ROOT

START_SECONDS, STOP_SECONDS = 60.0, 30.0


@asynccontextmanager
async def dev() -> AsyncIterator[tuple[Process, str]]:
    """Runs it; gives the process and what it printed up to its last line."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.dev", cwd=ROOT, stdout=PIPE, stderr=PIPE, start_new_session=True
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(START_SECONDS):
            printed = (await process.stdout.readuntil(b"matches are gone.\n")).decode()
        yield process, printed
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.communicate()


def ports_in(printed: str) -> set[int]:
    """Every port that it names."""
    return {int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)", printed)}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_make_dev_serves_what_it_prints_and_stops_without_a_trace(number: signal.Signals) -> None:
    async with dev() as (process, printed):
        door = re.findall(r"--server (\S+)", printed)[0]
        async with grpc.aio.insecure_channel(door) as channel:
            view = await play_until(await new_table(channel, start=True), lambda view: view.public.version > 20)
        assert view.public.version > 20 or is_over(view)
        for page in re.findall(r"http://\S+/metrics", printed):
            with await asyncio.to_thread(urllib.request.urlopen, page) as response:
                assert b"specbid_forged_arrival_headers_total 0.0" in response.read()  # Envoy's are believed
        assert all([await answers(port) for port in ports_in(printed)])
        process.send_signal(number)
        async with asyncio.timeout(STOP_SECONDS):
            assert await process.wait() == 0
    assert not any([await answers(port) for port in ports_in(printed)])


async def test_make_dev_prints_what_another_replica_needs() -> None:
    async with dev() as (_, printed):
        exported = dict(re.findall(r"^export (SPECBID_\w+)=(\S+)$", printed, re.MULTILINE))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "service", "admin", "faults"), cwd=ROOT, env=exported, stdout=PIPE
        )
        output, _ = await process.communicate()
    assert (process.returncode, output) == (0, b"0 faults\n")
