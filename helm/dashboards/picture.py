"""Draw the large dashboard from a real run: `python -m helm.dashboards.picture FILE`.

A service is started, bots play against it over gRPC at a pace, Prometheus scrapes it each second with the chart's
rules, and every panel's queries are asked of Prometheus and drawn: the panels' data, not a picture by Grafana.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import nan
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from bench.load.job import Transport
from bench.processes import READY_SECONDS, STOP_SECONDS, Cores, serving
from bench.runs import job_of, playing
from helm.dashboards.drawing import Line, Span, draw, named
from helm.dashboards.grafana import Panel
from helm.dashboards.promql import WINDOW
from helm.dashboards.service import SERVICE
from helm.prometheus import program

MATCHES = 20
COMMANDS_PER_SECOND = 60
PLAY_SECONDS = 180
IDLE_SECONDS = 15
STEP_SECONDS = 2
INTERVAL = "15s"
"""What Grafana would put in for its interval at so many scrapes."""
ALERTS = Path(__file__).resolve().parent.parent / "spectacular-bid" / "files" / "alerts"


def main() -> None:
    """Play, scrape, ask, draw."""
    parser = argparse.ArgumentParser(prog="python -m helm.dashboards.picture", description=__doc__)
    parser.add_argument("file", type=Path, help="the picture to write; its ending says which kind")
    file = parser.parse_args().file
    anywhere = Cores(None, None)
    with tempfile.TemporaryDirectory(prefix="spectacular-bid-picture-") as name:
        folder = Path(name)
        metrics_port = _free_port()
        settings = {
            "SPECBID_PORT": "0",
            "SPECBID_METRICS_PORT": str(metrics_port),
            "SPECBID_DATABASE": str(folder / "picture.sqlite3"),
            "SPECBID_DRAIN_SECONDS": "0",
        }
        with (
            serving(["-m", "service", "serve"], core=None, log=folder / "log", settings=settings) as server,
            scraping(f"127.0.0.1:{metrics_port}", folder) as prometheus,
        ):
            began = time.time()
            time.sleep(IDLE_SECONDS)
            job = job_of(Transport.PLAY, matches=MATCHES, commands=COMMANDS_PER_SECOND * PLAY_SECONDS)
            with playing(replace(job, pace_per_second=COMMANDS_PER_SECOND), [server], anywhere):
                pass
            time.sleep(IDLE_SECONDS)
            span = Span(began, time.time())
            draw(SERVICE, {panel.title: lines(prometheus, panel, span) for panel in SERVICE.panels()}, span, file)


@contextmanager
def scraping(target: str, folder: Path) -> Iterator[str]:
    """Prometheus with the chart's rules on one target, scraped each second; gives its address."""
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [f"{ALERTS}/*.yaml"],
        "scrape_configs": [{"job_name": "spectacular-bid", "static_configs": [{"targets": [target]}]}],
    }
    file = folder / "prometheus.yaml"
    file.write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    address = f"127.0.0.1:{_free_port()}"
    options = [f"--config.file={file}", f"--storage.tsdb.path={folder / 'tsdb'}", f"--web.listen-address={address}"]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen([program("prometheus"), *options], stdout=log, stderr=log)
    try:
        _wait_for(f"http://{address}/-/ready")
        yield address
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)


def lines(prometheus: str, panel: Panel, span: Span) -> list[Line]:
    """What Prometheus answers to the queries of a panel."""
    found = []
    for query in panel.queries:
        asked = {
            "query": query.expr.replace(WINDOW, INTERVAL),
            "start": f"{span.began:.0f}",
            "end": f"{span.ended:.0f}",
            "step": str(STEP_SECONDS),
        }
        with urlopen(f"http://{prometheus}/api/v1/query_range?{urlencode(asked)}") as answer:
            series = json.load(answer)["data"]["result"]
        found += [Line(named(query.legend, one["metric"]), _with_gaps(one["values"])) for one in series]
    return found


def _with_gaps(values: list[tuple[float, str]]) -> list[tuple[float, float]]:
    """The points, and where one is missing something that is drawn as a gap."""
    points: list[tuple[float, float]] = []
    for at, value in values:
        if points and at - points[-1][0] > STEP_SECONDS:
            points.append((points[-1][0] + STEP_SECONDS, nan))
        points.append((at, float(value)))
    return points


def _wait_for(url: str) -> None:
    give_up = time.monotonic() + READY_SECONDS
    while True:
        try:
            with urlopen(url):  # noqa: S310  our own
                return
        except URLError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
