"""The rules of the chart: what promtool says of them, when each alert fires, and who is told what to do."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from helm.prometheus import program
from tests.ops.expressions import ROOT, RULES, RUNBOOKS, alerts, rules
from tests.support.tidy import sources

STORIES = sorted((Path(__file__).parent / "rules").glob("*.yaml"))
FIRING = 'ALERTS{alertstate="firing"}'
BURNS = [("1h", "5m", "14.4", "page"), ("6h", "30m", "6", "page"), ("3d", "6h", "1", "ticket")]
"""Long window, short window, times the budget."""
HEADINGS = ["For players", "Look", "Do", "Harmless when"]


def key(labels: dict[str, str]) -> tuple[str, str, str]:
    """An alerting rule, told from others of its name by its window."""
    return labels["alertname"], labels["severity"], labels.get("window", "")


def declared() -> dict[tuple[str, str, str], dict[str, Any]]:
    return {key({"alertname": alert["alert"], **alert["labels"]}): alert for alert in alerts()}


def looks() -> Iterator[list[list[dict[str, str]]]]:
    """For each story the labels of what is expected to fire, look by look."""
    for path in STORIES:
        for story in yaml.safe_load(path.read_text(encoding="utf-8"))["tests"]:
            yield [
                [dict(re.findall(r'(\w+)="([^"]*)"', sample["labels"])) for sample in look["exp_samples"]]
                for look in story["promql_expr_test"]
            ]


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.name)
def test_promtool_takes_the_rules(path: Path) -> None:
    checked = subprocess.run(
        [program("promtool"), "check", "rules", "--lint-fatal", path], check=False, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.name)
def test_exactly_the_expected_alerts_fire(path: Path) -> None:
    tested = subprocess.run([program("promtool"), "test", "rules", path], check=False, capture_output=True, text=True)
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_every_story_looks_at_all_that_fires() -> None:
    stories = [story for path in STORIES for story in yaml.safe_load(path.read_text(encoding="utf-8"))["tests"]]
    assert {look["expr"] for story in stories for look in story["promql_expr_test"]} == {FIRING}


def test_every_alert_fires_in_a_story_and_is_silent_in_another_moment_of_it() -> None:
    told = set()
    for story in looks():
        moments = [{key(labels) for labels in look} for look in story]
        told |= {alert for moment in moments for alert in moment if any(alert not in other for other in moments)}
    assert told == set(declared())


def test_annotations_name_only_labels_that_the_alert_has() -> None:
    shown = {key(labels): labels for story in looks() for look in story for labels in look}
    unknown = [
        (name, label)
        for name, alert in declared().items()
        for label in re.findall(r"\$labels\.(\w+)", str(alert["annotations"]))
        if label not in shown[name]
    ]
    assert unknown == []


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: f"{alert['alert']} {alert['labels'].get('window', '')}")
def test_every_alert_says_what_it_is_how_bad_and_what_to_do(alert: dict[str, Any]) -> None:
    assert set(alert["annotations"]) == {"summary", "description", "runbook_url"}
    assert all(alert["annotations"].values())
    assert alert["labels"]["severity"] in {"page", "ticket"}
    assert alert["annotations"]["runbook_url"] == f"docs/runbooks/{alert['alert']}.md"


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    assert {path.stem for path in RUNBOOKS} == {alert["alert"] for alert in alerts()}


@pytest.mark.parametrize("path", RUNBOOKS, ids=lambda path: path.stem)
def test_a_runbook_answers_the_four_questions(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith(f"# {path.stem}\n")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == HEADINGS


@pytest.mark.parametrize("path", RUNBOOKS, ids=lambda path: path.stem)
def test_a_runbook_points_at_what_exists(path: Path) -> None:
    for link in re.findall(r"\]\(([^)]+)\)", path.read_text(encoding="utf-8")):
        file, _, heading = link.partition("#")
        text = (path.parent / file).read_text(encoding="utf-8")
        headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        assert not heading or heading in {re.sub(r"[^\w -]", "", it).lower().replace(" ", "-") for it in headings}, link


def test_every_objective_is_guarded_at_three_speeds_from_traffic_on_whose_budget_is_one_bad_event() -> None:
    budgets = {
        rule["labels"]["objective"]: float(rule["expr"].removeprefix("vector(").removesuffix(")"))
        for _, rule in rules()
        if rule.get("record") == "specbid:objective_budget:ratio"
    }
    expected = {
        (severity, window): {
            f'specbid:objective_burn:ratio{window}{{objective="{objective}"}} > {times}'
            f' and specbid:objective_burn:ratio{short}{{objective="{objective}"}} > {times}'
            f' and specbid:objective_events:sum{window}{{objective="{objective}"}} >= {1 / budget:.0f}'
            for objective, budget in budgets.items()
        }
        for window, short, times, severity in BURNS
    }
    found: dict[tuple[str, str], set[str]] = {}
    for (_, severity, window), alert in declared().items():
        if window:
            found.setdefault((severity, window), set()).add(alert["expr"])
    assert found == expected
    assert budgets == {"commands": 0.001, "commit": 0.005, "delivery": 0.01, "timing": 0.0001}


def test_the_documentation_lists_every_alert_as_it_is() -> None:
    severities: dict[str, set[str]] = {}
    for alert in alerts():
        severities.setdefault(alert["alert"], set()).add(alert["labels"]["severity"])
    rows = [
        f"| [{alert['alert']}](../runbooks/{alert['alert']}.md) | {' or '.join(sorted(severities[alert['alert']]))} "
        f"| {alert['annotations']['summary']} |"
        for alert in alerts()
    ]
    text = (ROOT / "docs" / "dashboards" / "README.md").read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if line.startswith("| [Specbid")] == list(dict.fromkeys(rows))


def test_runbooks_name_events_that_the_service_logs() -> None:
    source = "".join(module.text for module in sources("service"))
    named = {
        event
        for path in RUNBOOKS
        for events in re.findall(r"Log events? (`\w+`(?:,\s+`\w+`)*)", path.read_text(encoding="utf-8"))
        for event in re.findall(r"\w+", events)
    }
    assert len(named) > 5
    assert {event for event in named if f'"{event}"' not in source} == set()
