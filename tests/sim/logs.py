"""What the service logs, as part of the trace; what it logs as a mistake of its own is a violation."""

from __future__ import annotations

import structlog

from service.ports import StoreUnavailableError
from tests.sim.truth import Truth

_NOT_REPRODUCIBLE = ("exc_info", "error_id", "event")


def note_logs(truth: Truth) -> structlog.typing.Processor:
    """A structlog processor that ends the way of every entry in the trace."""

    def note(_logger: object, _method: str, fields: structlog.typing.EventDict) -> structlog.typing.EventDict:
        error = fields.get("exc_info")
        shown = {name: value for name, value in fields.items() if name not in _NOT_REPRODUCIBLE}
        truth.world.note(f"log {fields['event']} {shown} {type(error).__name__ if error else ''}")
        if error is not None and not isinstance(error, StoreUnavailableError):
            truth.violated("no mistake of ours", f"{fields['event']}: {error!r}")
        if fields["event"] == "snapshot_passed_over":
            truth.violated("every snapshot is of use", fields["problem"])
        raise structlog.DropEvent

    return note
