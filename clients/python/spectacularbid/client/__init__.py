"""An asynchronous client of the Spectacular Bid service.

It needs grpc and protobuf only, and knows no rules: it shows what the view says and sends back what the view lists.

    async with connect("127.0.0.1:50051") as service:
        session = await service.create_match("Ann")
        async with session.play() as table:
            async for update in table.updates():
                if update.view.own.legal_actions:
                    await table.submit(update.view.own.legal_actions[0].command)
"""

from spectacularbid.client.clock import ClockSync, bank_remaining_ns, delay_remaining_ns
from spectacularbid.client.deal_part import DealPart, may_open
from spectacularbid.client.digest import Desync, view_digest
from spectacularbid.client.errors import (
    AlreadyStartedError,
    ClientError,
    CommandIdReusedError,
    ConnectionClosedError,
    InvalidRequestError,
    InviteNotValidError,
    LimitedError,
    NotFoundError,
    NotPossibleNowError,
    PermissionDeniedError,
    ResumePointGoneError,
    StreamReplacedError,
    TooManyCommandsError,
    UnauthenticatedError,
    UnavailableError,
)
from spectacularbid.client.play import PlaySession
from spectacularbid.client.service import DEFAULT_TARGET, Service, connect
from spectacularbid.client.session import MatchSession, WatchSession
from spectacularbid.client.settings import Connection, Limits, Settings
from spectacularbid.client.token import Token

__all__ = [
    "DEFAULT_TARGET",
    "AlreadyStartedError",
    "ClientError",
    "ClockSync",
    "CommandIdReusedError",
    "Connection",
    "ConnectionClosedError",
    "DealPart",
    "Desync",
    "InvalidRequestError",
    "InviteNotValidError",
    "LimitedError",
    "Limits",
    "MatchSession",
    "NotFoundError",
    "NotPossibleNowError",
    "PermissionDeniedError",
    "PlaySession",
    "ResumePointGoneError",
    "Service",
    "Settings",
    "StreamReplacedError",
    "Token",
    "TooManyCommandsError",
    "UnauthenticatedError",
    "UnavailableError",
    "WatchSession",
    "bank_remaining_ns",
    "connect",
    "delay_remaining_ns",
    "may_open",
    "view_digest",
]
