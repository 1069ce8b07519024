"""A board drawn by matplotlib on Grafana's own grid: each panel with its lines, or with its newest values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, Formatter, FuncFormatter

from helm.dashboards.grafana import COLUMNS, Board, Kind, Panel, Unit

COLUMN_INCHES, LINE_INCHES = 0.75, 0.36
MARGIN_INCHES = 0.5
MOST_IN_LEGEND = 8
_SYMBOLS = {Unit.SECONDS: "s", Unit.BYTES: "B"}


class Span(NamedTuple):
    """Of a picture, in Unix seconds."""

    began: float
    ended: float


class Line(NamedTuple):
    """One series: (Unix seconds, value), not a number where there is none."""

    name: str
    points: list[tuple[float, float]]

    def highest(self) -> float:
        """Its greatest value; 0 if it has none."""
        return max((value for _, value in self.points if not isnan(value)), default=0.0)


def named(legend: str, labels: Mapping[str, str]) -> str:
    """Grafana's template for a line's name, filled in."""
    return re.sub(r"{{(\w+)}}", lambda found: labels.get(found[1], ""), legend)


def draw(board: Board, found: Mapping[str, Sequence[Line]], span: Span, file: Path) -> None:
    """Write the picture; `found` has the lines by the title of the panel."""
    places = board.places()
    lines = max(place.y + place.height for _, place in places)
    width, height = COLUMNS * COLUMN_INCHES, lines * LINE_INCHES
    figure = Figure(figsize=(width, height))
    for shown, place in places:
        if not isinstance(shown, Panel):
            figure.text(0.01, 1 - (place.y + 0.8) / lines, shown.title, fontsize=14, weight="bold")
            continue
        inner_width = place.width * COLUMN_INCHES - 2 * MARGIN_INCHES
        inner_height = place.height * LINE_INCHES - 2 * MARGIN_INCHES
        left = place.x * COLUMN_INCHES + 1.4 * MARGIN_INCHES
        bottom = height - (place.y + place.height) * LINE_INCHES + 1.2 * MARGIN_INCHES
        axes = figure.add_axes((left / width, bottom / height, inner_width / width, inner_height / height))
        axes.set_title(shown.title, fontsize=9, loc="left")
        _fill(axes, shown, found[shown.title], span)
    figure.savefig(file, dpi=72)


def _fill(axes: Axes, panel: Panel, found: Sequence[Line], span: Span) -> None:
    if not found:
        axes.text(0.5, 0.5, "no data", ha="center", color="grey", transform=axes.transAxes)
        axes.set_axis_off()
    elif panel.kind is Kind.NOW:
        _newest(axes, panel, found)
    else:
        _over_time(axes, panel, found, span)


def _newest(axes: Axes, panel: Panel, found: Sequence[Line]) -> None:
    shown, good = formatter(panel), "tab:green" if panel.is_judged else "black"
    axes.set_axis_off()
    for number, line in enumerate(found):
        value = line.points[-1][1]
        limits = [(panel.bad, "tab:red"), (panel.warn, "tab:orange")]
        colour = next((colour for limit, colour in limits if limit is not None and value >= limit), good)
        y = 0.9 - number * 0.8 / max(4, len(found))
        axes.text(0, y, line.name, fontsize=10, va="top", transform=axes.transAxes)
        axes.text(1, y, shown(value), fontsize=11, va="top", ha="right", color=colour, transform=axes.transAxes)


def _over_time(axes: Axes, panel: Panel, found: Sequence[Line], span: Span) -> None:
    highest_first = sorted(found, key=Line.highest, reverse=True)
    for number, line in enumerate(highest_first):
        label = line.name if number < MOST_IN_LEGEND else None
        axes.plot([at - span.began for at, _ in line.points], [value for _, value in line.points], lw=1, label=label)
    for limit, colour in ((panel.warn, "tab:orange"), (panel.bad, "tab:red")):
        if limit is not None and limit <= 2 * highest_first[0].highest():
            axes.axhline(limit, color=colour, linestyle="--", lw=1)
    axes.set_xlim(0, span.ended - span.began)
    axes.axhline(0, alpha=0)  # in sight, with the margin that lines along the edge need
    axes.xaxis.set_major_formatter(EngFormatter(unit="s"))
    axes.yaxis.set_major_formatter(formatter(panel))
    axes.tick_params(labelsize=7)
    axes.grid(alpha=0.3)
    left_out = len(found) - MOST_IN_LEGEND
    title = f"the highest, and {left_out} more" if left_out > 0 else None
    axes.legend(fontsize=6, title_fontsize=6, loc="best", framealpha=0.6, title=title)


def formatter(panel: Panel) -> Formatter:
    """How numbers of the panel's unit are written."""
    match panel.unit:
        case Unit.SHARE:
            decimals = 1 if panel.decimals is None else panel.decimals
            return FuncFormatter(lambda share, _: f"{share:.{decimals}%}")
        case Unit.SECONDS | Unit.BYTES:
            return EngFormatter(unit=_SYMBOLS[panel.unit])
        case Unit.CALLS | Unit.EVENTS | Unit.COUNT:
            return FuncFormatter(lambda number, _: f"{number:.4g}")
