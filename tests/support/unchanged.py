"""Proof that a request changed nothing that anybody can see (X3)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.support.players import Table, Viewer, read_update


async def seen_by_all(table: Table) -> list[bytes]:
    """The views of both players and a spectator, to the byte."""
    return [(await viewer.view()).SerializeToString() for viewer in (*table.seats, table.spectator)]


@asynccontextmanager
async def changing_nothing(table: Table, *, opponent: Viewer | None = None) -> AsyncIterator[None]:
    """Inside the block nothing may happen to the match: no version, no clock, not a message to the opponent.

    Silence is shown without waiting: the opponent is sent a sign afterwards, and it must be what comes next.
    """
    before = await seen_by_all(table)
    listener = opponent or table.two
    other = next((seat for seat in table.seats if seat != listener), table.one)
    async with listener.watching() as call:
        version = (await read_update(call)).view.public.version
        yield
        assert await seen_by_all(table) == before
        async with other.watching() as sign:
            await read_update(sign)
            update = await read_update(call)
    assert update.presence.seat_one
    assert update.presence.seat_two
    assert update.view.public.version == version
    assert not update.events
