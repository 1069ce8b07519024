"""A match whose clock is nearly out, stored as the service would have: real rules, real store, past times."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine import commands as cmd
from engine import events as ev
from engine.clock import BANK_NS, DELAY_NS, SECOND_NS, Arrival
from engine.decide import decide
from engine.evolve import advance
from engine.legal import LegalCommand, legal_actions
from engine.seats import SEATS, Seat
from engine.state import MatchState
from engine.tiles import DOUBLE_SIX
from engine.view import Audience
from service.matches import token_hash
from service.ports import Append, Credential, DealSecrets, Store
from service.store.sqlite import SqliteStore
from service.system.time import ANCHOR_KEY, Anchor, boot_id, boot_ns

MATCH_ID = "l" * 26
TOKENS = {Audience.SEAT_ONE: "sbs_one", Audience.SEAT_TWO: "sbs_two", Audience.SPECTATOR: "sbw_spectator"}
LEFT_NS = SECOND_NS // 2
"""What is left of the bank of the player on turn."""


@dataclass(frozen=True)
class LateMatch:
    """Where it stands: who decides, until when, and which play would be accepted."""

    seat: Seat
    deadline_ns: int
    command: cmd.PlayTile
    version: int

    @property
    def token(self) -> str:
        """The token of the player on turn."""
        return TOKENS[Audience.SEAT_ONE if self.seat is Seat.ONE else Audience.SEAT_TWO]


async def write_late_match(database: Path, *, deadline_in_seconds: float, wall_step_seconds: int = 0) -> LateMatch:
    """Store a match whose running decision expires so soon, on a line of time that the wall clock has left."""
    anchor = Anchor(boot_id(), time.time_ns() + wall_step_seconds * SECOND_NS - boot_ns())
    now_ns = boot_ns() + anchor.offset_ns
    store = await SqliteStore.open(database)
    try:
        await store.set_meta(ANCHOR_KEY, anchor.to_text())
        return await append_late_match(store, deadline_ns=now_ns + int(deadline_in_seconds * SECOND_NS))
    finally:
        await store.close()


async def append_late_match(store: Store, *, deadline_ns: int) -> LateMatch:
    """Store a match whose running decision expires then."""
    state = None
    for version, step in enumerate(_history(started_ns=deadline_ns - LEFT_NS - DELAY_NS)):
        state = advance(state, step)
        credentials = tuple(
            Credential(token_hash(token), MATCH_ID, audience) for audience, token in TOKENS.items() if not version
        )
        deal = None if version else DealSecrets(bytes(32), bytes(32))
        change = Append(MATCH_ID, version, step, state.due_ns, live=True, credentials=credentials, deal=deal)
        await store.append(change)
    assert state is not None
    assert state.decision is not None
    assert state.decision.deadline_ns == deadline_ns
    return LateMatch(state.decision.seat, deadline_ns, _play_of(state, state.decision.seat), state.version)


def _history(*, started_ns: int) -> Iterator[ev.Step]:
    """Two plays: the opener's takes nearly the whole bank, the answer a second; the opener's next decision begins."""
    slow_ns, quick_ns = DELAY_NS + BANK_NS - LEFT_NS, SECOND_NS
    began_ns = started_ns - slow_ns - quick_ns
    first: ev.Step = (
        ev.MatchCreated(began_ns, shared_device=False, start_timeout_ns=SECOND_NS, continue_timeout_ns=SECOND_NS),
        *(ev.PlayerSeated(seat, seat.name.title()) for seat in SEATS),
    )
    state = advance(None, first)
    yield first
    for seat in SEATS:
        step = _step(state, seat, cmd.Start(), began_ns)
        state = advance(state, step)
        yield step
    for at_ns in (began_ns + slow_ns, started_ns):
        assert state.turn is not None
        step = _step(state, state.turn, _play_of(state, state.turn), at_ns)
        state = advance(state, step)
        yield step


def _step(state: MatchState, seat: Seat, command: cmd.Command, at_ns: int) -> ev.Step:
    request = cmd.Request(seat, command, Arrival.at(at_ns))
    ruling = decide(state, request, now_ns=at_ns, deal=DOUBLE_SIX)
    assert ruling.refusal is None
    return ruling.events


def _play_of(state: MatchState, seat: Seat) -> cmd.PlayTile:
    plays = [action.command for action in legal_actions(state, seat) if isinstance(action, LegalCommand)]
    play = plays[0]
    assert isinstance(play, cmd.PlayTile), "the canonical order lets both players play"
    return play
