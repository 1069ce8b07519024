"""What clients did and saw, what was done to the service, and what is stored in the end: all that the checker reads.

Instants are nanoseconds since the Unix epoch on this machine's clock, which service time is anchored to.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.clock import SECOND_NS
from engine.events import Step
from engine.view import Audience
from service.ports import CommandRecord, LedgerRow
from spectacularbid.v1 import commands_pb2, outcomes_pb2
from spectacularbid.v1 import match_service_pb2 as pb

MACHINE = "the machine was busy"
"""The kind of what was done to a replica by nobody's will."""


class Sent(NamedTuple):
    """One sending of a command; repeats with the same id are further ones."""

    match_id: str
    sender: Audience
    command_id: str
    expected_version: int | None
    command: commands_pb2.Command
    sent_ns: int


class Answered(NamedTuple):
    """An outcome that came back for a sending."""

    sent: Sent
    outcome: outcomes_pb2.CommandOutcome
    at_ns: int


class Seen(NamedTuple):
    """An update that one watcher got. Its streams, one after the other, are one watcher."""

    watcher: str
    match_id: str
    audience: Audience
    update: pb.MatchUpdate
    at_ns: int


class Injected(NamedTuple):
    """Something that was done to the service, from before it began until everything was as before."""

    kind: str
    from_ns: int
    to_ns: int


class StoredMatch(NamedTuple):
    """A match as the database has it: `steps` with their versions, in the order of these."""

    version: int
    due_ns: int | None
    live: bool
    steps: Sequence[tuple[int, Step]]
    records: Sequence[CommandRecord]


class Stored(NamedTuple):
    """The database and the fault ledger, as they were at an instant."""

    at_ns: int
    matches: dict[str, StoredMatch]
    ledger: Sequence[LedgerRow]


@dataclass
class History:
    """What was recorded while clients played."""

    sent: list[Sent] = field(default_factory=list)
    answered: list[Answered] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    injected: list[Injected] = field(default_factory=list)
    failures: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """How often a call or stream of a client ended with each status."""
    apart_ns: int = SECOND_NS // 10
    """How far the clients' clock may be from service time."""


def now_ns() -> int:
    """The time now."""
    return time.time_ns()
