"""Tiles, ends, reasons and points in words. Values that this client does not know get a number, never an error."""

from __future__ import annotations

from spectacularbid.v1 import events_pb2 as ev
from spectacularbid.v1 import tiles_pb2 as tl
from spectacularbid.v1 import views_pb2 as vw
from spectacularbid.v1.events_pb2 import Transfer
from spectacularbid.v1.outcomes_pb2 import RefusalReason, Refused
from spectacularbid.v1.tiles_pb2 import End, Tile

NANOSECONDS = 1_000_000_000
TENTHS = 10

ENDS = {
    tl.END_OPENING: "the opening",
    tl.END_WEST: "W",
    tl.END_EAST: "E",
    tl.END_NORTH: "N",
    tl.END_SOUTH: "S",
}
PHASES = {
    vw.PHASE_NOT_STARTED: "not started",
    vw.PHASE_BIDDING: "bidding for the opening",
    vw.PHASE_OPENING: "opening",
    vw.PHASE_PLAYING: "playing",
    vw.PHASE_SETTLED: "settled",
    vw.PHASE_OVER: "over",
}
OPENINGS = {
    vw.OPENING_PRIVILEGE_RANKED: "ranked opening",
    vw.OPENING_PRIVILEGE_AUCTION: "opening to be bid for",
    vw.OPENING_PRIVILEGE_JOCKEY_FREE: "the jockey opens free",
    vw.OPENING_PRIVILEGE_BOUGHT: "opening bought",
}
STOP_REASONS = {
    vw.STOP_REASON_NOT_STARTED: "the match has not started",
    vw.STOP_REASON_WAITING_FOR_CONTINUE: "waiting for Continue",
    vw.STOP_REASON_HANDOVER: "the device is being handed over",
    vw.STOP_REASON_OVER: "the match is over",
    vw.STOP_REASON_SUSPENDED: "the service is being restarted",
}
WIN_REASONS = {
    ev.WIN_REASON_BALANCE: "the opponent's balance reached zero",
    ev.WIN_REASON_TIME: "the opponent's time ran out",
    ev.WIN_REASON_RESIGNATION: "the opponent resigned",
}
ABORT_REASONS = {
    ev.ABORT_REASON_START_TIMEOUT: "it was not started in time",
    ev.ABORT_REASON_LEFT_BEFORE_START: "a player left before the start",
    ev.ABORT_REASON_TIMING_FAILURE: "a timing failure of the service",
    ev.ABORT_REASON_OPERATOR: "an operator ended it",
    ev.ABORT_REASON_DEAL_NOT_OPENED: "a player committed to entropy and did not open it",
}


def tile_text(tile: Tile) -> str:
    """A tile by its greater half, then the smaller one."""
    return f"{tile.high}-{tile.low}"


def end_text(end: End.ValueType) -> str:
    """The letter of an end."""
    return ENDS.get(end, f"end {end}")


def refusal_text(refused: Refused) -> str:
    """Why a command was refused, in the service's words or else in ours."""
    if refused.message:
        return refused.message
    known = RefusalReason.DESCRIPTOR.values_by_number.get(refused.reason)
    return known.name.removeprefix("REFUSAL_REASON_").replace("_", " ").lower() if known else f"reason {refused.reason}"


def transfer_text(transfer: Transfer) -> str:
    """Points earned and paid."""
    words = f"earned {transfer.earned_points}, paid {transfer.paid_points}"
    return f"{words} (all they had)" if transfer.paid_points < transfer.earned_points else words


def gain_text(transfer: Transfer) -> str:
    """The same in short: only the points when all were paid."""
    return f"+{transfer.paid_points}" if transfer.paid_points == transfer.earned_points else transfer_text(transfer)


def seconds_text(span_ns: int) -> str:
    """Seconds to the tenth, rounded down."""
    tenths = max(0, span_ns) * TENTHS // NANOSECONDS
    return f"{tenths // TENTHS}.{tenths % TENTHS} s"


def bank_text(bank_ns: int) -> str:
    """Minutes and seconds to the tenth, rounded down: a clock never shows more than is left."""
    tenths = max(0, bank_ns) * TENTHS // NANOSECONDS
    minutes, tenths = divmod(tenths, 60 * TENTHS)
    return f"{minutes}:{tenths // TENTHS:02}.{tenths % TENTHS}"
