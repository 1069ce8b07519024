"""Players: read the stream, answer with a move. One coroutine a player, whatever is under load."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import NamedTuple

from bench.load.crossing import Crossing
from bench.load.hands import Hand
from bench.load.job import Transport
from bench.load.pace import Pace
from bench.load.tally import Tally
from bench.load.wires import Wire


@dataclass(frozen=True, slots=True)
class Session:
    """What all players of a run share. `most_moves` bounds each player's, `door` how many enter at a time."""

    transport: Transport
    tally: Tally
    pace: Pace
    door: asyncio.Semaphore
    most_moves: int


class Player(NamedTuple):
    """One side of a match."""

    hand: Hand
    seat: int
    crossing: Crossing


async def play(wire: Wire, player: Player, session: Session) -> None:
    """Play one side of a match to its end, or until cancelled."""
    if session.transport is Transport.PLAY:
        await _play_on_stream(wire, player, session)
    else:
        await _play_by_calls(wire, player.hand, session)


async def _play_on_stream(wire: Wire, player: Player, session: Session) -> None:
    hand, seat, crossing = player
    tally, moves, began, request_bytes = session.tally, 0, 0.0, 0
    async with session.door:
        call = wire.play(metadata=hand.metadata)
        await call.write(hand.opening())
        data = await call.read()
    while isinstance(data, bytes):
        now = time.perf_counter()
        news = hand.stream_message(data)
        crossed_seconds = crossing.reads(seat, now, news.version)
        if crossed_seconds is not None and not news.is_answer:
            tally.delivered(crossed_seconds)
        if news.is_answer:
            tally.answered(now - began, request_bytes=request_bytes, answer_bytes=len(data))
        else:
            tally.pushed(len(data))
        if news.move is not None and moves < session.most_moves and tally.may_send():
            began, request_bytes, moves = await session.pace.turn(), len(news.move), moves + 1
            crossing.sends(seat, time.perf_counter(), news.version)
            await call.write(news.move)
        data = None if hand.is_over else await call.read()
    call.cancel()


async def _play_by_calls(wire: Wire, hand: Hand, session: Session) -> None:
    tally, moves = session.tally, 0
    async with session.door:
        call = wire.watch(hand.opening(), metadata=hand.metadata)
        data = await call.read()
    while isinstance(data, bytes):
        tally.pushed(len(data))
        move = hand.stream_message(data).move
        while move is not None and moves < session.most_moves and tally.may_send():
            began, moves = await session.pace.turn(), moves + 1
            answer = await wire.submit(move, metadata=hand.metadata)
            tally.answered(time.perf_counter() - began, request_bytes=len(move), answer_bytes=len(answer))
            move = hand.answer(answer).move
        data = None if hand.is_over else await call.read()
    call.cancel()
