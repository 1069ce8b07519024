"""The chart rendered by real Helm, and the values that its tests start from."""

import copy
import json
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
CHART = ROOT / "helm" / "spectacular-bid"
HELMS = ("helm-3", "helm-4")
PROFILES = tuple(sorted(path.name.removesuffix("-values.yaml") for path in (CHART / "ci").glob("*-values.yaml")))
RELEASE = "duel"
NAME = f"{RELEASE}-spectacular-bid"

Object = dict[str, Any]
"""A Kubernetes object. Any: it is a tree of JSON values."""
Values = Mapping[str, Any]

SQLITE: Values = {
    "tls": {"existingSecret": "tls"},
    "auth": {"jwks": {"existingSecret": "keys"}, "issuer": "https://id.example", "audience": "duel"},
}
POSTGRESQL: Values = {
    **SQLITE,
    "replicas": 3,
    "database": {"kind": "postgresql", "postgresql": {"existingSecret": "dsn"}},
    "nats": {"url": "nats://nats:4222"},
    "sealingKey": {"existingSecret": "sealing"},
}

STAMPING: Values = {"envoy": {"enabled": True, "clientCertificate": "envoy", "clientCA": {"existingSecret": "envoys"}}}
"""An Envoy whose stamps of arrival are believed."""

ALERTS = """# Braces are Prometheus' own.
groups:
  - name: game
    rules:
      - alert: TimingFailure
        expr: increase(specbid_timing_failures_total[5m]) > 0
        annotations:
          summary: "{{ $labels.pod }}: {{ $value }} faults"
"""
BOARD = {"title": "Game", "panels": [{"targets": [{"expr": 'rate(x{method="a"}[5m])', "legendFormat": "{{method}}"}]}]}


def helm(program: str, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a Helm; `text` is its standard input. Does not raise when Helm fails."""
    command = [str(ROOT / ".tools" / "helm" / program), *arguments]
    return subprocess.run(command, input=text, check=False, capture_output=True, text=True)


def rendered(values: Values, *, program: str = "helm-4", release: str = RELEASE, folder: Path = CHART) -> list[Object]:
    """The objects of the chart (or of a copy in a folder) with these values."""
    answer = template(program, values, release, folder)
    assert answer.returncode == 0, answer.stderr
    return [item for item in yaml.load_all(answer.stdout, yaml.CSafeLoader) if item]


def refusal(values: Values, *, program: str) -> str:
    """What Helm says instead of rendering."""
    answer = template(program, values)
    assert answer.returncode != 0, answer.stdout
    return answer.stderr


def template(
    program: str, values: Values, release: str = RELEASE, folder: Path = CHART
) -> subprocess.CompletedProcess[str]:
    """Run `helm template`."""
    return helm(program, "template", release, str(folder), "--values", "-", text=yaml.safe_dump(dict(values)))


@cache
def profile(name: str, program: str = "helm-4") -> tuple[Object, ...]:
    """The objects of a profile."""
    return tuple(rendered(yaml.safe_load((CHART / "ci" / f"{name}-values.yaml").read_text()), program=program))


def of_kind(objects: tuple[Object, ...] | list[Object], kind: str, name: str | None = None) -> list[Object]:
    """The objects of a kind, or the one of a name."""
    return [item for item in objects if item["kind"] == kind and name in {None, item["metadata"]["name"]}]


def only(objects: tuple[Object, ...] | list[Object], kind: str, name: str | None = None) -> Object:
    """The one object of a kind (and name)."""
    (found,) = of_kind(objects, kind, name)
    return found


def server(objects: tuple[Object, ...] | list[Object]) -> Object:
    """The pod of the service."""
    pod: Object = only(objects, "Deployment", NAME)["spec"]["template"]["spec"]
    return pod


def pods(objects: tuple[Object, ...] | list[Object]) -> dict[str, Object]:
    """Every pod's spec, by the kind and name of what makes it."""
    specs = {}
    for item in objects:
        place = f"{item['kind']} {item['metadata']['name']}"
        if item["kind"] in {"Deployment", "Job"}:
            specs[place] = item["spec"]["template"]["spec"]
        elif item["kind"] == "Pod":
            specs[place] = item["spec"]
    return specs


def containers(pod: Object) -> list[Object]:
    """All containers of a pod."""
    return [*pod.get("initContainers", []), *pod["containers"]]


def environment(pod: Object) -> dict[str, Object]:
    """The variables of a pod's first container, by name."""
    return {entry["name"]: entry for entry in pod["containers"][0]["env"]}


def extended_chart(parent: Path) -> Path:
    """A copy of the chart in a folder, with one more file of rules and one more dashboard."""
    folder = parent / CHART.name
    shutil.copytree(CHART, folder)
    for name, file, text in (
        ("alerts", "more_rules.yaml", ALERTS),
        ("dashboards", "more_boards.json", json.dumps(BOARD, indent=1)),
    ):
        (folder / "files" / name).mkdir(parents=True, exist_ok=True)
        (folder / "files" / name / file).write_text(text, encoding="utf-8")
    return folder


def merged(base: Values, *changes: Values) -> dict[str, Any]:
    """The base with changes laid over it, mapping by mapping."""
    whole = copy.deepcopy(dict(base))
    for change in changes:
        for key, value in change.items():
            is_mapping = isinstance(value, dict) and isinstance(whole.get(key), dict)
            whole[key] = merged(whole[key], value) if is_mapping else value
    return whole
