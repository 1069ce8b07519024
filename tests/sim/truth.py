"""What really happened, as only the auditor knows it: true arrivals, replies, faults, lives of processes."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from engine.clock import Arrival
from spectacularbid.v1 import commands_pb2, outcomes_pb2
from tests.sim.world import NOON_NS, SECOND_NS, World

TAIL_LOST = "tail lost"
"""The kind of a fault after which what was acknowledged is not there any more."""


@dataclass(slots=True, eq=False)
class Attempt:
    """One sending of a command. Times are true, `arrived_service_ns` is the service's line at the true arrival."""

    match_id: str
    holder: str
    """Whose token came with it: "one", "two", "device", "spectator", or "nobody"."""
    command_id: str
    command: commands_pb2.Command
    expected_version: int | None
    is_honest: bool
    """Sent by a player who means it; nothing the hostile do counts against the service."""
    is_a_strangers: bool = False
    """When it was stamped the service had yet to look its token up."""
    arrived_ns: int | None = None
    arrived_service_ns: int = 0
    arrived_step_ns: int = 0
    reached: bool = False
    """It arrived at a process whose door had opened and that lived, and not on a stream that was to be left."""
    life: int = -1
    stamp: Arrival | None = None
    stamped_ns: int = 0
    stamped_step_ns: int = 0
    is_cancelled: bool = False
    """The client took it back before the service had stamped it."""
    answered_ns: int | None = None
    answer: str = ""


@dataclass(slots=True)
class InjectedFault:
    """A fault of the service's side that was really made, on both lines of time."""

    kind: str
    from_ns: int
    to_ns: int
    from_service_ns: int
    to_service_ns: int
    life: int | None = None
    """The process that it befell, if it was one of several."""


@dataclass(slots=True, eq=False)
class Life:
    """One process from its start to its end."""

    number: int
    began_ns: int
    opened_ns: int | None = None
    asked_to_stop_ns: int | None = None
    closed_ns: int | None = None
    """When it closed its door in a planned stop."""
    ended_ns: int | None = None
    is_planned: bool = False
    beats: list[int] = field(default_factory=list)
    """When heartbeats of it were stored."""
    fenced: list[int] = field(default_factory=list)
    """When other processes took it for lost."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How soon things must happen, in true time."""

    overdue_ns: int = 3 * SECOND_NS
    """So long after the last fault nothing due may be left."""
    travel_ns: int = SECOND_NS // 2
    """How long a new version may be on its way to a watcher."""
    shown_ns: int = 2 * SECOND_NS
    """How long after its beginning a player must have seen a decision that is lost on time."""


AMONG_REPLICAS = Patience(overdue_ns=7 * SECOND_NS, travel_ns=3 * SECOND_NS // 2, shown_ns=7 * SECOND_NS)
"""A replica that is gone must be fenced first; and lost news are looked for every five seconds."""


@dataclass
class Truth:
    """The log of what happened."""

    world: World
    patience: Patience = field(default_factory=Patience)
    attempts: dict[tuple[str, str], list[Attempt]] = field(default_factory=lambda: defaultdict(list))
    """By match and command id."""
    faults: list[InjectedFault] = field(default_factory=list)
    lives: list[Life] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    answers: list[tuple[str, str, outcomes_pb2.CommandOutcome, int]] = field(default_factory=list)
    """Every outcome that a client got: match, holder, outcome, and when (true time) the service sent it."""
    shown: dict[tuple[str, str], dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    """By match and audience: when each version was first sent to one of its streams."""

    @property
    def losses(self) -> list[InjectedFault]:
        """When something was lost that had been acknowledged."""
        return [fault for fault in self.faults if fault.kind == TAIL_LOST]

    def count(self, what: str) -> None:
        """Something worth counting happened."""
        self.counts[what] += 1

    def violated(self, invariant: str, text: str) -> None:
        """An invariant does not hold."""
        self.violations.append(f"{invariant}: {text}")
        self.world.note(f"VIOLATED {invariant}: {text}")

    def stepped_ns(self, from_ns: int, to_ns: int) -> int:
        """How much of this span of the service's line of time was only a step of its clock."""
        return sum(
            fault.to_service_ns - fault.from_service_ns
            for fault in self.faults
            if fault.kind == "step" and from_ns <= fault.from_service_ns < to_ns
        )

    def true_ns(self, service_ns: int) -> int:
        """The true time at which the service's line of time reached this instant."""
        stepped_ns = 0
        for fault in self.faults:
            if fault.kind == "step" and fault.from_service_ns < service_ns:
                if service_ns < fault.to_service_ns:
                    return fault.from_ns
                stepped_ns += fault.to_service_ns - fault.from_service_ns
        return service_ns - NOON_NS - stepped_ns

    def injected(self, kind: str, length_ns: int) -> InjectedFault:
        """A fault begins now."""
        now_ns, service_ns = self.world.now_ns, self.world.service_ns()
        fault = InjectedFault(kind, now_ns, now_ns + length_ns, service_ns, service_ns + length_ns)
        self.faults.append(fault)
        self.count(f"fault {kind}")
        self.world.note(f"FAULT {kind} for {length_ns / 1e9:.3f} s")
        return fault
