"""The house rules of tests/support/tidy.py, applied to this repository, and each shown to find an offence."""

import tomllib
from itertools import chain

import pytest

from tests.support.tidy import (
    FUNCTION_LINES,
    MODULE_LINES,
    ROOT,
    Rule,
    Source,
    adapters_named_outside_the_wiring,
    clients_that_know_the_service,
    closed_namespaces,
    impure_core,
    impure_engine,
    inexact_numbers,
    local_traces,
    nosy_adapters,
    overlong,
    sources,
    strange_top_level,
    tracked,
    undocumented,
    unlocked,
    wire_outside_the_edges,
    wiring_named_outside_main,
)


def test_the_engine_imports_only_itself_and_a_few_pure_modules() -> None:
    assert impure_engine(sources("engine")) == []


def test_the_engine_has_no_floats_and_no_true_division() -> None:
    assert inexact_numbers(sources("engine")) == []


def test_core_service_modules_import_no_grpc_and_no_driver() -> None:
    assert impure_core(sources("service")) == []


def test_only_the_edges_see_grpc_and_the_stubs() -> None:
    assert wire_outside_the_edges(sources("engine", "service")) == []


def test_adapters_import_the_ports_and_never_each_other() -> None:
    assert nosy_adapters(sources("service")) == []


def test_only_the_wiring_names_adapters() -> None:
    assert adapters_named_outside_the_wiring(sources("engine", "service", "clients")) == []


def test_only_the_entry_point_imports_the_wiring() -> None:
    assert wiring_named_outside_main(sources("engine", "service", "clients", "bench")) == []


def test_clients_import_neither_engine_nor_service() -> None:
    assert clients_that_know_the_service(sources("clients")) == []


def test_functions_and_modules_stay_short() -> None:
    assert overlong(sources("engine", "service", "clients/python")) == []


def test_everything_public_has_a_docstring() -> None:
    assert undocumented(sources("engine", "service", "clients/python")) == []


def test_shared_namespaces_stay_open() -> None:
    assert closed_namespaces(source.path for source in sources("proto", "clients", "helm", "tests")) == []


def test_the_top_level_holds_only_what_was_decided() -> None:
    assert strange_top_level(tracked()) == []


def test_no_tracked_text_names_a_machine_path_or_a_package_registry() -> None:
    contents = [(path, (ROOT / path).read_bytes()) for path in tracked() if (ROOT / path).is_file()]
    texts = [(path, content.decode(errors="replace")) for path, content in contents if b"\0" not in content]
    assert [trace for path, text in texts for trace in local_traces(path, text)] == []


def test_the_locks_pin_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    runtime = project["project"]["dependencies"]
    groups = {
        name: [entry for entry in group if isinstance(entry, str)]
        for name, group in project["dependency-groups"].items()
    }
    locks = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / ".locks").glob("*.txt")}
    apart = {name: groups.pop(name) for name in ("ops", "helm", "services")}
    assert unlocked(runtime, locks["run"]) == []
    assert unlocked([*runtime, *chain(*groups.values()), *project["build-system"]["requires"]], locks["dev"]) == []
    assert unlocked([*runtime, *groups["test"], *apart["ops"]], locks["ops"]) == []
    assert unlocked(apart["helm"], locks["helm"]) == []
    assert unlocked(apart["services"], locks["services"]) == []


