"""What a decision stands on where the store may lose its tail: none is stored that was made on what may be lost."""

from __future__ import annotations

from typing import Protocol

from service.ports import Append, StoreUnavailableError, VersionConflictError


class Turns(Protocol):
    """The servers behind the store, one after another: `turn` rises when the store may have lost what is known."""

    turn: int


class OneTurn:
    """Those of a store that keeps what it acknowledged: nobody else can take it over."""

    turn = 0


class Footing:
    """That of one match's decisions, one at a time."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._begun = self._read = 0

    def begin(self) -> None:
        """An order is taken up: what others have said up to now was looked at."""
        self._begun = self._turns.turn

    def read(self) -> None:
        """The match was read, or was known, and is decided on from here."""
        self._read = self._turns.turn

    def require(self, change: Append) -> None:
        """Let it be stored. Raises VersionConflictError when to decide again will do, else StoreUnavailableError."""
        is_players_own = change.record is not None and change.record.refusal is None
        if is_players_own:  # it follows from its match alone
            if self._read != self._turns.turn:
                raise VersionConflictError(change.match_id)
        elif self._begun != self._turns.turn:
            raise StoreUnavailableError("another server has taken over")
