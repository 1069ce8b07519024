"""Why a request is refused, in order of precedence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class RefusalReason(IntEnum):
    """The reasons; when several apply the first counts. Numbers equal those of the wire."""

    MATCH_OVER = 1
    TIME_EXPIRED = 2
    STALE_VERSION = 3
    WRONG_PHASE = 4
    NOT_YOUR_TURN = 5
    ALREADY_READY = 6
    TILE_NOT_IN_HAND = 7
    MUST_PLAY_DRAWN_TILE = 8
    MUST_OPEN_WITH_RANKED_TILE = 9
    END_NOT_AVAILABLE = 10
    TILE_DOES_NOT_FIT = 11
    CAN_PLAY_INSTEAD = 12
    BONEYARD_EMPTY = 13
    CAN_DRAW_INSTEAD = 14
    BID_TOO_LOW = 15
    BID_NOT_MULTIPLE_OF_FIVE = 16
    BID_UNAFFORDABLE = 17


@dataclass(frozen=True, slots=True)
class Refusal:
    """The player's request cannot be granted. `figures` are public numbers that explain it."""

    reason: RefusalReason
    figures: tuple[tuple[str, int], ...] = ()
