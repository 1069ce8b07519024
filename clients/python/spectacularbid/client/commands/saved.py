"""What it takes to go on with a match later, kept in a file that only its owner can read."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from spectacularbid.client.commands.terminal import CommandFailedError
from spectacularbid.client.token import Token

FOLDER = "spectacular-bid"


@dataclass(frozen=True, slots=True)
class SavedOpponent:
    """The bot in the other seat, which this side runs, too."""

    strategy: str
    token: Token


@dataclass(frozen=True, slots=True)
class SavedMatch:
    """A match and this player's way back into it."""

    server: str
    match_id: str
    token: Token
    opponent: SavedOpponent | None = None


def default_path(match_id: str) -> Path:
    """Where a match is kept: in the user's state folder."""
    state = os.environ.get("XDG_STATE_HOME")
    folder = Path(state) if state else Path.home() / ".local" / "state"
    return folder / FOLDER / f"{match_id}.json"


def save(path: Path, match: SavedMatch) -> bool:
    """Write the file, readable by its owner only; says whether that was possible."""
    content: dict[str, object] = {"server": match.server, "match_id": match.match_id, "token": match.token.reveal()}
    if match.opponent is not None:
        content["opponent"] = {"strategy": match.opponent.strategy, "token": match.opponent.token.reveal()}
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
        opponent = SavedOpponent(str(other["strategy"]), Token(str(other["token"]))) if other else None
        return SavedMatch(
            server=str(content["server"]),
            match_id=str(content["match_id"]),
            token=Token(str(content["token"])),
            opponent=opponent,
        )
    except OSError as error:
        raise CommandFailedError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise CommandFailedError(f"{path} is not a saved match.") from None
