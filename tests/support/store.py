"""Changes to give a store, with everything that a test does not care about filled in."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Sequence

from engine.clock import Arrival, Decision, Verdict
from engine.deal import deal
from engine.events import ClockStarted, ClockStopped, MatchCreated, RoundDealt, Step, TilePlayed
from engine.evolve import advance
from engine.layout import End
from engine.refusals import Refusal, RefusalReason
from engine.scoring import Transfer
from engine.seats import Seat
from engine.state import MatchState
from engine.tiles import DOUBLE_SIX, Tile
from engine.view import Audience
from service.ports import Append, CommandRecord, Credential, Receipt, SeatRequest, Store

OpenStore = Callable[[], Awaitable[Store]]
"""Opens the store under test, again with what was stored before."""

NOON_NS = 1_790_000_000_000_000_000
CREATED: Step = (MatchCreated(NOON_NS, shared_device=False, start_timeout_ns=1, continue_timeout_ns=2),)
REFUSAL = Refusal(RefusalReason.BID_TOO_LOW, (("minimum_points", 15),))
RECEIPT = Receipt(
    arrival=Arrival(NOON_NS, NOON_NS + 1),
    decision=Decision(Seat.ONE, NOON_NS - 5, 120_000_000_000),
    error_bound_ns=1_000_000,
    verdict=Verdict.IN_TIME,
)


def hashed(text: str) -> bytes:
    """A hash as tokens, invite codes and command bodies have one."""
    return hashlib.sha256(text.encode()).digest()


def turn(version: int) -> Step:
    """The events of a turn, different for every version."""
    return (
        ClockStopped(Seat.ONE, version),
        TilePlayed(Seat.ONE, Tile(2, 3), End.WEST, 15, Transfer(Seat.TWO, 15, 15)),
        ClockStarted(Seat.TWO, NOON_NS + version),
    )


def state_at(version: int) -> MatchState:
    """A state that hides something, different for every version."""
    dealt = deal(DOUBLE_SIX)
    step: Step = (
        RoundDealt(1, dealt.hands, dealt.boneyard, Seat.TWO, None, Tile(2, 2)),
        ClockStarted(Seat.TWO, NOON_NS),
    )
    return advance(None, (*CREATED, *step))._replace(version=version)


def creation(
    match_id: str = "m",
    *,
    due_ns: int | None = NOON_NS,
    credentials: Sequence[Credential] = (),
    seat_request: SeatRequest | None = None,
    invite_hash: bytes | None = None,
) -> Append:
    """The first step of a match."""
    return Append(
        match_id=match_id,
        expected_version=0,
        events=CREATED,
        due_ns=due_ns,
        live=True,
        credentials=tuple(credentials),
        seat_request=seat_request,
        invite_hash=invite_hash,
    )


def move(
    match_id: str,
    expected_version: int,
    *,
    due_ns: int | None = NOON_NS,
    live: bool = True,
    record: CommandRecord | None = None,
    seat_request: SeatRequest | None = None,
) -> Append:
    """A later step of a match."""
    return Append(
        match_id=match_id,
        expected_version=expected_version,
        events=turn(expected_version + 1),
        due_ns=due_ns,
        live=live,
        record=record,
        seat_request=seat_request,
    )


def refused(match_id: str, expected_version: int, record: CommandRecord) -> Append:
    """A record without events."""
    return Append(
        match_id=match_id, expected_version=expected_version, events=(), due_ns=NOON_NS, live=True, record=record
    )


def outcome(
    command_id: str, *, version: int = 2, sender: Audience = Audience.SEAT_ONE, refusal: Refusal | None = None
) -> CommandRecord:
    """The outcome of a command."""
    return CommandRecord(
        sender=sender,
        command_id=command_id,
        body_hash=hashed(command_id),
        version=version,
        refusal=refusal,
        receipt=RECEIPT,
    )


async def together(store: Store, changes: Iterable[Append]) -> list[type[BaseException] | None]:
    """Hands all changes in at once; the exception of each."""
    results = await asyncio.gather(*map(store.append, changes), return_exceptions=True)
    return [None if result is None else type(result) for result in results]
