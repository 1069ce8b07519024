"""structlog: one JSON object a line, one event name a fact."""

from __future__ import annotations

import logging
import sys
from typing import Literal

import structlog


def configure(level: str, format_: Literal["json", "console"]) -> None:
    """Send this process's logs to standard error. Call it before grpc is imported (grpc#43421)."""
    renderer: structlog.types.Processor = (
        structlog.processors.JSONRenderer() if format_ == "json" else structlog.dev.ConsoleRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.StackInfoRenderer(),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=level.upper(), stream=sys.stderr, format="%(message)s")


def get_logger() -> structlog.typing.FilteringBoundLogger:
    """The logger of the service."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger()
    return logger
