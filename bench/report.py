"""Tables: plain text for people, the same rows as JSON for later comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Value: TypeAlias = float | int | str | None
NOT_AVAILABLE = "n/a"
TEXT = ""
"""The format of a column of words."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under named columns. `columns` gives each its format: `TEXT`, or a format specification for numbers."""

    title: str
    columns: Mapping[str, str]
    rows: Sequence[Sequence[Value]]
    notes: Sequence[str] = field(default=())

    def to_text(self) -> str:
        """Aligned columns under a title."""
        head = list(self.columns)
        body = [
            [_shown(value, form) for value, form in zip(row, self.columns.values(), strict=True)] for row in self.rows
        ]
        widths = [max(len(cell) for cell in column) for column in zip(head, *body, strict=True)]
        lines = [self._line(cells, widths) for cells in (head, ["-" * width for width in widths], *body)]
        return "\n".join([self.title, "", *lines, *(f"  {note}" for note in self.notes)])

    def to_json(self) -> dict[str, object]:
        """An object a row."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"title": self.title, "rows": rows, "notes": list(self.notes)}

    def _line(self, cells: Sequence[str], widths: Sequence[int]) -> str:
        forms = self.columns.values()
        padded = [
            cell.ljust(width) if form == TEXT else cell.rjust(width)
            for cell, width, form in zip(cells, widths, forms, strict=True)
        ]
        return "  ".join(["", *padded]).rstrip()


def _shown(value: Value, form: str) -> str:
    return NOT_AVAILABLE if value is None else format(value, form)
