"""What it takes to go on with a match later, kept in a file that only its owner can read."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from spectacularbid.client.commands.terminal import CommandFailedError
from spectacularbid.client.deal_part import DealPart
from spectacularbid.client.token import Token
from spectacularbid.v1.tiles_pb2 import SEAT_ONE, SEAT_TWO, Seat

FOLDER = "spectacular-bid"


@dataclass(frozen=True, slots=True)
class SavedOpponent:
    """The bot in the other seat, which this side runs, too."""

    strategy: str
    token: Token
    part: DealPart | None = None


@dataclass(frozen=True, slots=True)
class SavedMatch:
    """A match and this player's way back into it."""

    server: str
    match_id: str
    token: Token
    opponent: SavedOpponent | None = None
    part: DealPart | None = None


def default_path(match_id: str) -> Path:
    """Where a match is kept: in the user's state folder."""
    state = os.environ.get("XDG_STATE_HOME")
    folder = Path(state) if state else Path.home() / ".local" / "state"
    return folder / FOLDER / f"{match_id}.json"


def save(path: Path, match: SavedMatch) -> bool:
    """Write the file, readable by its owner only; says whether that was possible."""
    content: dict[str, object] = {"server": match.server, "match_id": match.match_id, "token": match.token.reveal()}
    content |= {"entropy": _entropy(match.part), "seat": match.part.seat if match.part else SEAT_ONE}
    if match.opponent is not None:
        other = match.opponent
        content["opponent"] = {
            "strategy": other.strategy,
            "token": other.token.reveal(),
            "entropy": _entropy(other.part),
        }
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(content, file)
    except OSError:
        return False
    return True


def load(path: Path) -> SavedMatch:
    """Read a file that `save` wrote. Raises CommandFailedError."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        other = content.get("opponent")
        match_id = str(content["match_id"])
        opponent = None
        if other:
            opponent = SavedOpponent(
                str(other["strategy"]), Token(str(other["token"])), _part(match_id, SEAT_TWO, other)
            )
        return SavedMatch(
            server=str(content["server"]),
            match_id=match_id,
            token=Token(str(content["token"])),
            opponent=opponent,
            part=_part(match_id, SEAT_TWO if content.get("seat") == SEAT_TWO else SEAT_ONE, content),
        )
    except OSError as error:
        raise CommandFailedError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise CommandFailedError(f"{path} is not a saved match.") from None


def _entropy(part: DealPart | None) -> str:
    return part.reveal().hex() if part else ""


def _part(match_id: str, seat: Seat.ValueType, content: dict[str, object]) -> DealPart | None:
    """What a seat committed to, if it did: kept until Start has opened it."""
    entropy = bytes.fromhex(str(content.get("entropy", "")))
    return DealPart(match_id, seat, entropy=entropy) if entropy else None
