"""The dashboards of the chart: what the code says, in PromQL that Prometheus takes."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from helm.dashboards.__main__ import BOARDS as BOARDS_IN_CODE
from helm.dashboards.__main__ import outdated
from helm.prometheus import program
from tests.ops.expressions import BOARDS, expressions

COLUMNS = 24
OF_OBJECTIVES = {"objective"}
"""The label of recorded series that boards show as they are."""


def panels(path: Path) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["panels"]
    return listed


def shown(path: Path) -> list[dict[str, Any]]:
    return [panel for panel in panels(path) if panel["type"] != "row"]


def test_the_files_are_what_the_code_says() -> None:
    assert outdated() == []
    assert {path.stem for path in BOARDS} == {board.uid for board in BOARDS_IN_CODE}


def test_promtool_takes_every_expression_as_a_rule(tmp_path: Path) -> None:
    rules = [
        {"record": f"checked:expression:{number}", "expr": text, "labels": {"place": place}}
        for number, (place, text) in enumerate(expressions())
    ]
    file = tmp_path / "expressions.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "expressions", "rules": rules}]}), encoding="utf-8")
    checked = subprocess.run([program("promtool"), "check", "rules", file], check=False, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_every_panel_says_what_to_see_in_which_unit(path: Path) -> None:
    for panel in shown(path):
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        for target in panel["targets"]:
            assert target["legendFormat"], panel["title"]
            labels = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            kept = {word for by in re.findall(r"\bby \(([^)]*)\)", target["expr"]) for word in by.split(", ")}
            assert labels <= kept | OF_OBJECTIVES, panel["title"]


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_titles_and_ids_are_told_apart_and_no_panel_lies_on_another(path: Path) -> None:
    taken = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels(path))
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(taken) == len(set(taken))
    assert max(x for x, _ in taken) < COLUMNS
    for field in ("id", "title"):
        values = [panel[field] for panel in panels(path)]
        assert len(values) == len(set(values))


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_every_query_asks_the_chosen_data_source(path: Path) -> None:
    board = json.loads(path.read_text(encoding="utf-8"))
    variables = {variable["name"] for variable in board["templating"]["list"]}
    assert variables == {"datasource", "namespace", "job", "instance"}
    for panel in shown(path):
        assert {target["datasource"]["uid"] for target in panel["targets"]} == {"${datasource}"}
