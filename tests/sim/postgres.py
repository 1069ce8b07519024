"""A PostgreSQL server in place of the real one, seen through asyncpg: sessions that break, commits that come late.

The service's own store works on it (`service.store.postgres`), with its links, its batches and its retries.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

import asyncpg

from service.store.postgres_link import OWN_FAULT
from tests.sim.moving import MOVING, Move
from tests.sim.process import SimProcess
from tests.sim.tables import Answer, Arguments, Row, Tables, answer_of
from tests.sim.truth import Truth
from tests.sim.world import MS_NS, World

US_NS = 1_000
STATEMENT_NS = 2_000 * MS_NS
"""After so long the server gives a statement up that has not come to its commit."""
LATEST_COMMIT_NS = 2_500 * MS_NS
"""How long after its connection was lost a commit may still be made."""


@dataclass
class ServerWeather:
    """What the server is going through. Instants are true time."""

    down_until_ns: int = 0
    slow_until_ns: int = 0
    slowness_ns: int = 0
    slow_reads_until_ns: int = 0
    read_slowness_ns: int = 0
    next_moves: deque[tuple[str, Callable[[], None]]] = field(default_factory=deque)
    """What becomes of the next statements that move matches: the connection is lost at COMMIT, and that is made
    ("answer lost"), is made later ("late commit") or never ("lost commit"). The function is called then."""
    lateness_ns: int | None = None
    """How much later; drawn each time when it is not set."""
    cuts: dict[int, int] = field(default_factory=dict)
    """Until when nothing travels between the server and a process."""
    mute: dict[int, int] = field(default_factory=dict)
    """Until when a process gets no answers."""


class Session:
    """A connection, as asyncpg has it."""

    def __init__(self, server: Server, process: SimProcess, timeout: float | None) -> None:
        self.process, self.number = process, process.life.number
        self.is_lost = self.is_given_up = False
        self.incarnation = 0
        """The one of the server that it reached."""
        self.stuck_until_ns = 0
        """Until when nothing travels on this connection alone."""
        self.asked: asyncio.Future[list[Row]] | None = None
        self._server, self._timeout = server, timeout

    async def fetch(self, text: str, *args: object) -> list[Row]:
        """The rows of a statement."""
        if self.is_closed():
            raise asyncpg.InterfaceError("the connection is closed")
        self.process.effect("statement sent")
        asked = self.asked = self.process.loop.create_future()
        self._server.ask(self, text, args, asked)
        async with asyncio.timeout(self._timeout):
            rows: list[Row] = await asked
        return rows

    async def fetchrow(self, text: str, *args: object) -> Row | None:
        """The first of them, if any."""
        return next(iter(await self.fetch(text, *args)), None)

    async def fetchval(self, text: str, *args: object) -> Any:  # noqa: ANN401  a column of any type
        """Its first column."""
        row = await self.fetchrow(text, *args)
        return None if row is None else row[0]

    async def execute(self, text: str, *args: object) -> None:
        """Carry a statement out."""
        await self.fetch(text, *args)

    def is_closed(self) -> bool:
        """Whether it cannot be used any more."""
        return self.is_lost or self.is_given_up

    def terminate(self) -> None:
        """Hang up at once."""
        self.is_given_up = True
        self._server.sessions.pop(self, None)

    async def close(self, timeout: float) -> None:  # noqa: ASYNC109  as asyncpg has it
        """Hang up."""
        assert timeout > 0
        self.terminate()

    def lose(self) -> None:
        """The other end has gone; whoever waits hears of it."""
        self.is_lost = True
        self._server.sessions.pop(self, None)
        if self.asked is not None:
            settle(self.process, self.asked, asyncpg.ConnectionDoesNotExistError("the connection was lost"))


def settle(process: SimProcess, asked: asyncio.Future[list[Row]], answer: list[Row] | Exception) -> None:
    """Hand an answer to a process, if that lives and still waits."""

    def deliver() -> None:
        if asked.done():
            return
        process.effect("statement answered")
        if process.is_dead:
            return
        if isinstance(answer, Exception):
            asked.set_exception(answer)
        else:
            asked.set_result(answer)

    if not process.is_dead:
        process.loop.call_soon(deliver)


class Server:
    """The server, its network, and a clock that everybody asks."""

    def __init__(self, world: World, truth: Truth, tables: Tables) -> None:
        self.world, self.truth, self.tables = world, truth, tables
        self.weather = ServerWeather()
        self.processes: dict[int, SimProcess] = {}
        """Those that may connect, by the number in their DSN."""
        self.sessions: dict[Session, None] = {}
        self._chance: Random = world.chance("server")
        self._locked: set[str] = set()
        self._incarnation = 0

    @contextmanager
    def in_place_of_asyncpg(self) -> Iterator[None]:
        """Whoever connects by asyncpg inside the block comes here."""
        real = asyncpg.connect
        asyncpg.connect = self.connect  # type: ignore[assignment]
        try:
            yield
        finally:
            asyncpg.connect = real

    # Any: the options are asyncpg's.
    async def connect(self, dsn: str, *, timeout: float, command_timeout: float | None, **_: Any) -> Session:  # noqa: ANN401, ASYNC109
        """A connection. Raises OSError or TimeoutError."""
        process = self.processes[int(dsn.rpartition("/")[2])]
        session = Session(self, process, command_timeout)
        asked = session.asked = process.loop.create_future()
        self._travel(session, partial(self._greet, session, asked))
        async with asyncio.timeout(timeout):
            await asked
        return session

    def ask(self, session: Session, text: str, args: Arguments, asked: asyncio.Future[list[Row]]) -> None:
        """A statement sets out for the server."""
        self._travel(session, lambda: self._begin(session, text, args, asked))

    def restart(self, length_ns: int) -> None:
        """Every connection breaks, and what was not committed never is; for so long nobody can connect."""
        self._incarnation += 1
        self.tables.incarnation = self._incarnation
        self._locked.clear()
        self.weather.down_until_ns = max(self.weather.down_until_ns, self.world.now_ns + length_ns)
        for session in list(self.sessions):
            self._travel(session, session.lose, is_answer=True)
            self.sessions.pop(session)

    def lose_tail(self, lag_ns: int, length_ns: int) -> None:
        """A standby takes over after a while that lacks the commits of this last time; it knows of some replica."""
        self.restart(length_ns)
        self.tables.rewind(max(self.tables.first_beat_ns, self.world.now_ns - lag_ns))

    def _greet(self, session: Session, asked: asyncio.Future[list[Row]]) -> None:
        if self.weather.down_until_ns > self.world.now_ns:
            self._answer(session, asked, ConnectionRefusedError("nobody listens"))
        else:
            self.sessions[session] = None
            session.incarnation = self._incarnation
            self._answer(session, asked, [])

    def _travel(self, session: Session, arrive: Callable[[], None], *, is_answer: bool = False) -> None:
        """One way, if need be when the network works again; but what its sender has given up by then is gone."""
        now_ns, weather = self.world.now_ns, self.weather
        blocked_ns = max(session.stuck_until_ns, weather.cuts.get(session.number, 0))
        if is_answer:
            blocked_ns = max(blocked_ns, weather.mute.get(session.number, 0))
        if blocked_ns <= now_ns:
            self.world.after(self._chance.randrange(80 * US_NS, 600 * US_NS), arrive)
        elif not session.is_closed():
            again_ns = blocked_ns + self._chance.randrange(200 * MS_NS)
            self.world.at(again_ns, lambda: self._travel(session, arrive, is_answer=is_answer))

    def _answer(self, session: Session, asked: asyncio.Future[list[Row]], answer: list[Row] | Exception) -> None:
        self._travel(session, lambda: settle(session.process, asked, answer), is_answer=True)

    def _begin(self, session: Session, text: str, args: Arguments, asked: asyncio.Future[list[Row]]) -> None:
        if session.incarnation != self._incarnation:
            return  # the connection is lost, and its process knows or will
        if MOVING in text:
            self._begin_moving(session, text, args, asked)
            return
        writes, answer = answer_of(text)
        if writes:
            incarnation = self._incarnation
            self.world.after(self._commit_ns(), lambda: self._write(session, answer, (text, args), asked, incarnation))
        else:
            self.world.after(self._read_ns(), lambda: self._answer(session, asked, answer(self.tables, text, args)))

    def _write(
        self,
        session: Session,
        answer: Answer,
        statement: tuple[str, Arguments],
        asked: asyncio.Future[list[Row]],
        incarnation: int,
    ) -> None:
        if incarnation != self._incarnation:
            return
        try:
            rows = answer(self.tables, *statement)
        except OWN_FAULT as error:
            self._answer(session, asked, error)
        else:
            self._answer(session, asked, rows)

    def _begin_moving(self, session: Session, text: str, args: Arguments, asked: asyncio.Future[list[Row]]) -> None:
        try:
            move = Move(self.tables, self._locked, text, args)
        except OWN_FAULT as error:
            self._answer(session, asked, error)
            return
        incarnation = self._incarnation

        def lock() -> None:
            if incarnation == self._incarnation:
                move.lock()
                self._commit_soon(session, move, asked)

        self.world.after(self._chance.randrange(MS_NS), lock)

    def _commit_soon(self, session: Session, move: Move, asked: asyncio.Future[list[Row]]) -> None:
        trouble, delay_ns = "", self._commit_ns()
        if move.mine and self.weather.next_moves:
            trouble, happened = self.weather.next_moves.popleft()
            happened()
        incarnation = self._incarnation
        if trouble:
            self.world.note(f"server: {trouble}")
            self._travel(session, session.lose, is_answer=True)
            self.sessions.pop(session, None)
        if trouble == "lost commit":
            move.end()
            return
        if trouble == "late commit":
            late_ns = self.weather.lateness_ns
            delay_ns += self._chance.randrange(LATEST_COMMIT_NS) if late_ns is None else late_ns
        self.world.after(delay_ns, lambda: self._commit(session, move, asked, incarnation))

    def _commit(self, session: Session, move: Move, asked: asyncio.Future[list[Row]], incarnation: int) -> None:
        if incarnation != self._incarnation:
            return
        try:
            answer: list[Row] | Exception = move.commit()
        except OWN_FAULT as error:
            answer = error
        move.end()
        self.world.note(f"server: process {session.number} moved {len(move.mine)}")
        self._answer(session, asked, answer)

    def _commit_ns(self) -> int:
        usual_ns = self._chance.randrange(300 * US_NS, 3 * MS_NS)
        return usual_ns + (self.weather.slowness_ns if self.weather.slow_until_ns > self.world.now_ns else 0)

    def _read_ns(self) -> int:
        usual_ns = self._chance.randrange(20 * US_NS, 300 * US_NS)
        if self.weather.slow_reads_until_ns > self.world.now_ns:
            usual_ns += self._chance.randrange(self.weather.read_slowness_ns)
        return usual_ns
