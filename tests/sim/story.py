"""A match's log told again for the audit: each version with its state, its record, and when it became durable."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from engine import events as ev
from engine.clock import Arrival
from engine.commands import Request
from engine.evolve import advance
from engine.faults import Fault, FaultCause
from engine.seats import Seat
from engine.state import MatchState, acting_seat
from engine.view import Audience
from service.ports import Append, CommandRecord
from service.rpc import requests
from service.rpc.statuses import StatusError
from spectacularbid.v1 import match_service_pb2 as pb
from tests.sim.disk import Disk, Noted, Written
from tests.sim.truth import Attempt, Truth
from tests.sim.world import NOON_NS, SECOND_NS

_OF_LATER_PROCESSES = frozenset({FaultCause.REPLICA_LOST, FaultCause.OUTAGE})
TOLD_WITHIN_NS = SECOND_NS
"""How soon a replica must know what another one has stored in the ledger."""
SEATS = {Audience.SEAT_ONE: Seat.ONE, Audience.SEAT_TWO: Seat.TWO}


@dataclass
class Story:
    """One match: `states[v]` and `written[v]` belong to version v; versions up to `prepared` were there at first."""

    match_id: str
    states: list[MatchState | None] = field(default_factory=lambda: [None])
    written: list[Written | None] = field(default_factory=lambda: [None])
    refusals: list[Written] = field(default_factory=list)
    """Records that came with no version of their own."""
    lost: list[Written] = field(default_factory=list)
    """What was durable and is gone."""
    rows: list[tuple[int, Fault]] = field(default_factory=list)
    """The rows of the ledger that concern the match, with their places in it."""
    noted: list[Noted] = field(default_factory=list)
    """For each place in the ledger."""

    @property
    def versions(self) -> range:
        """Those that the service made."""
        first = next((v for v, written in enumerate(self.written) if written and written.at_ns > 0), len(self.written))
        return range(first, len(self.written))

    @property
    def faults(self) -> list[Fault]:
        """All of them."""
        return [fault for _, fault in self.rows]

    def faults_for(self, written: Written) -> tuple[tuple[Fault, ...], tuple[Fault, ...]]:
        """Those that a verdict must know, and those that it may know.

        It knows all that its own process found until it was decided, but not what a later one found out about the death
        of an earlier; and what others found, when they have had time to tell. A row is found at the end of its span.
        """
        must, may = [], []
        for place, fault in self.rows:
            noted, was_there = self.noted[place], place < written.rows_before
            is_own = noted.author == written.author and (was_there or fault.cause not in _OF_LATER_PROCESSES)
            if is_own or was_there:
                may.append(fault)
            is_found = written.decided_ns == written.at_ns or fault.to_ns <= NOON_NS + written.decided_ns
            if (is_own and is_found) or (was_there and noted.at_ns <= written.decided_ns - TOLD_WITHIN_NS):
                must.append(fault)
        return tuple(must), tuple(may)

    @property
    def last(self) -> MatchState:
        """The match at the end."""
        return self.state(len(self.states) - 1)

    def state(self, version: int) -> MatchState:
        """The match at a version."""
        state = self.states[version]
        assert state is not None
        return state

    def change(self, version: int) -> Append:
        """What made a version."""
        written = self.written[version]
        assert written is not None
        return written.change

    def began(self, version: int) -> int:
        """The version whose step began the decision that runs at `version`."""
        state = self.state(version)
        assert state.decision is not None
        while not any(isinstance(event, ev.ClockStarted) for event in self.change(version).events):
            version -= 1
        return version

    def started_ns(self, version: int) -> int:
        """When (true time) the decision that runs at `version` could be known to have begun: its step was durable."""
        began = self.began(version)
        written = self.written[began]
        assert written is not None
        if written.at_ns > 0:
            return written.at_ns
        decision = self.state(began).decision
        assert decision is not None
        return decision.started_at_ns - NOON_NS  # before the world began the two lines were one

    def standstills(self, version: int) -> list[tuple[int, int]]:
        """From when to when, on the service's line of time, that decision has been suspended before `version`."""
        return self.suspensions(self.began(version) + 1, version)

    def suspensions(self, first: int, last: int) -> list[tuple[int, int]]:
        """From when to when, on that line, the clocks stood in these versions."""
        suspended_ns, spans = 0, []
        for number in range(first, last + 1):
            for event in self.change(number).events:
                if isinstance(event, ev.ClocksSuspended):
                    suspended_ns = event.at_ns
                elif isinstance(event, ev.ClocksResumed):
                    spans.append((suspended_ns, event.at_ns))
        return spans

    def stood_ns(self, version: int, truth: Truth) -> int:
        """For how long (true time) that decision has been suspended before `version`."""
        spans = self.standstills(version)
        return sum(to_ns - from_ns - truth.stepped_ns(from_ns, to_ns) for from_ns, to_ns in spans)


def stories(disk: Disk) -> list[Story]:
    """Every match, told from the rows."""
    told: dict[str, Story] = {}
    for written in disk.history:
        change = written.change
        story = told.setdefault(change.match_id, Story(change.match_id))
        if not change.events:
            story.refusals.append(written)
            continue
        story.states.append(advance(story.states[-1], change.events))
        story.written.append(written)
    for story in told.values():
        story.noted = disk.noted
        story.lost = [written for written in disk.lost if written.change.match_id == story.match_id]
        story.rows = [
            (place, row.fault) for place, row in enumerate(disk.ledger) if row.match_id in (None, story.match_id)
        ]
    return list(told.values())


@cache
def fields_of(match_id: str, command_id: str, version: int | None, command: bytes) -> requests.CommandFields | None:
    """The service's reading of a command; None when it cannot be read."""
    request = pb.SubmitCommandRequest(match_id=match_id, command_id=command_id, expected_version=version)
    request.command.ParseFromString(command)
    try:
        return requests.command_fields(request)
    except StatusError:
        return None


def read(attempt: Attempt) -> requests.CommandFields | None:
    """The service's reading of a sending."""
    command = attempt.command.SerializeToString(deterministic=True)
    return fields_of(attempt.match_id, attempt.command_id, attempt.expected_version, command)


def request_for(state: MatchState, audience: Audience, fields: requests.CommandFields, arrival: Arrival) -> Request:
    """The request that a command is to the rules."""
    named = fields.named_seat or SEATS.get(audience)
    seat = named or acting_seat(state)
    return Request(seat, fields.command, arrival, fields.expected_version, named is not None)


def sendings(truth: Truth, match_id: str, record: CommandRecord) -> list[Attempt]:
    """The sendings of the command that a record is of: those with its body."""
    return [
        attempt
        for attempt in truth.attempts.get((match_id, record.command_id), ())
        if (fields := read(attempt)) is not None and fields.body_hash == record.body_hash
    ]


def is_loss_on_time(change: Append) -> ev.MatchWon | None:
    """The loss on time in a step, if it is one."""
    for event in change.events:
        if isinstance(event, ev.MatchWon) and event.reason is ev.WinReason.TIME:
            return event
    return None


def is_resignation(change: Append) -> bool:
    """Whether somebody gave up, so that no charge matters any more."""
    return any(isinstance(event, ev.MatchWon) and event.reason is ev.WinReason.RESIGNATION for event in change.events)


def timing_failure(change: Append) -> ev.MatchAborted | None:
    """The abort for a timing failure in a step, if it is one."""
    for event in change.events:
        if isinstance(event, ev.MatchAborted) and event.reason is ev.AbortReason.TIMING_FAILURE:
            return event
    return None