BAD = [
    (impure_engine, "engine/bad.py", "import time"),
    (impure_engine, "engine/bad.py", "def f():\n    from random import choice"),
    (impure_engine, "engine/bad.py", "from service.ports import Clock"),
    (inexact_numbers, "engine/bad.py", "half = 0.5"),
    (inexact_numbers, "engine/bad.py", "def f(a, b): return a / b"),
    (inexact_numbers, "engine/bad.py", "def f(a): a /= 2"),
    (inexact_numbers, "engine/bad.py", "def f(a: float): pass"),
    (impure_core, "service/bad.py", "import grpc.aio"),
    (impure_core, "service/bad.py", "from spectacularbid.v1 import match_pb2"),
    (impure_core, "service/bad.py", "import sqlite3"),
    (impure_core, "service/bad.py", "import pydantic"),
    (wire_outside_the_edges, "service/wiring.py", "from google.protobuf import any_pb2"),
    (wire_outside_the_edges, "service/__main__.py", "from spectacularbid.v1 import match_pb2"),
    (nosy_adapters, "service/store/bad.py", "from service.fanout import local"),
    (nosy_adapters, "service/store/bad.py", "from ..system import time"),
    (nosy_adapters, "service/fanout/bad.py", "from service.matches import Matches"),
    (adapters_named_outside_the_wiring, "service/matches.py", "from service import store"),
    (adapters_named_outside_the_wiring, "service/matches.py", "from .rpc.codec import command"),
    (adapters_named_outside_the_wiring, "service/rpc/bad.py", "from service.web import page"),
    (wiring_named_outside_main, "service/matches.py", "from service import wiring"),
    (wiring_named_outside_main, "service/admin.py", "from service import tools"),
    (wiring_named_outside_main, "service/tools.py", "from service.backends import migrate"),
    (clients_that_know_the_service, "clients/python/spectacularbid/client/bad.py", "import engine.tiles"),
    (overlong, "engine/bad.py", "def f():\n" + "    pass\n" * FUNCTION_LINES),
    (overlong, "engine/bad.py", "\n" * (MODULE_LINES + 1)),
    (undocumented, "engine/bad.py", "x = 1"),
    (undocumented, "engine/bad.py", '"""Says."""\nclass A:\n    """Says."""\n    def f(self): pass'),
]

GOOD = [
    (impure_engine, "engine/good.py", "from collections.abc import Iterable\nfrom engine.tiles import Tile"),
    (impure_engine, "engine/good.py", "from . import tiles\nfrom .tiles import Tile"),
    (inexact_numbers, "engine/good.py", "def f(a: int) -> int: return a // 2 + 5"),
    (impure_core, "service/good.py", "import asyncio\nimport structlog\nfrom . import ports"),
    (impure_core, "service/settings.py", "from pydantic_settings import BaseSettings"),
    (wire_outside_the_edges, "service/rpc/good.py", "import grpc.aio"),
    (
        nosy_adapters,
        "service/store/good.py",
        "import sqlite3\nfrom service.ports import Store\nfrom . import event_json",
    ),
    (adapters_named_outside_the_wiring, "service/wiring.py", "from service.store.sqlite import Store"),
    (adapters_named_outside_the_wiring, "service/web/good.py", "from service.rpc import codec"),
    (wiring_named_outside_main, "service/__main__.py", "from service.wiring import serve"),
    (wiring_named_outside_main, "service/wiring.py", "from service.backends import on_sqlite"),
    (clients_that_know_the_service, "clients/python/spectacularbid/client/good.py", "from . import sync"),
    (overlong, "engine/good.py", "def f():\n" + "    pass\n" * (FUNCTION_LINES - 1)),
    (undocumented, "engine/good.py", '"""Says."""\nclass _A:\n    def f(self): pass'),
    (undocumented, "engine/__init__.py", ""),
]


@pytest.mark.parametrize(("rule", "path", "text"), BAD)
def test_each_rule_finds_an_offence(rule: Rule, path: str, text: str) -> None:
    assert rule([Source(path=path, text=text)]) != []


@pytest.mark.parametrize(("rule", "path", "text"), GOOD)
def test_each_rule_lets_good_code_pass(rule: Rule, path: str, text: str) -> None:
    assert rule([Source(path=path, text=text)]) == []


def test_the_rules_on_files_find_an_offence() -> None:
    assert closed_namespaces(["proto/__init__.py", "proto/other/__init__.py"]) == ["proto/__init__.py"]
    assert strange_top_level(["tools/x.py", ".ci/run", "engine/tiles.py"]) == ["tools"]
    assert local_traces("a.md", "fine\nsee /" + "home/me/x") == ["a.md:2 /" + "home/"]
    assert local_traces("a.md", "https://files.pythonhosted" + ".org/x") == ["a.md:1 pythonhosted" + ".org"]
    assert local_traces("a.md", "https://example.com/" + "work/x and frame/" + "work/") == []
    assert unlocked(["grpcio==1", "h2>=4; python_version > '3'"], "grpcio==1 \\\n    --hash=sha256:0") == ["h2"]
