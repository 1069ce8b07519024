"""What the core knows of traces: an id to tell and a span to end. There are none unless they are switched on."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Protocol


class CommandTrace(Protocol):
    """The span of one command, which began with its stamp."""

    @property
    def trace_id(self) -> str:
        """The id of its trace, 32 hexadecimal digits."""

    def end(self, match_id: str, outcome: str, at_ns: int, marks: Mapping[str, int]) -> None:
        """It came to this outcome then. `marks` are instants on the way. Instants in nanoseconds of service time."""


class TraceScope(Protocol):
    """The call or stream by which commands come."""

    @property
    def trace_id(self) -> str | None:
        """The id of its trace, if it is part of one."""

    def command(self, kind: str, arrival_ns: int) -> CommandTrace | None:
        """Begin the span of a command that arrived then; None when it is not sampled."""


scope: ContextVar[TraceScope | None] = ContextVar("trace_scope", default=None)
"""Set around a call or stream that is traced."""


def begin_command(kind: str, arrival_ns: int) -> CommandTrace | None:
    """Begin the span of a command of this call, if that is traced."""
    known = scope.get()
    return None if known is None else known.command(kind, arrival_ns)
