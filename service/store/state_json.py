"""States as JSON text, for snapshots: a cache of the log's fold, so this format may change whenever `FORMAT` is raised.

`tests/service/store/test_state_json.py` notices when what is written, or what a log folds to, is no longer the same.
"""

from __future__ import annotations

from typing import Final

from engine.auction import Auction, StandingBid
from engine.clock import Decision
from engine.events import MatchAborted, MatchWon, RoundBlocked, RoundDominoed
from engine.layout import Layout, OpenEnd, PlacedTile
from engine.seats import PerSeat
from engine.state import MatchState, OpeningPrivilege, Options, Phase, Round
from engine.tiles import DOUBLE_SIX
from service.store.event_json import BYTES, END, FORMS, HAND, HANDS, SEAT, TILE, TRANSFER, per_seat
from service.store.json_forms import FLAG, NUMBER, TEXT, Field, Form, Kind, listed, named, one_of, read_text

FORMAT: Final = 1
"""To be raised with every change of what is written, or of what a log folds to. It costs the folding of some logs."""

_PHASE: Final = named({phase: phase.name.lower() for phase in Phase})
_PRIVILEGE: Final = named({privilege: privilege.name.lower() for privilege in OpeningPrivilege})
_PLACED: Final = named({PlacedTile(a, b): f"{a}-{b}" for tile in DOUBLE_SIX for a, b in (tile, (tile.high, tile.low))})
_ARM: Final = listed(_PLACED)


def _pair(raw: object) -> tuple[int, int]:
    if type(raw) is not list:
        raise TypeError("not a pair")
    first, second = raw
    return NUMBER.decode(first), NUMBER.decode(second)


_SPAN: Final[Kind[tuple[int, int]]] = Kind(lambda span: f"[{span[0]},{span[1]}]", _pair)
_DECISION: Final = Form(
    Decision,
    seat=Field("seat", SEAT),
    started_at_ns=Field("at", NUMBER),
    bank_ns=Field("bank", NUMBER),
    standstills=Field("stood", listed(_SPAN)),
)
_OPTIONS: Final = Form(
    Options,
    shared_device=Field("shared", FLAG),
    start_timeout_ns=Field("start", NUMBER),
    continue_timeout_ns=Field("continue", NUMBER),
    created_at_ns=Field("created", NUMBER),
)
_NAMES: Final = Form[PerSeat[str | None]](
    PerSeat, one=Field("1", TEXT, default=None), two=Field("2", TEXT, default=None)
)
_STANDING: Final = Form(StandingBid, bidder=Field("bidder", SEAT), points=Field("points", NUMBER))
_AUCTION: Final = Form(Auction, jockey=Field("jockey", SEAT), standing=Field("standing", _STANDING.kind, default=None))
_OPEN_END: Final = Form(OpenEnd, end=Field("end", END), value=Field("value", NUMBER), counts=Field("counts", NUMBER))
_LAYOUT: Final = Form(
    Layout,
    main_line=Field("main", _ARM),
    spinner_index=Field("spinner", NUMBER, default=None),
    north=Field("north", _ARM),
    south=Field("south", _ARM),
    ends=Field("ends", listed(_OPEN_END.kind)),
    exposed_total=Field("total", NUMBER),
)
_ROUND: Final = Form(
    Round,
    number=Field("number", NUMBER),
    opening=Field("opening", _PRIVILEGE),
    hands=Field("hands", HANDS),
    boneyard=Field("boneyard", HAND),
    turn=Field("turn", SEAT, default=None),
    auction=Field("auction", _AUCTION.kind, default=None),
    must_play=Field("must", TILE, default=None),
    layout=Field("layout", _LAYOUT.kind),
    passes=Field("passes", NUMBER),
    last_transfer=Field("transfer", TRANSFER, default=None),
)
_SETTLEMENT: Final = one_of(*(form for form in FORMS if form.made in (RoundDominoed, RoundBlocked)))
_RESULT: Final = one_of(*(form for form in FORMS if form.made in (MatchWon, MatchAborted)))
_STATE: Final = Form(
    MatchState,
    version=Field("version", NUMBER),
    options=Field("options", _OPTIONS.kind),
    phase=Field("phase", _PHASE),
    display_names=Field("names", _NAMES.kind),
    balances=Field("balances", per_seat(NUMBER)),
    banks_ns=Field("banks", per_seat(NUMBER)),
    ready=Field("ready", per_seat(FLAG)),
    waiting_until_ns=Field("waiting", NUMBER, default=None),
    round=Field("round", _ROUND.kind, default=None),
    decision=Field("decision", _DECISION.kind, default=None),
    handover=Field("handover", SEAT, default=None),
    revealed=Field("revealed", SEAT, default=None),
    settlement=Field("settlement", _SETTLEMENT, default=None),
    result=Field("result", _RESULT, default=None),
    suspended_at_ns=Field("suspended", NUMBER, default=None),
    server_commitment=Field("commit", BYTES),
    commitments=Field("commits", per_seat(BYTES)),
)


def state_text(state: MatchState) -> str:
    """A state in the present format."""
    return _STATE.encode(state)


def state_of(text: str) -> MatchState:
    """The state of a text by `state_text`. Raises StoredFormatError."""
    return read_text(text, _STATE.decode)
