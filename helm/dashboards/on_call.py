"""The small board for whoever is called at night: what to know before reading anything else."""

from __future__ import annotations

from helm.dashboards import game_rows, process_rows
from helm.dashboards.grafana import Board, Panel, Row
from helm.dashboards.service import BURN, FIRING, GOOD_SHARE


def _panel(row: Row, title: str) -> Panel:
    """A panel of the large board, at the width of a third."""
    (panel,) = (panel for panel in row.panels if panel.title == title)
    return panel


ON_CALL = Board(
    "spectacular-bid-on-call",
    "Spectacular Bid: on call",
    "What fires, whom it hurts and since when. The large board has the reasons.",
    (
        Row("What is wrong", (FIRING, BURN, GOOD_SHARE)),
        Row(
            "Whom it hurts",
            (
                _panel(game_rows.GAME, "Live matches"),
                _panel(game_rows.GAME, "Commands without acceptance"),
                _panel(game_rows.CLOCK, "Timing failures in the last hour"),
            ),
        ),
        Row(
            "Where it comes from",
            (
                _panel(game_rows.CLOCK, "Stages of a command, 99th percentile"),
                _panel(process_rows.STORE, "Operations that did not end well"),
                _panel(process_rows.RUNTIME, "Lag of the event loop, 99th percentile"),
                _panel(game_rows.CLOCK, "Deadlines: late timers, oldest overdue"),
                _panel(process_rows.ROLLOUT, "Up and draining"),
                _panel(process_rows.ROLLOUT, "Instances by version"),
            ),
        ),
    ),
)
