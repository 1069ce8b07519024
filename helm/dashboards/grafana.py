"""Boards, rows and panels as values, and the JSON that Grafana imports (schema 39: Grafana 10.4 and newer)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from helm.dashboards.promql import INSTANCE_VARIABLES, Query, scoped

SCHEMA = 39
COLUMNS = 24
HEIGHT = 8
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
ABOUT = "specbid_build_info"
"""Every instance has it, so the choices of the variables come from it."""


class Unit(StrEnum):
    """Grafana's ids of units."""

    COUNT = "short"
    SECONDS = "s"
    SHARE = "percentunit"
    BYTES = "bytes"
    CALLS = "reqps"
    EVENTS = "eps"


class Kind(StrEnum):
    """How a panel shows its queries: over time, or the newest values only."""

    TIME = "timeseries"
    NOW = "stat"


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel; `text` says what to see in it. Values from `warn` on are orange, from `bad` on red."""

    title: str
    text: str
    unit: Unit
    queries: tuple[Query, ...]
    kind: Kind = Kind.TIME
    width: int = 8
    warn: float | None = None
    bad: float | None = None
    decimals: int | None = None

    @property
    def is_judged(self) -> bool:
        """Whether there are values that are too much."""
        return self.warn is not None or self.bad is not None


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under a heading, from left to right, as many lines as they need."""

    title: str
    panels: tuple[Panel, ...]


class Place(NamedTuple):
    """On Grafana's grid: 24 columns, and lines of about 30 pixels from the top."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Board:
    """One dashboard; `uid` is also the name of its file."""

    uid: str
    title: str
    text: str
    rows: tuple[Row, ...]

    def panels(self) -> Iterator[Panel]:
        """All panels, in reading order."""
        for row in self.rows:
            yield from row.panels

    def places(self) -> list[tuple[Row | Panel, Place]]:
        """Headings and panels from top to bottom, each with its place."""
        placed: list[tuple[Row | Panel, Place]] = []
        y = 0
        for row in self.rows:
            placed.append((row, Place(0, y, COLUMNS, 1)))
            x, y = 0, y + 1
            for panel in row.panels:
                if x + panel.width > COLUMNS:
                    x, y = 0, y + HEIGHT
                placed.append((panel, Place(x, y, panel.width, HEIGHT)))
                x += panel.width
            y += HEIGHT
        return placed

    def to_json(self) -> dict[str, object]:
        """What Grafana imports."""
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.text,
            "tags": ["spectacular-bid"],
            "schemaVersion": SCHEMA,
            "editable": True,
            "graphTooltip": 1,
            "refresh": "30s",
            "time": {"from": "now-1h", "to": "now"},
            "timezone": "utc",
            "templating": {"list": [_datasource(), *map(_choice, INSTANCE_VARIABLES)]},
            "panels": [_shown(number, *shown) for number, shown in enumerate(self.places(), start=1)],
        }


def _datasource() -> dict[str, object]:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}


def _choice(label: str) -> dict[str, object]:
    query = f"label_values({scoped(ABOUT, before=label)}, {label})"
    return {
        "name": label,
        "label": label.capitalize(),
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": label},
        "definition": query,
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def _shown(number: int, shown: Row | Panel, place: Place) -> dict[str, object]:
    grid = {"x": place.x, "y": place.y, "w": place.width, "h": place.height}
    if isinstance(shown, Row):
        return {"id": number, "type": "row", "title": shown.title, "collapsed": False, "panels": [], "gridPos": grid}
    return {"id": number, **_panel(shown), "gridPos": grid}


def _panel(panel: Panel) -> dict[str, object]:
    return {
        "type": panel.kind.value,
        "title": panel.title,
        "description": panel.text,
        "datasource": DATASOURCE,
        "targets": [_target(number, query, panel.kind) for number, query in enumerate(panel.queries)],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        "options": _TIME if panel.kind is Kind.TIME else _STAT if panel.is_judged else _PLAIN_STAT,
    }


_STAT = {"colorMode": "background", "graphMode": "area", "reduceOptions": {"calcs": ["lastNotNull"]}}
_PLAIN_STAT = {**_STAT, "colorMode": "none"}
_TIME = {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}}


def _target(number: int, query: Query, kind: Kind) -> dict[str, object]:
    return {
        "refId": chr(ord("A") + number),
        "datasource": DATASOURCE,
        "expr": scoped(query.expr),
        "legendFormat": query.legend,
        "instant": kind is Kind.NOW,
        "range": kind is Kind.TIME,
    }


def _defaults(panel: Panel) -> dict[str, object]:
    """Unit and colours."""
    limits = [("orange", panel.warn), ("red", panel.bad)]
    steps: list[dict[str, object]] = [{"color": "green", "value": None}]
    steps += [{"color": colour, "value": value} for colour, value in limits if value is not None]
    shown: dict[str, object] = {
        "unit": panel.unit.value,
        "color": {"mode": "thresholds" if panel.kind is Kind.NOW else "palette-classic"},
        "thresholds": {"mode": "absolute", "steps": steps},
    }
    if panel.kind is Kind.TIME and panel.is_judged:
        shown["custom"] = {"thresholdsStyle": {"mode": "dashed"}}
    if panel.decimals is not None:
        shown["decimals"] = panel.decimals
    return shown
