"""A secret that does not show up by accident."""

from __future__ import annotations


class Token:
    """The credential of a seat, a shared device or a spectator. Its text appears only when `reveal` is called."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return "Token(...)"

    def __bool__(self) -> bool:
        return bool(self._text)

    def reveal(self) -> str:
        """The text, to be stored or handed on in private."""
        return self._text
