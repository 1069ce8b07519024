"""The commands that look after a service: what is asked, of the running service or of what it stored, and the answer.

Reading goes past the running service, to what it has stored, so that no question can hold up its clocks. What changes a
match or the service is asked of the running service itself, on its local socket: it is the only writer.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from engine.state import MatchState
from service import records as recorded
from service.ports import Records
from service.settings import Settings

STATUSES = "Exit status: 0 done, 1 the answer is no, 2 it could not be asked. Settings are SPECBID_* variables."
SERVING = "SERVING"


class RefusedError(Exception):
    """The answer is no. The text says why."""


class UnreachableError(Exception):
    """There is no answer. The text says where none came from."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What to print, and whether it is a yes."""

    lines: tuple[str, ...]
    is_yes: bool = True


class Tools(Protocol):
    """What the commands need of the adapters."""

    def stored_records(self, settings: Settings) -> AbstractAsyncContextManager[Records]:
        """What is stored. Raises StoreOpenError."""

    def back_up(self, settings: Settings, to: Path) -> None:
        """Copy the store as it is now into a new file. Raises StoreOpenError or RefusedError."""

    async def reseal(self, settings: Settings) -> int:
        """Seal what is stored with the first sealing key; how many rows it was. Raises StoreOpenError."""

    def public_json(self, match_id: str, state: MatchState) -> str:
        """The PublicView of a match as JSON."""

    async def health_of(self, settings: Settings, service: str) -> str:
        """The status that the service here gives for one of its services. Raises UnreachableError or RefusedError."""

    async def abort_match(self, settings: Settings, match_id: str, reason: str) -> int:
        """Have the service here end a match; the version made. Raises UnreachableError or RefusedError."""

    async def drain(self, settings: Settings) -> float:
        """Have the service here drain; the seconds it serves on. Raises UnreachableError or RefusedError."""


Ask: TypeAlias = Callable[[Tools, Settings, argparse.Namespace], Awaitable[Answer]]


class Subparsers(Protocol):
    """What `ArgumentParser.add_subparsers` returns."""

    def add_parser(self, name: str, **options: Any) -> argparse.ArgumentParser:  # noqa: ANN401  as argparse has it
        """Add a command."""


def add_parsers(commands: Subparsers, run: Callable[[argparse.Namespace], int]) -> None:
    """Add the commands. Each sets `run`, and `ask` for it."""

    def add(to: Subparsers, name: str, ask: Ask, text: str) -> argparse.ArgumentParser:
        parser = to.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", epilog=STATUSES)
        parser.set_defaults(run=run, ask=ask)
        return parser

    health = add(commands, "healthcheck", ask_health, "ask the service on this machine whether it serves")
    health.add_argument("--service", default="", metavar="NAME", help="one of its services instead of the whole")
    admin = commands.add_parser("admin", help="look after the service on this machine", epilog=STATUSES)
    asked = admin.add_subparsers(required=True, metavar="COMMAND")
    add(asked, "matches", ask_matches, "list the live matches by phase")
    add(asked, "match", ask_match, "show what everyone may see of a match, as JSON").add_argument("id", metavar="ID")
    abort = add(asked, "abort", ask_abort, "have the running service end a match without a result")
    abort.add_argument("id", metavar="ID")
    abort.add_argument("--reason", required=True, metavar="TEXT", help="why; the players read it")
    add(asked, "drain", ask_drain, "have the running service stop as SIGTERM does")
    add(asked, "faults", ask_faults, "list the fault ledger")
    add(asked, "reseal", ask_reseal, "seal what is stored with the first sealing key; nothing serves meanwhile")
    stored = asked.add_parser("store", help="check or back up what is stored", epilog=STATUSES)
    store = stored.add_subparsers(required=True, metavar="COMMAND")
    add(store, "check", ask_check, "check the store, its schema, its key, and that every log can be replayed")
    backup = add(store, "backup", ask_backup, "copy the store into a new file, also while the service runs")
    backup.add_argument("to", type=Path, metavar="FILE")


