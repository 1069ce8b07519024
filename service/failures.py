"""Why a command got no outcome, for the metrics."""

from __future__ import annotations

from service.dealing import EntropyNotMatchingError
from service.metrics.game import Failure
from service.ports import StoreUnavailableError
from service.writer import ClocksStandError, UnknownMatchError


def failure_of(error: Exception) -> Failure:
    """What an error that reaches a command's sender means."""
    match error:
        case StoreUnavailableError():
            return Failure.UNAVAILABLE
        case ClocksStandError():
            return Failure.CLOCKS_STAND
        case EntropyNotMatchingError() | UnknownMatchError():
            return Failure.INVALID
        case _:
            return Failure.INTERNAL_ERROR
