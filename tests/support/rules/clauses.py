"""The table of docs/RULES.md, and who names its ids: markers of tests, comments and docstrings of the engine."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "RULES.md"
ENGINE = ROOT / "engine"
TESTS = ROOT / "tests"
RULE_TEXT = ENGINE / "rules.txt"
ROW = re.compile(r"^\| `(?P<id>[^`]+)` \| (?P<text>.+) \| (?P<files>[^|]+) \| (?P<tests>[^|]+) \|$")
QUOTED = re.compile(r"`([^`]+)`")
NO_TEST = "none"


@dataclass(frozen=True)
class Clause:
    """A row: the id, the words, the files of the engine, and the tests or the reason why there are none."""

    heading: str
    id: str
    text: str
    files: tuple[str, ...]
    tests: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Marked:
    """A test function and the clauses it is marked with."""

    path: str
    name: str
    ids: frozenset[str]


@cache
def clauses() -> tuple[Clause, ...]:
    """Every row of the page, in order."""
    found, heading = [], ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif row := ROW.match(line):
            tests = row["tests"]
            is_none = tests.startswith(NO_TEST)
            names = () if is_none else tuple(QUOTED.findall(tests))
            files = tuple(QUOTED.findall(row["files"]))
            found.append(Clause(heading, row["id"], row["text"], files, names, tests if is_none else ""))
    return tuple(found)


def rows_on_the_page() -> int:
    """How many table lines there are, headers and rulers left out."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    return sum(line.startswith("|") and not line.startswith(("| id ", "|---")) for line in lines)


@cache
def marked_tests() -> tuple[Marked, ...]:
    """Every test function of every test file with its clauses."""
    return tuple(
        Marked(path.relative_to(ROOT).as_posix(), node.name, frozenset(_ids_of(node)))
        for path in sorted(TESTS.rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    )


def _ids_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    for mark in function.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.clause":
            constants = (node.value for node in ast.walk(mark) if isinstance(node, ast.Constant))
            yield from (value for value in constants if isinstance(value, str))


def cited_in_engine() -> dict[str, set[str]]:
    """For each file of the engine the ids that its comments and strings name."""
    families = {clause.id.split(".")[0] for clause in clauses() if "." in clause.id}
    cited = re.compile(rf"(?<![\w./])(?:(?:{'|'.join(families)})\.[a-z]+(?:-[a-z]+)*|[PBCDAKSFX]\d)(?!\w)")
    return {
        path.relative_to(ENGINE).as_posix(): {found for text in _prose(path) for found in cited.findall(text)}
        for path in sorted(ENGINE.rglob("*.py"))
    }


def _prose(path: Path) -> Iterator[str]:
    source = path.read_text(encoding="utf-8")
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    yield from (token.string for token in tokens if token.type in (tokenize.COMMENT, tokenize.STRING))
