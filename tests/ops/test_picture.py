"""The picture of the dashboard shows what it is given. The run that it is taken from is made by hand."""

from pathlib import Path

from matplotlib.image import imread

from helm.dashboards.drawing import Line, Span, draw, formatter, named
from helm.dashboards.grafana import Board, Kind, Panel, Row, Unit
from helm.dashboards.promql import Query


def panel(title: str, unit: Unit = Unit.SECONDS, kind: Kind = Kind.TIME) -> Panel:
    return Panel(title, "It says.", unit, (Query("up", "{{job}}"),), kind, bad=1)


def picture_of(file: Path, *, value: float) -> object:
    board = Board("b", "B", "All.", (Row("First", (panel("over time"), panel("now", kind=Kind.NOW), panel("none"))),))
    line = Line("a", [(100.0, 0.0), (110.0, value)])
    draw(board, {"over time": [line], "now": [line], "none": []}, Span(100.0, 110.0), file)
    return imread(file).tolist()


def test_other_values_make_another_picture(tmp_path: Path) -> None:
    once, again, other = (picture_of(tmp_path / f"{n}.png", value=value) for n, value in enumerate((0.5, 0.5, 2.0)))
    assert once == again != other


def test_a_legend_is_filled_in_as_grafana_does() -> None:
    assert named("{{operation}} {{outcome}}", {"operation": "append", "outcome": "ok"}) == "append ok"


def test_numbers_are_written_in_their_unit() -> None:
    assert formatter(panel("", Unit.SECONDS))(0.025) == "25 ms"
    assert formatter(panel("", Unit.BYTES))(64e6) == "64 MB"
    assert formatter(panel("", Unit.SHARE))(0.25) == "25.0%"
