"""Every value of the chart does something."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helm.chart import CHART, POSTGRESQL, SQLITE, Values, extended_chart, merged, template

SCHEMA: dict[str, Any] = yaml.safe_load((CHART / "values.schema.json").read_text(encoding="utf-8"))
DEFAULTS: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
ON = {"enabled": True}
PARENTS = [{"name": "public"}]
VOLUME = {"name": "more", "emptyDir": {}}

EVERYTHING = merged(
    POSTGRESQL,
    {"nats": {"existingSecret": "creds"}, "tls": {"clientCA": {"existingSecret": "clients"}}},
    {"auth": {"clientScopes": {"lobby": ["match:create"]}}},
    {"envoy": {"enabled": True, "clientCertificate": "envoy", "tlsSecret": "web"}},
    {"envoy": {"clientCA": {"existingSecret": "envoys"}}},
    {"gateway": {"grpcRoute": {**ON, "parentRefs": PARENTS}, "httpRoute": {**ON, "parentRefs": PARENTS}}},
    {"gateway": {"backendTLS": {**ON, "caConfigMap": "ca"}}, "ingress": {**ON, "host": "duel.example"}},
    {"monitoring": {"serviceMonitor": ON}, "smoke": {"players": ["a", "b"]}},
)
AUTOSCALED = [
    merged(EVERYTHING, {"autoscaling": {"hpa": ON}}),
    merged(EVERYTHING, {"autoscaling": {"keda": {**ON, "triggers": [{"type": "cpu"}]}}}),
]
ONE_POD = merged(
    SQLITE,
    {"sealingKey": {"existingSecret": "sealing"}},
    {"monitoring": {"podMonitor": ON, "prometheusRule": ON, "dashboards": ON}},  # large, so only here
)
KEYS_FETCHED = merged(SQLITE, {"auth": {"jwks": {"existingSecret": "", "url": "https://id.example/first"}}})
BASES = [EVERYTHING, *AUTOSCALED, KEYS_FETCHED, ONE_POD]

OTHER: dict[str, Any] = {
    "auth.clientScopes": {"arcade": ["admin"]},
    "auth.jwks.url": "https://id.example/keys",
    "autoscaling.hpa.metrics": [{"type": "Pods"}],
    "autoscaling.keda.triggers": [{"type": "memory"}],
    "database.sqlite.size": "9Gi",
    "envoy.allowOrigins": ["https://play.example"],
    "envoy.port": 8090,
    "extraEnv": [{"name": "MORE", "value": "1"}],
    "extraObjects": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "more"}}],
    "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
    "extraVolumes": [VOLUME],
    "gateway.grpcRoute.hostnames": ["duel.example"],
    "gateway.grpcRoute.parentRefs": [{"name": "private"}],
    "gateway.httpRoute.hostnames": ["duel.example"],
    "gateway.httpRoute.parentRefs": [{"name": "private"}],
    "image.digest": f"sha256:{'0' * 64}",
    "image.pullSecrets": ["registry"],
    "listen.address": "::",
    "listen.grpcPort": 50061,
    "monitoring.interval": "1m",
    "nats.url": "nats://elsewhere:4222",
    "networkPolicy.extraEgress": [{"ports": [{"port": 4318}]}],
    "networkPolicy.grpcFrom": [{"podSelector": {}}],
    "networkPolicy.metricsFrom": [],
    "scheduling.tolerations": [{"key": "games"}],
    "smoke.players": ["c", "d"],
}
"""Another value where none can be made from the default and the schema."""


def leaves(schema: Values, path: str = "") -> Iterator[tuple[str, Values]]:
    """Every value that has a schema of its own: where it is, and that schema."""
    for name, inner in schema["properties"].items():
        where = f"{path}.{name}".removeprefix(".")
        if "properties" in inner:
            yield from leaves(inner, where)
        elif where not in {"global", "database.kind"}:  # Helm's own; and what all bases are about
            yield where, inner


LEAVES = dict(leaves(SCHEMA))


def default_of(path: str) -> object:
    """What values.yaml says."""
    value: Any = DEFAULTS
    for step in path.split("."):
        value = value[step]
    return value


def another(path: str) -> object:
    """Another value than the default."""
    default, schema = default_of(path), LEAVES[path]
    if path in OTHER:
        return OTHER[path]
    if "enum" in schema:
        return next(choice for choice in schema["enum"] if choice != default)
    if isinstance(default, int):
        return default + 1
    if isinstance(default, dict):
        return {"more": "x"}
    assert isinstance(default, str), path
    return "another"


def laid(path: str, value: object) -> dict[str, Any]:
    """The value at its place in a mapping of values."""
    for step in reversed(path.split(".")):
        value = {step: value}
    assert isinstance(value, dict)
    return value


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart, with rules and dashboards in it."""
    return extended_chart(tmp_path_factory.mktemp("chart"))


@pytest.fixture(scope="module")
def before(chart: Path) -> list[str]:
    """What the bases are rendered to."""
    answers = [template("helm-4", base, folder=chart) for base in BASES]
    assert [answer.stderr for answer in answers] == [""] * len(BASES)
    return [answer.stdout for answer in answers]


@pytest.mark.parametrize("path", LEAVES)
def test_a_value_changes_something(path: str, chart: Path, before: list[str]) -> None:
    is_switch = isinstance(default_of(path), bool)
    changes = [laid(path, value) for value in ((True, False) if is_switch else (another(path),))]
    for change, (base, was) in product(changes, zip(BASES, before, strict=True)):
        answer = template("helm-4", merged(base, change), folder=chart)
        if answer.returncode == 0 and answer.stdout != was:
            return
    pytest.fail("nothing that is rendered depends on it")


def test_nothing_is_in_the_table_without_need() -> None:
    assert OTHER.keys() - LEAVES.keys() == set()
