"""Rules, dashboards and runbooks ask for what a running service really offers, and leave nothing of it unseen."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.samples import Sample

from tests.helm.chart import containers, profile, server
from tests.ops.expressions import Expression, Selector, expressions, rules, selectors
from tests.support.server import served

OURS = re.compile(r"(specbid_|grpc_server_|process_|python_gc_)")
FOREIGN = {
    *("up", "ALERTS"),
    *("container_cpu_cfs_periods_total", "container_cpu_cfs_throttled_periods_total"),
    "container_cpu_cfs_throttled_seconds_total",
}
"""Metrics of Prometheus itself and of the kubelet's cAdvisor."""
TARGET_LABELS = {"namespace", "job", "instance"}


@pytest.fixture
async def samples(tmp_path: Path) -> list[Sample]:
    """Of a service that has just started: all of its series are there before anybody plays."""
    async with served(tmp_path / "matches.sqlite3") as server:
        return [sample for family in server.service._metrics.registry.collect() for sample in family.samples]


def asked(all_of: Iterator[Expression]) -> list[Selector]:
    return [selector for expression in all_of for selector in selectors(expression)]


def matches(selector: Selector, sample: Sample) -> bool:
    """Whether the selector would find this sample, whatever its target is called."""
    for label, operator, value in selector.matchers:
        has = sample.labels.get(label, "")
        is_like = re.fullmatch(value, has) is not None if operator.endswith("Re") else value == has
        if label not in TARGET_LABELS and is_like == operator.startswith("MatchOp.Not"):
            return False
    return selector.metric == sample.name


def test_every_selector_finds_a_series_of_a_running_service(samples: list[Sample]) -> None:
    recorded = {rule["record"] for _, rule in rules() if "record" in rule}
    lost = [
        selector
        for selector in asked(expressions())
        if selector.metric not in FOREIGN | recorded and not any(matches(selector, sample) for sample in samples)
    ]
    assert lost == []


def test_every_value_in_a_matcher_with_alternatives_exists(samples: list[Sample]) -> None:
    lost = [
        (selector, word)
        for selector in asked(expressions())
        for label, _, value in selector.matchers
        if OURS.match(selector.metric) and re.fullmatch(r"\w+(\|\w+)+", value)
        for word in value.split("|")
        if not any(matches(selector._replace(matchers=((label, "MatchOp.Equal", word),)), it) for it in samples)
    ]
    assert lost == []


def test_every_metric_of_the_service_is_on_a_board_or_in_a_rule(samples: list[Sample]) -> None:
    seen = {selector.metric for selector in asked(it for it in expressions() if not it.place.endswith(".md"))}
    own = {sample.name for sample in samples if sample.name.startswith(("specbid_", "grpc_server_"))}
    families = {re.sub(r"_(bucket|count|sum)$", "", name) for name in own}
    assert families - {re.sub(r"_(bucket|count|sum)$", "", name) for name in seen} == set()


def test_the_labels_of_legends_and_sums_exist(samples: list[Sample]) -> None:
    labels = {"alertname", "severity", "objective", "pod", *TARGET_LABELS}
    labels |= {label for sample in samples for label in sample.labels}
    grouped = {
        label
        for expression in expressions()
        for inside in re.findall(r"\b(?:by|on)\s*\(([^)]*)\)", expression.text)
        for label in re.findall(r"\w+", inside)
    }
    assert grouped <= labels


def test_the_container_whose_throttling_is_watched_is_the_chart_s() -> None:
    named = {
        value for selector in asked(expressions()) for label, _, value in selector.matchers if label == "container"
    }
    assert named == {container["name"] for container in containers(server(profile("monitoring")))}
