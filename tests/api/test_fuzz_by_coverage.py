"""Fuzzing that is led by the code it reaches: first the handlers in a process of their own, then the real port."""

import asyncio
import importlib.util
import sys
from pathlib import Path

import grpc
import pytest
import structlog

from service.rpc import requests
from tests.support.fuzz.inputs import COMMANDS, METHODS, packed, seeds, unpacked
from tests.support.fuzz.target import Target
from tests.support.players import Table
from tests.support.raw_calls import OURS, code_of
from tests.support.server import ROOT, Server
from tests.support.virtual_matches import MATCH_ID

FUZZED_SECONDS = 15
MOST_SECONDS = 60
LEAST_FOUND = 20
NEEDS_ATHERIS = pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None,
    reason="atheris has wheels for Linux on x86-64 only (see pyproject.toml); here test_fuzz.py alone sends garbage",
)


async def fuzzed(corpus: Path, seconds: int) -> tuple[int, str]:
    """Run the fuzzer in a process of its own: its status and what it said last."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.fuzz", str(corpus), str(seconds)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(MOST_SECONDS):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode is not None
    return process.returncode, output.decode(errors="replace")[-4_000:]


def contents(folder: Path) -> list[bytes]:
    """Every file."""
    return [file.read_bytes() for file in sorted(folder.iterdir())]


@NEEDS_ATHERIS
async def test_no_input_that_reaches_new_code_is_a_mistake_of_ours(
    server: Server, table: Table, tmp_path: Path
) -> None:
    """Neither in the handlers nor, with everything that was found to be different, at the port; and play goes on."""
    status, output = await fuzzed(tmp_path, FUZZED_SECONDS)
    assert status == 0, output
    corpus = contents(tmp_path)
    assert len(corpus) >= len(list(seeds(MATCH_ID))) + LEAST_FOUND
    for found in corpus:
        data = found.replace(MATCH_ID.encode(), table.one.match_id.encode())
        method, messages = unpacked(data)
        assert await code_of(server, method, messages, table.two.token) not in OURS, data
    assert (await table.one.view()).own.seat == 1


def test_good_inputs_reach_an_answer() -> None:
    """Every method, and every command on both its ways: where fuzzing begins."""
    target = Target()
    inputs = list(seeds(MATCH_ID))
    assert len(inputs) == len(METHODS) - 2 + 2 * len(COMMANDS)
    codes = [target.take(data) for data in inputs]
    assert codes.count(grpc.StatusCode.OK) > 2 * len(COMMANDS)
    assert target.take(b"") is not None
    target.close()


@pytest.mark.parametrize("name", ["SubmitCommand", "PlayMatch"])
def test_a_mistake_of_ours_would_be_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Negative control, also where it is told within a stream that goes on."""
    monkeypatch.setattr(requests, "command_fields", lambda _: 1 // 0)
    target = Target()
    inputs = [data for data in seeds(MATCH_ID) if unpacked(data)[0].name == name]
    with structlog.testing.capture_logs(), pytest.raises(AssertionError, match=name):
        target.take(inputs[0])
    target.close()


def test_inputs_are_taken_apart_as_they_were_put_together() -> None:
    """Otherwise good ones would not be good."""
    for method in METHODS:
        assert unpacked(packed(method, b"abc")) == (method, [b"abc"])
    (play,) = [method for method in METHODS if method.client_streaming]
    assert unpacked(packed(play, b"abc", b"", b"d")) == (play, [b"abc", b"", b"d"])
    assert unpacked(packed(play) + b"\xffabc") == (play, [b"abc"])
