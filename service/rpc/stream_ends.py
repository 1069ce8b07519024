"""Why a stream ended, for the metrics."""

from __future__ import annotations

import grpc

from service.limits import LimitedError, StreamReplacedError, TokenRevokedError, TooManySpectatorsError
from service.match import VersionsLostError
from service.metrics.streams import StreamEnd
from service.ports import StoreUnavailableError
from service.rpc.statuses import SLOW_READER, StatusError
from service.writer import UnknownMatchError


def stream_end(error: Exception) -> StreamEnd:
    """What the error that ends a stream means."""
    match error:
        case grpc.aio.BaseError() | grpc.RpcError():
            return StreamEnd.CLIENT_GONE
        case StreamReplacedError():
            return StreamEnd.REPLACED
        case TokenRevokedError():
            return StreamEnd.TOKEN_ROTATED
        case StatusError() if error.status is SLOW_READER:
            return StreamEnd.SLOW_READER
        case StatusError() | LimitedError() | TooManySpectatorsError() | UnknownMatchError():
            return StreamEnd.REFUSED
        case StoreUnavailableError() | VersionsLostError():
            return StreamEnd.UNAVAILABLE
        case _:
            return StreamEnd.INTERNAL_ERROR