async def ask_health(tools: Tools, settings: Settings, arguments: argparse.Namespace) -> Answer:
    """Whether the service serves. No answer is a no: what runs this knows only 0 and 1."""
    try:
        status = await tools.health_of(settings, arguments.service)
    except UnreachableError as error:
        raise RefusedError(str(error)) from error
    return Answer((status,), is_yes=status == SERVING)


async def ask_matches(tools: Tools, settings: Settings, _: argparse.Namespace) -> Answer:
    """How many live matches are in each phase, and a line for each match."""
    async with tools.stored_records(settings) as records:
        live = [each async for each in recorded.live_states(records)]
    live.sort(key=lambda each: each[1].phase.value)
    counts = Counter(_phase(state) for _, state in live)
    lines = (f"{match_id}  {_phase(state):11}  {_standing(state)}" for match_id, state in live)
    return Answer((*lines, *(f"{phase}: {count}" for phase, count in counts.items()), f"{len(live)} live matches"))


async def ask_match(tools: Tools, settings: Settings, arguments: argparse.Namespace) -> Answer:
    """What everyone may see of one match."""
    async with tools.stored_records(settings) as records:
        state = await recorded.state_of(records, arguments.id)
    if state is None:
        raise RefusedError(f"there is no match {arguments.id}")
    return Answer((tools.public_json(arguments.id, state),))


async def ask_abort(tools: Tools, settings: Settings, arguments: argparse.Namespace) -> Answer:
    """End a match without a result."""
    version = await tools.abort_match(settings, arguments.id, arguments.reason)
    return Answer((f"match {arguments.id} is aborted at version {version}",))


async def ask_drain(tools: Tools, settings: Settings, _: argparse.Namespace) -> Answer:
    """Stop the service."""
    seconds = await tools.drain(settings)
    return Answer(
        (f"draining: everything is served for {seconds:g} s more, then the clocks stand and the service ends",)
    )


async def ask_faults(tools: Tools, settings: Settings, _: argparse.Namespace) -> Answer:
    """The fault ledger, a row a line."""
    async with tools.stored_records(settings) as records:
        rows = await records.faults()
    lines = []
    for row in rows:
        fault = row.fault
        seconds = (fault.to_ns - fault.from_ns) / 1e9
        where = row.match_id or "every match"
        lines.append(f"{_time(fault.from_ns)}  {seconds:9.3f} s  {fault.cause.value:15}  {where:26}  {fault.evidence}")
    return Answer((*lines, f"{len(rows)} faults"))


async def ask_check(tools: Tools, settings: Settings, _: argparse.Namespace) -> Answer:
    """Whether what is stored fits together."""
    async with tools.stored_records(settings) as records:
        problems = [problem async for problem in recorded.problems(records)]
        count = 0 if problems else len(await records.stored_matches())
    if problems:
        return Answer((*problems, f"{len(problems)} problems"), is_yes=False)
    return Answer((f"{count} matches, no problem",))


async def ask_backup(tools: Tools, settings: Settings, arguments: argparse.Namespace) -> Answer:
    """Copy the store."""
    tools.back_up(settings, arguments.to)
    return Answer((f"{arguments.to} is made; the sealing key is not in it",))


async def ask_reseal(tools: Tools, settings: Settings, _: argparse.Namespace) -> Answer:
    """Let older sealing keys be retired."""
    rows = await tools.reseal(settings)
    return Answer((f"{rows} rows are sealed with the first key now; the other keys can be removed",))


def _phase(state: MatchState) -> str:
    return state.phase.name.lower()


def _standing(state: MatchState) -> str:
    """Nothing but public facts, each named here."""
    number = 0 if state.round is None else state.round.number
    points = f"{state.balances.one:3}:{state.balances.two:3}"
    return f"version {state.version:4}  round {number:3}  points {points}  {_clock(state)}"


def _clock(state: MatchState) -> str:
    if state.suspended_at_ns is not None:
        return "suspended"
    if state.decision is not None:
        return f"seat {state.decision.seat.name} until {_time(state.decision.deadline_ns)}"
    return "handover" if state.due_ns is None else f"waits until {_time(state.due_ns)}"


def _time(at_ns: int) -> str:
    return datetime.fromtimestamp(at_ns / 1e9, UTC).isoformat(timespec="milliseconds")
