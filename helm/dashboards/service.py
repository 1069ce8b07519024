"""The whole service on one board, a row for each question; the first row answers whether anything is wrong now."""

from __future__ import annotations

from helm.dashboards import game_rows, process_rows
from helm.dashboards.grafana import Board, Kind, Panel, Row, Unit
from helm.dashboards.promql import Query

GOOD_SHARE = Panel(
    "Good events, 3 days",
    "The share of events that met each objective: commands 99.9 %, commit 99.5 %, delivery 99 %, timing 99.99 %.",
    Unit.SHARE,
    (
        Query(
            "1 - avg_over_time(specbid:objective_bad_events:rate5m[3d])"
            " / (avg_over_time(specbid:objective_events:rate5m[3d]) > 0)",
            "{{objective}}",
        ),
    ),
    Kind.NOW,
    decimals=3,
)
BURN = Panel(
    "Error budgets: how fast they burn",
    "Over one hour. At 1 a budget lasts its 30 days; 6 for six hours and 14.4 for one hour page.",
    Unit.COUNT,
    (Query("specbid:objective_burn:ratio1h", "{{objective}}"),),
    warn=6,
    bad=14.4,
)
FIRING = Panel(
    "Alerts that fire",
    "Each is explained in docs/runbooks. Empty is good.",
    Unit.COUNT,
    (
        Query(
            'sum by (alertname, severity) (ALERTS{alertstate="firing",alertname=~"Specbid.*"})',
            "{{alertname}} {{severity}}",
        ),
    ),
    Kind.NOW,
    bad=1,
)

SERVICE = Board(
    "spectacular-bid",
    "Spectacular Bid",
    "Objectives, calls, game, clock, streams, store, runtime and rollout of the duel service.",
    (
        Row("Objectives now", (GOOD_SHARE, BURN, FIRING)),
        game_rows.CALLS,
        game_rows.GAME,
        game_rows.CLOCK,
        game_rows.STREAMS,
        process_rows.STORE,
        process_rows.RUNTIME,
        process_rows.ROLLOUT,
    ),
)
