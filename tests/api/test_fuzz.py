"""Bytes that are no requests, at the real port, for each method: a status that names the caller's mistake."""

import pytest
from google.protobuf.descriptor import MethodDescriptor
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.fuzz.inputs import METHODS, example
from tests.support.players import Table
from tests.support.raw_calls import OURS, code_of
from tests.support.server import Server

EXAMPLES = 40


@st.composite
def mutations(draw: st.DrawFn) -> tuple[int, int, bytes]:
    """Where to cut a message, how much to leave out, and what to put there."""
    return draw(st.integers(0, 60)), draw(st.integers(0, 8)), draw(st.binary(max_size=40))


def mutated(data: bytes, mutation: tuple[int, int, bytes]) -> bytes:
    """The message with a part of it replaced."""
    at, left_out, put_in = mutation
    return data[:at] + put_in + data[at + left_out :]


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(garbage=st.binary(max_size=200), mutation=mutations())
async def test_malformed_bytes_are_the_callers_mistake(
    server: Server, table: Table, method: MethodDescriptor, garbage: bytes, mutation: tuple[int, int, bytes]
) -> None:
    """Never UNKNOWN, never INTERNAL, and the service goes on."""
    for data in (garbage, mutated(example(method, table.one.match_id).SerializeToString(), mutation)):
        assert await code_of(server, method, [data], table.two.token) not in OURS
    assert (await table.one.view()).own.seat == 1
