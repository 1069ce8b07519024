"""Rows about what the service stands on: store and bus, the process, and what is rolled out."""

from __future__ import annotations

from helm.dashboards.grafana import Kind, Panel, Row, Unit
from helm.dashboards.promql import WINDOW, Query, happening, quantile, rate, total

STORE = Row(
    "Store and bus",
    (
        Panel(
            "Operations",
            "Asked of the store.",
            Unit.EVENTS,
            (Query(happening("specbid_store_operations_total", "operation"), "{{operation}}"),),
        ),
        Panel(
            "Operations that did not end well",
            "A conflict is another writer or a repeat, and is decided again; unavailable and error page.",
            Unit.EVENTS,
            (
                Query(
                    happening('specbid_store_operations_total{outcome!="ok"}', "operation", "outcome"),
                    "{{operation}} {{outcome}}",
                ),
            ),
        ),
        Panel(
            "Duration, 99th percentile",
            "With the wait for the store's thread or a connection. An append is synced to the disk.",
            Unit.SECONDS,
            (Query(quantile(0.99, "specbid_store_seconds", "operation"), "{{operation}}"),),
            bad=0.1,
        ),
        Panel(
            "Bus",
            "1: versions reach the watchers at once. 0: they look into the store by themselves.",
            Unit.COUNT,
            (Query("min by (instance) (specbid_bus_connected)", "{{instance}}"),),
            width=12,
        ),
        Panel(
            "Versions read again",
            "Folded from the store because a match was not in memory.",
            Unit.EVENTS,
            (Query(rate("specbid_replayed_versions_total", "instance"), "{{instance}}"),),
            width=12,
        ),
    ),
)
RUNTIME = Row(
    "Runtime",
    (
        Panel(
            "Lag of the event loop, 99th percentile",
            "How late its 10 ms ticker comes. Stamps are as wide as that.",
            Unit.SECONDS,
            (Query(quantile(0.99, "specbid_loop_lag_seconds", "instance"), "{{instance}}"),),
            bad=0.05,
        ),
        Panel(
            "Stalls of the event loop",
            "Longer than 50 ms. One of 2 s is a timing failure.",
            Unit.COUNT,
            (Query(f"sum by (instance) (increase(specbid_loop_stalls_total[{WINDOW}]))", "{{instance}}"),),
        ),
        Panel(
            "Commands under way",
            "Stamped and not handled yet.",
            Unit.COUNT,
            (Query(total("specbid_inflight_commands", "instance"), "{{instance}}"),),
        ),
        Panel(
            "CPU in cores",
            "One core is the most that the event loop can use.",
            Unit.COUNT,
            (Query(rate("process_cpu_seconds_total", "instance"), "{{instance}}"),),
        ),
        Panel(
            "Throttled share",
            "Scheduling periods in which the kernel held the container back; any is too much.",
            Unit.SHARE,
            (
                Query(
                    rate('container_cpu_cfs_throttled_periods_total{container="spectacular-bid"}', "pod")
                    + " / "
                    + rate('container_cpu_cfs_periods_total{container="spectacular-bid"}', "pod"),
                    "{{pod}}",
                ),
            ),
            bad=0.01,
        ),
        Panel(
            "Memory",
            "Resident.",
            Unit.BYTES,
            (Query(total("process_resident_memory_bytes", "instance"), "{{instance}}"),),
        ),
        Panel(
            "Open files",
            "As a share of what the process may have; every connection is one.",
            Unit.SHARE,
            (Query("max by (instance) (process_open_fds / process_max_fds)", "{{instance}}"),),
            width=12,
            bad=0.8,
        ),
        Panel(
            "Garbage collections",
            "By generation; a full one stops the loop while it lasts.",
            Unit.EVENTS,
            (Query(rate("python_gc_collections_total", "generation"), "generation {{generation}}"),),
            width=12,
        ),
    ),
)
ROLLOUT = Row(
    "Rollout",
    (
        Panel(
            "Instances by version",
            "Two versions side by side are a rollout under way.",
            Unit.COUNT,
            (Query(total("specbid_build_info", "version", "python", "grpcio"), "{{version}}, grpcio {{grpcio}}"),),
        ),
        Panel(
            "Up and draining",
            "Instances that answer, and those that have begun a planned stop.",
            Unit.COUNT,
            (
                Query("sum(up and on (namespace, job, instance) last_over_time(specbid_build_info[1h]))", "up"),
                Query(total("specbid_draining"), "draining"),
            ),
        ),
        Panel(
            "Starts in the last hour",
            "Each without a planned stop before it is a timing failure.",
            Unit.COUNT,
            (Query("sum by (instance) (changes(process_start_time_seconds[1h]))", "{{instance}}"),),
            warn=1,
            bad=3,
        ),
        Panel(
            "Matches found at the start",
            "Live ones that an instance went on with.",
            Unit.COUNT,
            (Query(total("specbid_recovered_matches", "instance"), "{{instance}}"),),
        ),
        Panel(
            "Projection violations",
            "Messages held back because they were made for somebody else. Must stay 0; anything else pages.",
            Unit.COUNT,
            (Query("sum(specbid_projection_violations_total)", "violations"),),
            Kind.NOW,
            bad=1,
        ),
        Panel(
            "Forged times of arrival",
            "Headers by which clients claimed when they had sent; without effect.",
            Unit.COUNT,
            (Query("sum(increase(specbid_forged_arrival_headers_total[1h]))", "last hour"),),
            Kind.NOW,
            warn=1,
        ),
    ),
)
