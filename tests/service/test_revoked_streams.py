"""Where several processes rotate tokens, each ends its streams whose token was rotated elsewhere."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from engine.view import Audience
from service.limits import TokenRevokedError
from service.metrics import Metrics
from service.ports import Credential
from service.rpc.auth import SHARED_RECHECK_NS, Gatekeeper
from service.watches import Watch
from tests.support.ports import MemoryStore
from tests.support.virtual_time import in_virtual_time

TOKENS = [Credential(f"hash of {audience.name}".encode(), "m", audience) for audience in Audience]
SECONDS = SHARED_RECHECK_NS / 1e9


@asynccontextmanager
async def watched(store: MemoryStore) -> AsyncIterator[dict[Audience, Watch]]:
    """A stream for each token, and somebody who looks after them."""
    keeper = Gatekeeper(store, Metrics(), recheck_ns=SHARED_RECHECK_NS)
    watches = {token.audience: Watch(token.audience, 0) for token in TOKENS}
    for token in TOKENS:
        keeper.limits.streams.open(token, watches[token.audience])
    looking = asyncio.create_task(keeper.end_revoked_streams())
    yield watches
    looking.cancel()


def stored() -> MemoryStore:
    """All tokens are good."""
    return MemoryStore(credentials={token.token_hash: token for token in TOKENS})


def ended(watches: dict[Audience, Watch]) -> set[Audience]:
    """Whose stream was told to end, and why."""
    assert all(isinstance(watch.ending, TokenRevokedError | None) for watch in watches.values())
    return {audience for audience, watch in watches.items() if watch.ending is not None}


@in_virtual_time
async def test_streams_of_a_token_that_is_gone_from_the_store_end_and_no_others() -> None:
    """In the five seconds in which the token itself is believed."""
    store = stored()
    async with watched(store) as watches:
        await asyncio.sleep(SECONDS + 1)
        assert ended(watches) == set()
        await store.replace_credential(TOKENS[0].token_hash, b"another")
        await asyncio.sleep(SECONDS)
        assert ended(watches) == {TOKENS[0].audience}


@in_virtual_time
async def test_a_store_that_cannot_answer_ends_no_stream_and_is_asked_again() -> None:
    """Nobody is sent away for a trouble of ours."""
    store = stored()
    async with watched(store) as watches:
        store.is_down = True
        await asyncio.sleep(SECONDS + 1)
        assert ended(watches) == set()
        store.is_down = False
        await store.replace_credential(TOKENS[0].token_hash, b"another")
        await asyncio.sleep(SECONDS)
        assert ended(watches) == {TOKENS[0].audience}
