"""A store that is measured is the store that it stands for."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from engine.faults import Fault, FaultCause
from engine.view import Audience
from service.measured_store import MeasuredStore, outcome_of
from service.metrics import Metrics
from service.metrics.store import Operation, StoreOutcome
from service.ports import (
    Append,
    Credential,
    DamagedError,
    DuplicateCommandError,
    DuplicateRequestError,
    Heartbeat,
    LedgerRow,
    Peer,
    Store,
    StoreUnavailableError,
    UnknownFormatError,
    UnknownTokenError,
    VersionConflictError,
)
from tests.support.ports import MemoryStore, virtual_service_ns
from tests.support.server import sample_of
from tests.support.store import state_at
from tests.support.virtual_matches import MATCH_ID, seated
from tests.support.virtual_time import in_virtual_time

CREDENTIAL = Credential(b"h", MATCH_ID, Audience.SEAT_ONE)
CALLS: dict[Operation, Callable[[Store], Awaitable[object]]] = {
    Operation.APPEND: lambda store: store.append(Append(MATCH_ID, 1, (), None, live=True)),
    Operation.STEPS: lambda store: store.steps(MATCH_ID, 0),
    Operation.SNAPSHOT: lambda store: store.snapshot(MATCH_ID),
    Operation.COMMAND: lambda store: store.command(MATCH_ID, Audience.SEAT_ONE, "c"),
    Operation.CREDENTIAL: lambda store: store.credential(b"h"),
    Operation.GOOD_TOKENS: lambda store: store.good_tokens([b"h"]),
    Operation.ADD_CREDENTIAL: lambda store: store.add_credential(CREDENTIAL),
    Operation.REPLACE_CREDENTIAL: lambda store: store.replace_credential(b"h", b"i"),
    Operation.HOLDS: lambda store: store.holds(MATCH_ID, Audience.SEAT_ONE, "s"),
    Operation.SEAT_REQUEST: lambda store: store.seat_request("r"),
    Operation.MATCH_FOR_INVITE: lambda store: store.match_for_invite(b"i"),
    Operation.DEAL_SECRETS: lambda store: store.deal_secrets(MATCH_ID),
    Operation.LIVE_MATCHES: lambda store: store.live_matches(),
    Operation.BEAT: lambda store: store.beat(Heartbeat(1, 1)),
    Operation.OTHERS: lambda store: store.others(),
    Operation.FENCE: lambda store: store.fence(Peer("p", 1, Heartbeat(1, 1), 1)),
    Operation.OVERDUE: lambda store: store.overdue(1),
    Operation.VERSIONS: lambda store: store.versions([MATCH_ID]),
    Operation.RECORD_FAULT: lambda store: store.record_fault(LedgerRow(Fault(FaultCause.OUTAGE, 1, 2, "e"))),
    Operation.FAULTS: lambda store: store.faults(0),
}


class SlowStore(MemoryStore):
    """A store on which every answer takes a quarter of a second."""

    def __getattribute__(self, name: str) -> object:
        value = object.__getattribute__(self, name)
        if name not in {operation.value for operation in Operation}:
            return value

        async def slow(*arguments: object) -> object:
            await asyncio.sleep(0.25)
            return await value(*arguments)

        return slow


def with_a_token() -> SlowStore:
    """A store with a match, a token and a snapshot."""
    return SlowStore(**vars(seated()) | {"credentials": {b"h": CREDENTIAL}, "snapshots": {MATCH_ID: state_at(1)}})


@pytest.mark.parametrize("operation", Operation)
@in_virtual_time
async def test_an_operation_answers_as_the_store_does_and_is_measured(operation: Operation) -> None:
    """When the store answers, when it is away, and when nobody waits any more."""
    metrics, inner = Metrics(), with_a_token()
    store = MeasuredStore(inner, metrics.store, virtual_service_ns)
    assert await CALLS[operation](store) == await CALLS[operation](with_a_token())
    inner.is_down = True
    with pytest.raises(StoreUnavailableError):
        await CALLS[operation](store)
    cancelled = asyncio.ensure_future(CALLS[operation](store))
    await asyncio.sleep(0.1)
    cancelled.cancel()
    await asyncio.wait([cancelled])

    def sample(name: str, **labels: str) -> float:
        return sample_of(metrics.registry, name, operation=operation.value, **labels)

    counted = {outcome: sample("specbid_store_operations_total", outcome=outcome.value) for outcome in StoreOutcome}
    seen = {StoreOutcome.OK, StoreOutcome.UNAVAILABLE, StoreOutcome.CANCELLED}
    assert counted == {outcome: int(outcome in seen) for outcome in StoreOutcome}
    assert sample("specbid_store_seconds_count") == 3
    assert sample("specbid_store_seconds_sum") == pytest.approx(0.25 + 0.25 + 0.1)
    assert sample_of(metrics.registry, "specbid_store_operations_total") == 3


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (StoreUnavailableError(), StoreOutcome.UNAVAILABLE),
        (VersionConflictError(), StoreOutcome.CONFLICT),
        (DuplicateCommandError(), StoreOutcome.CONFLICT),
        (DuplicateRequestError(), StoreOutcome.CONFLICT),
        (UnknownTokenError(), StoreOutcome.CONFLICT),
        (asyncio.CancelledError(), StoreOutcome.CANCELLED),
        (UnknownFormatError(), StoreOutcome.OK),
        (DamagedError(), StoreOutcome.ERROR),
        (ValueError(), StoreOutcome.ERROR),
    ],
)
def test_every_error_of_a_store_has_its_outcome(error: BaseException, outcome: StoreOutcome) -> None:
    """What is stored already is no failure of the store."""
    assert outcome_of(error) is outcome
