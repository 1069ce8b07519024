"""Writes docs/metrics.md from the metrics of a running service.

`generate.py` writes it; `generate.py --check` changes nothing and fails when what is there differs. What a service
offers is read as Prometheus reads it, so nothing can be left out or be there in the text alone.
"""

import argparse
import asyncio
import sys
import urllib.request
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from service import logs, wiring
from service.settings import Settings

METRICS = Path(__file__).resolve().parent / "metrics.md"
HEAD = """# Metrics

<!-- Written by docs/generate.py; `make docs` writes it again. -->

Every metric of a process and every value that its labels can take; all of them are there before the first sample. Units
are in the names. No label holds an id, a player, an address or a text. Whoever asks for OpenMetrics gets exemplars with
the match's id (and the trace's) at `specbid_arrival_to_commit_seconds`.

Besides there are `process_*` and `python_gc_*` as the Prometheus client for Python has them on the platform at hand.
gRPC's health and reflection services are not counted, and neither are calls of methods that do not exist.

`.venv/bin/python -m bench metrics`: counting costs a command of PlayMatch 5.7 us of CPU in all, a scrape 3.4 ms beside
the event loop.
"""
NOT_OURS = ("process_", "python_")
CHANGING = {"version", "python", "grpcio"}
"""Labels whose value is that of the build."""


def main() -> int:
    """Returns 0, or 1 when `--check` finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 on a difference")
    options = parser.parse_args()
    logs.configure("error", "json")
    wanted = document(asyncio.run(families()))
    if not options.check:
        METRICS.write_text(wanted, encoding="utf-8")
    elif not METRICS.exists() or METRICS.read_text(encoding="utf-8") != wanted:
        sys.stderr.write("docs/metrics.md is out of date: run `make docs`.\n")
        return 1
    return 0


async def families() -> list[Metric]:
    """The families of a service that has just been started, in the order of its registry."""
    with TemporaryDirectory() as folder:
        settings = Settings(port=0, metrics_port=0, drain_seconds=0, database=Path(folder) / "matches.sqlite3")
        async with wiring.serving(settings) as service:
            text = await asyncio.to_thread(_scrape, service.addresses.metrics)
    return list(text_string_to_metric_families(text))  # type: ignore[no-untyped-call]


def document(metrics: Iterable[Metric]) -> str:
    """The text of docs/metrics.md."""
    ours = (metric for metric in metrics if not metric.name.startswith(NOT_OURS))
    return "\n".join([HEAD, *map(_section, ours)])


def _section(metric: Metric) -> str:
    name = f"{metric.name}_total" if metric.type == "counter" else metric.name
    kind = f"{metric.type}, {metric.unit}" if metric.unit else metric.type
    values: dict[str, dict[str, None]] = defaultdict(dict)  # in their order, which a set does not keep
    for sample in metric.samples:
        for label, value in sample.labels.items():
            values[label][value] = None
    lines = [f"## `{name}`", "", f"{kind}. {metric.documentation}"]
    if values:
        lines.append("")
    for label, known in values.items():
        shown = "that of the build" if label in CHANGING else ", ".join(f"`{value}`" for value in known)
        lines.append(f"- `{label}`: {shown}")
    return "\n".join(lines) + "\n"


def _scrape(address: str) -> str:
    request = urllib.request.Request(f"http://{address}/metrics", headers={"Accept": "application/openmetrics-text"})
    with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310  our own address
        text: str = response.read().decode()
    return text


if __name__ == "__main__":
    sys.exit(main())
