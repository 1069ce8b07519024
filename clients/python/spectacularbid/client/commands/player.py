"""A match in lines: what is said after each update, and what a typed line does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol, TypeAlias

from spectacularbid.client.actions import bid_command, expected_version_for, find, is_bid, offers
from spectacularbid.client.clock import ClockSync
from spectacularbid.client.commands.lines import Lines
from spectacularbid.client.commands.terminal import Terminal, sentence
from spectacularbid.client.deal_part import may_open
from spectacularbid.client.errors import ClientError
from spectacularbid.client.narrate import Narrator
from spectacularbid.client.text import action_text, clock_text, view_lines
from spectacularbid.client.views import is_over, name_of, own_seat
from spectacularbid.client.words import refusal_text
from spectacularbid.v1.commands_pb2 import Command, Resign
from spectacularbid.v1.match_service_pb2 import MatchUpdate
from spectacularbid.v1.outcomes_pb2 import CommandOutcome
from spectacularbid.v1.rules_service_pb2 import GetRulesResponse
from spectacularbid.v1.views_pb2 import MATCH_MODE_SHARED_DEVICE, MatchView

HELP = (
    "Type the number of an action, or: bid N, raise N, view, clock, help, resign, quit.",
    "Reading this does not stop the clock.",
)
NANOSECONDS_PER_MILLISECOND = 1_000_000

Waiting: TypeAlias = asyncio.Future[MatchUpdate] | asyncio.Future[str | None]


class Table(Protocol):
    """A seat at a match, such as a `PlaySession`."""

    def updates(self) -> AsyncIterator[MatchUpdate]:
        """Whole views until the result."""

    async def submit(self, command: Command, expected_version: int | None = None) -> CommandOutcome:
        """Send a command."""


class Player:
    """Says every update and obeys lines until the match is over or the person leaves.

    Lines of a script are read only while there is something to choose; a person may type at any time.
    """

    def __init__(
        self,
        table: Table,
        *,
        terminal: Terminal,
        lines: Lines,
        clock: ClockSync,
        rules: Callable[[], Awaitable[GetRulesResponse]],
    ) -> None:
        self._table = table
        self._terminal = terminal
        self._lines = lines
        self._clock = clock
        self._rules = rules
        self._narrator = Narrator()
        self._update = MatchUpdate()
        self._answered_version = 0
        self._is_resigning = False

    async def play(self) -> bool:
        """Whether the match came to its end; False when the person left. Raises `ClientError`."""
        updates = self._table.updates()
        watching = asyncio.ensure_future(_next(updates))
        reading: asyncio.Future[str | None] | None = None
        try:
            while True:
                if reading is None and (self._lines.is_interactive or self._may_choose()):
                    reading = asyncio.ensure_future(self._lines.next())
                either: set[Waiting] = {watching, reading} if reading is not None else {watching}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                if watching.done():
                    self._show(watching.result())
                    if is_over(self._view):
                        return True
                    watching = asyncio.ensure_future(_next(updates))
                elif reading is not None:
                    line, reading = reading.result(), None
                    if line is None or not await self._obey(line.strip().lower()):
                        return False
        finally:
            watching.cancel()
            if reading is not None:
                reading.cancel()

    @property
    def _view(self) -> MatchView:
        return self._update.view

    def _may_choose(self) -> bool:
        return bool(self._view.own.legal_actions) and self._answered_version < self._view.public.version

    def _now_ns(self) -> int | None:
        return self._clock.now_ns() if self._clock.is_synced else None

    def _show(self, update: MatchUpdate) -> None:
        is_same = update.view.public.version == self._view.public.version
        told = [*self._narrator.tell(update), *self._comings_and_goings(update)]
        self._update = update
        if any(find(self._view, "reveal")):
            self._terminal.clear()
        self._terminal.say(*told)
        if not is_same:
            self._show_view()

    def _show_view(self) -> None:
        self._terminal.say("", *view_lines(self._view, self._now_ns()), *self._choices())

    def _comings_and_goings(self, update: MatchUpdate) -> list[str]:
        """Whether the opponent has just come or gone."""
        view, before = update.view, self._update
        if view.public.mode == MATCH_MODE_SHARED_DEVICE or not before.view.public.version:
            return []
        now = {1: update.presence.seat_one, 2: update.presence.seat_two}
        then = {1: before.presence.seat_one, 2: before.presence.seat_two}
        return [
            f"{name_of(view, player.seat)} is {'connected' if now.get(player.seat) else 'away'}"
            for player in view.public.players
            if player.seat != own_seat(view) and now.get(player.seat) != then.get(player.seat)
        ]

    def _choices(self) -> list[str]:
        if any(find(self._view, "reveal")):
            name = name_of(self._view, self._view.public.turn)
            return [f"Hand the device to {name}. {name}: type 1 when only you can see the screen.", "1) reveal"]
        return [
            f"   {action_text(action)}" if is_bid(action) else f"{number}) {action_text(action)}"
            for number, action in enumerate(self._view.own.legal_actions, start=1)
        ]

    async def _obey(self, line: str) -> bool:
        """Do what a line says; False for quit."""
        word, _, rest = line.partition(" ")
        if self._is_resigning:
            await self._resign_after_all(word)
        elif word == "quit":
            return False
        elif word in {"bid", "raise"}:
            await self._bid(rest)
        elif word == "resign":
            self._is_resigning = True
            self._terminal.say("Type yes to give the match up, anything else to go on.")
        elif word == "help":
            await self._help()
        elif word == "clock":
            self._terminal.say(self._clock_line())
        elif word in {"", "view"}:
            self._show_view()
        else:
            await self._choose(word)
        return True

    async def _choose(self, word: str) -> None:
        actions = self._view.own.legal_actions
        number = int(word) if word.isdecimal() else 0
        if not self._may_choose():
            self._terminal.say("There is nothing to choose now.")
        elif not 1 <= number <= len(actions) or is_bid(actions[number - 1]):
            self._terminal.say("That is none of the choices.", *HELP)
        elif actions[number - 1].command.HasField("start") and not may_open(self._view):
            self._terminal.say("Wait until the other player is here: your part of the deal stays closed until then.")
        else:
            await self._submit(actions[number - 1].command)

    async def _bid(self, amount: str) -> None:
        action = next((action for action in offers(self._view) if is_bid(action)), None)
        if action is None or not self._may_choose():
            self._terminal.say("There is nothing to bid for now.")
        elif not amount.strip().isdecimal():
            self._terminal.say("Say how many points, such as: bid 15")
        else:
            await self._submit(bid_command(action, int(amount)))

    async def _resign_after_all(self, word: str) -> None:
        self._is_resigning = False
        if word == "yes":
            await self._submit(Command(resign=Resign()))
        else:
            self._terminal.say("The match goes on.")

    async def _submit(self, command: Command) -> None:
        version = self._view.public.version
        outcome = await self._table.submit(command, expected_version_for(command, self._view))
        if outcome.HasField("refused"):
            self._terminal.say(f"Refused: {refusal_text(outcome.refused)}")
        else:
            self._answered_version = max(version, self._answered_version)

    async def _help(self) -> None:
        try:
            for section in (await self._rules()).sections:
                self._terminal.say("", section.heading, "", section.text)
        except ClientError as error:
            self._terminal.say(sentence(error))
        self._terminal.say("", *HELP)

    def _clock_line(self) -> str:
        line = clock_text(self._view, self._now_ns())
        if not self._clock.is_synced:
            return line
        return f"{line} (good to {self._clock.error_bound_ns() // NANOSECONDS_PER_MILLISECOND + 1} ms)"


async def _next(updates: AsyncIterator[MatchUpdate]) -> MatchUpdate:
    return await anext(updates)
