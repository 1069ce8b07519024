"""A value that must not be seen by accident: in a log, a traceback or a debugger's list of variables."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")
HIDDEN = "***"


class Secret(Generic[T]):
    """Wraps a value; only `reveal` gives it away, and a reader of the code sees where that happens."""

    __slots__ = ("_value",)

    def __init__(self, value: T) -> None:
        self._value = value

    def reveal(self) -> T:
        """The value itself."""
        return self._value

    def __repr__(self) -> str:
        return HIDDEN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash((Secret, self._value))
