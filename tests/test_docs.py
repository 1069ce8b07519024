"""What docs/ says of metrics and logs is what the service offers, no less and no more."""

import ast
import re
from collections.abc import Iterator

from docs.generate import METRICS, document, families
from service import logs
from tests.support.tidy import ROOT, Source, sources

LEVELS = ("debug", "info", "warning", "error", "critical", "exception", "log")
ROW = re.compile(r"\| `(\w+)` \| ([a-z ]+) \|(.*?)\| .+ \|")
Event = tuple[str, str, tuple[str, ...]]


async def test_every_metric_is_documented_as_it_is() -> None:
    """`make docs` writes it again."""
    assert METRICS.read_text(encoding="utf-8") == document(await families())


def logged(modules: tuple[Source, ...]) -> Iterator[Event]:
    """Every call of the service's logger: name, level, fields; `exc_info` becomes `exception`."""
    for module in modules:
        for node in ast.walk(module.tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LEVELS):
                continue
            if ast.unparse(node.func.value) != "get_logger()":
                continue
            level = "as there" if node.func.attr == "log" else node.func.attr
            name = node.args[-1]
            assert isinstance(name, ast.Constant), f"{module.path}:{node.lineno} has no constant event name"
            fields = sorted("exception" if key.arg == "exc_info" else str(key.arg) for key in node.keywords)
            yield str(name.value), level, tuple(fields)


def documented() -> list[Event]:
    """The table of docs/logs.md."""
    rows = map(ROW.fullmatch, (ROOT / "docs" / "logs.md").read_text(encoding="utf-8").splitlines())
    return [(row[1], row[2], tuple(re.findall(r"`(\w+)`", row[3]))) for row in rows if row]


def test_every_event_is_documented_with_its_level_and_fields() -> None:
    """And nothing is documented that is not logged; one name, one fact, one place."""
    assert sorted(documented()) == sorted(logged(sources("service")))
    names = [name for name, _, _ in documented()]
    assert len(names) == len(set(names))


def test_every_field_is_harmless_and_every_harmless_field_is_used() -> None:
    """What is not on the list is withheld; what is on it for nothing would let something through one day."""
    always = {"event", "level", "timestamp"}
    of_an_order = {"match_id", "version", "seat", "command", "command_id", "trace_id"}
    assert {field for _, _, fields in documented() for field in fields} | always | of_an_order == logs.HARMLESS


def test_nothing_is_logged_past_the_service_s_logger() -> None:
    """Or the list would not be complete."""
    offences = [
        f"{module.path}:{node.lineno}"
        for module in sources("service")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"structlog.get_logger", "logging.getLogger"}
    ]
    assert [place.rpartition(":")[0] for place in offences] == ["service/logs.py"]
