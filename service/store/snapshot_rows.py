"""Snapshots as every database keeps them: a row a match, all of what it says sealed, as it holds hands and boneyard."""

from __future__ import annotations

from typing import TypeAlias

from engine.state import MatchState
from service.ports import UnknownFormatError
from service.store.sealing import Seal
from service.store.state_json import FORMAT, state_of, state_text

SnapshotRow: TypeAlias = tuple[str, int, int, bytes]


def snapshot_row(match_id: str, state: MatchState, seal: Seal) -> SnapshotRow:
    """match_id, version, format, state."""
    place = _place(match_id, state.version)
    return match_id, state.version, FORMAT, seal.close(state_text(state).encode(), place)


def snapshot_of(row: SnapshotRow, seal: Seal) -> MatchState:
    """The state of a row by `snapshot_row`. Raises UnknownFormatError or StoredFormatError."""
    match_id, version, format_, sealed = row
    if format_ != FORMAT:
        raise UnknownFormatError(f"its format is {format_}, not {FORMAT}")
    return state_of(seal.open(sealed, _place(match_id, version)).decode())


def _place(match_id: str, version: int) -> str:
    return f"{match_id}/{version}/snapshot {FORMAT}"
