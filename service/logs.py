"""structlog: one JSON object a line, one event name a fact, and only what is known to be harmless (docs/logs.md).

A field that is not listed below is not written, nor is the text of an exception or of a library: both could hold a tile
or a token.
"""

from __future__ import annotations

import logging
import sys
import traceback
from contextvars import ContextVar
from typing import Literal

import structlog
from structlog.typing import EventDict

from service.line import PlayerOrder, ServiceOrder
from service.tracing import scope

HARMLESS = frozenset(
    {
        "event",
        "level",
        "timestamp",
        "address",
        "metrics",
        "health",
        "envoy",
        "seconds",
        "live_matches",
        "matches",
        "suspended_matches",
        "match_id",
        "version",
        "seat",
        "command",
        "commands",
        "command_id",
        "trace_id",
        "result",
        "cause",
        "from_ns",
        "to_ns",
        "evidence",
        "problem",
        "error_id",
        "exception",
        "logger",
        "place",
    }
)
"""The fields that may be written: addresses, counts, instants, ids, and the ledger's words, which name no tile."""
about: ContextVar[tuple[str, int, PlayerOrder | ServiceOrder] | None] = ContextVar("about", default=None)
"""The match, its version and the order being carried out: bound once, told with whatever is logged meanwhile."""
_WITHHELD = "withheld"


def configure(level: str, format_: Literal["json", "console"]) -> None:
    """Send this process's logs to standard error. Call it before grpc is imported (grpc#43421)."""
    renderer: structlog.types.Processor = (
        structlog.processors.JSONRenderer() if format_ == "json" else structlog.dev.ConsoleRenderer()
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            with_order,
            places_of_exception,
            only_harmless,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=level.upper(), handlers=[OfLibraries()], force=True)


def get_logger() -> structlog.typing.FilteringBoundLogger:
    """The logger of the service."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger()
    return logger


class OfLibraries(logging.Handler):
    """What libraries log: who, where, how bad and after which exception; its text is in the library's source."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record as an event of ours."""
        get_logger().log(
            record.levelno,
            "library_message",
            logger=record.name,
            place=f"{record.filename}:{record.lineno}",
            exc_info=record.exc_info[1] if record.exc_info else None,
        )


def with_order(_: object, __: str, event: EventDict) -> EventDict:
    """Say which match, command and trace it is about, if it is about one."""
    if (known := about.get()) is not None:
        match_id, version, order = known
        event.setdefault("match_id", match_id)
        event.setdefault("version", version)
        event.setdefault("command", type(order.command).__name__)
        if isinstance(order, PlayerOrder):
            event.setdefault("command_id", order.command_id)
            if order.seat is not None:
                event.setdefault("seat", order.seat.value)
            if order.trace is not None:
                event.setdefault("trace_id", order.trace.trace_id)
    if (call := scope.get()) is not None and call.trace_id is not None:
        event.setdefault("trace_id", call.trace_id)
    return event


def places_of_exception(_: object, __: str, event: EventDict) -> EventDict:
    """Turn `exc_info` into the kinds of the errors and where they arose, without their texts and without variables."""
    error = event.pop("exc_info", None)
    if isinstance(error, BaseException):
        event["exception"] = _places(error)
    return event


def only_harmless(_: object, __: str, event: EventDict) -> EventDict:
    """Drop every field that is not on the list, and say by name that it was dropped."""
    kept: EventDict = {name: value for name, value in event.items() if name in HARMLESS}
    if len(kept) < len(event):
        kept[_WITHHELD] = sorted(event.keys() - kept.keys())
    return kept


def _places(error: BaseException) -> str:
    lines = [*traceback.format_tb(error.__traceback__), type(error).__qualname__]
    if error.__cause__ is not None:
        lines = [_places(error.__cause__), "\n... which led to:\n", *lines]
    return "".join(lines)
