"""Every PromQL expression of the repository, with its place: rules, dashboards, runbooks."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import promql_parser
import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
CHART = ROOT / "helm" / "spectacular-bid"
RULES = sorted((CHART / "files" / "alerts").glob("*.yaml"))
BOARDS = sorted((CHART / "files" / "dashboards").glob("*.json"))
RUNBOOKS = sorted((ROOT / "docs" / "runbooks").glob("*.md"))
_PROMQL = re.compile(r"^ *```promql\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


class Expression(NamedTuple):
    """An expression as Prometheus gets it, and where it stands."""

    place: str
    text: str


class Selector(NamedTuple):
    """A metric that an expression asks for, with the matchers at it as (label, operator, value)."""

    place: str
    metric: str
    matchers: tuple[tuple[str, str, str], ...]


def rules() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every rule, with its file."""
    for path in RULES:
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]:
            yield from ((path, rule) for rule in group["rules"])


def alerts() -> list[dict[str, Any]]:
    """Every alerting rule."""
    return [rule for _, rule in rules() if "alert" in rule]


def expressions() -> Iterator[Expression]:
    """All of them; what Grafana puts in for its interval is five minutes here."""
    for path, rule in rules():
        yield Expression(f"{path.name} {rule.get('alert') or rule['record']}", rule["expr"])
    for path in BOARDS:
        for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]:
            for target in panel.get("targets", ()):
                text = target["expr"].replace("$__rate_interval", "5m")
                yield Expression(f"{path.name} {panel['title']}", text)
    for path in RUNBOOKS:
        for text in _PROMQL.findall(path.read_text(encoding="utf-8")):
            yield Expression(path.name, text.strip())


def selectors(expression: Expression) -> list[Selector]:
    """What an expression asks for."""
    found: list[Selector] = []

    def visit(node: Any) -> None:  # noqa: ANN401  a node of any type
        if isinstance(node, promql_parser.VectorSelector):
            matchers = tuple((it.name, str(it.op), it.value) for it in node.matchers.matchers)
            found.append(Selector(expression.place, node.name, matchers))

    promql_parser.walk(promql_parser.parse(expression.text), visit)
    return found
