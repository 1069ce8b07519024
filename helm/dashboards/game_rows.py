"""Rows about what players do and get: calls, the game, the clock and its fairness, streams."""

from __future__ import annotations

from helm.dashboards.grafana import Panel, Row, Unit
from helm.dashboards.promql import WINDOW, Query, happening, quantile, quantiles, rate, total

CALLS = Row(
    "Calls by method",
    (
        Panel(
            "Calls",
            "Calls begun.",
            Unit.CALLS,
            (Query(rate("grpc_server_started_total", "grpc_method"), "{{grpc_method}}"),),
        ),
        Panel(
            "Calls that did not end with OK",
            "Canceled is the client's doing, ResourceExhausted a limit; Internal and Unknown are mistakes of ours.",
            Unit.CALLS,
            (
                Query(
                    happening('grpc_server_handled_total{grpc_code!="OK"}', "grpc_method", "grpc_code"),
                    "{{grpc_method}} {{grpc_code}}",
                ),
            ),
        ),
        Panel(
            "Duration of unary calls, 99th percentile",
            "With the time that the store takes.",
            Unit.SECONDS,
            (Query(quantile(0.99, "grpc_server_handling_seconds", "grpc_method"), "{{grpc_method}}"),),
        ),
        Panel(
            "Messages",
            "Received from and handed to clients; on streams many belong to one call.",
            Unit.EVENTS,
            (
                Query(rate("grpc_server_msg_received_total", "grpc_method"), "{{grpc_method}} in"),
                Query(rate("grpc_server_msg_sent_total", "grpc_method"), "{{grpc_method}} out"),
            ),
            width=12,
        ),
        Panel(
            "Requests turned away",
            "Before they enter a match's line: by the limit that they met, or as nobody could tell when they came.",
            Unit.CALLS,
            (
                Query(happening("specbid_load_shed_total", "limit"), "{{limit}}"),
                Query(happening("specbid_unstamped_commands_total"), "clock not sure"),
            ),
            width=12,
            bad=1,
        ),
    ),
)
GAME = Row(
    "Game",
    (
        Panel(
            "Live matches",
            "By phase; unread are those found at the start that nobody has needed since.",
            Unit.COUNT,
            (Query(total("specbid_matches_live", "phase"), "{{phase}}"),),
        ),
        Panel(
            "Matches created and finished",
            "By how they ended. timing_failure is the service's fault and has an objective.",
            Unit.EVENTS,
            (
                Query(rate("specbid_matches_created_total"), "created"),
                Query(happening("specbid_matches_finished_total", "result"), "{{result}}"),
            ),
        ),
        Panel("Length of matches", "From creation to end.", Unit.SECONDS, quantiles("specbid_match_duration_seconds")),
        Panel(
            "Accepted commands",
            "What players play.",
            Unit.EVENTS,
            (Query(rate('specbid_commands_total{outcome="accepted"}', "kind"), "{{kind}}"),),
        ),
        Panel(
            "Commands without acceptance",
            "Refusals by reason are the players'; unavailable and internal_error are ours.",
            Unit.EVENTS,
            (
                Query(happening('specbid_commands_total{outcome!="accepted"}', "outcome"), "{{outcome}}"),
                Query(happening("specbid_commands_repeated_total"), "repeated, got the first outcome"),
            ),
        ),
        Panel(
            "Rounds",
            "By their ending.",
            Unit.EVENTS,
            (Query(rate("specbid_rounds_finished_total", "ending"), "{{ending}}"),),
        ),
    ),
)
CLOCK = Row(
    "Clock and fairness",
    (
        Panel(
            "From arrival to durable",
            "The objective is 0.25 s for 99.5 %. Nobody's clock runs in it.",
            Unit.SECONDS,
            quantiles("specbid_arrival_to_commit_seconds"),
            bad=0.25,
        ),
        Panel(
            "Stages of a command, 99th percentile",
            "Waiting for its turn, reading the match, deciding, storing, telling.",
            Unit.SECONDS,
            (Query(quantile(0.99, "specbid_stage_seconds", "stage"), "{{stage}}"),),
        ),
        Panel(
            "Timing failures in the last hour",
            "Rows of the fault ledger by cause; `spectacular-bid admin faults` has the evidence.",
            Unit.COUNT,
            (Query("sum by (cause) (increase(specbid_timing_failures_total[1h])) > 0", "{{cause}}"),),
            bad=1,
        ),
        Panel(
            "Time left on accepted commands",
            "How close to their deadlines players play: 1 % and half of the commands had less left.",
            Unit.SECONDS,
            quantiles("specbid_deadline_margin_seconds", 0.01, 0.5),
        ),
        Panel(
            "How late commands came too late",
            "Short and frequent means that clients cut it fine, or show a clock that is wrong.",
            Unit.SECONDS,
            quantiles("specbid_deadline_late_seconds"),
        ),
        Panel(
            "Deadlines: late timers, oldest overdue",
            "The timer's delay at the 99th percentile, and the oldest deadline that is not settled; 3 s pages.",
            Unit.SECONDS,
            (
                Query(quantile(0.99, "specbid_deadline_fire_delay_seconds"), "timer, p99"),
                Query("max by (instance) (specbid_deadline_overdue_seconds)", "overdue {{instance}}"),
            ),
            bad=3,
        ),
        Panel(
            "Armed deadlines",
            "Decisions whose time runs.",
            Unit.COUNT,
            (Query(total("specbid_deadlines_armed", "instance"), "{{instance}}"),),
        ),
        Panel(
            "Service time",
            "How far it may be from the store's; 0.05 s pages. Being ahead of the wall clock is harmless.",
            Unit.SECONDS,
            (
                Query("max by (instance) (specbid_clock_error_bound_seconds)", "error bound {{instance}}"),
                Query("max by (instance) (specbid_clock_skew_seconds)", "ahead of the wall clock {{instance}}"),
            ),
        ),
        Panel(
            "Steps of a clock",
            "Service time against the loop's clock; each is a timing failure.",
            Unit.COUNT,
            (Query(f"sum by (instance) (increase(specbid_clock_steps_total[{WINDOW}]))", "{{instance}}"),),
            bad=1,
        ),
        Panel(
            "Envoy's stamps",
            "What became of them: mostly not needed. Unreadable ones are an Envoy that makes none.",
            Unit.EVENTS,
            (Query(happening("specbid_arrival_testimonies_total", "outcome"), "{{outcome}}"),),
        ),
    ),
)
STREAMS = Row(
    "Streams",
    (
        Panel(
            "Open streams",
            "By the method that opened them.",
            Unit.COUNT,
            (Query(total("specbid_streams_open", "kind"), "{{kind}}"),),
        ),
        Panel(
            "Ended streams",
            "By why. slow_reader is the client or its network; internal_error is ours.",
            Unit.EVENTS,
            (Query(happening("specbid_streams_ended_total", "reason"), "{{reason}}"),),
        ),
        Panel(
            "From durable to handed to the transport",
            "The objective is 0.5 s for 99 %.",
            Unit.SECONDS,
            quantiles("specbid_delivery_seconds"),
            bad=0.5,
        ),
    ),
)
