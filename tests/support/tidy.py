"""The house rules: who may import whom, how long things get, what the repository holds.

Each rule is a function that returns its offences, so that it can be shown to find one.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

STORE, FANOUT, SYSTEM, RPC, WEB = (f"service.{name}" for name in ("store", "fanout", "system", "rpc", "web"))
ADAPTERS = (STORE, FANOUT, SYSTEM, RPC, WEB)
BACKENDS = "service.backends"
WIRINGS = ("service.wiring", "service.tools", BACKENDS)
MAIN = "service.__main__"

PURE = frozenset(("__future__", "collections", "dataclasses", "enum", "functools", "itertools", "operator", "typing"))
CORE = (sys.stdlib_module_names - {"sqlite3"}) | {"engine", "prometheus_client", "service", "structlog"}
SETTINGS = CORE | {"pydantic", "pydantic_settings"}
WIRE = ("grpc", "grpc_health", "grpc_reflection", "grpc_status", "google", "spectacularbid.v1", "spectacularbid.admin")

FUNCTION_LINES = 40
MODULE_LINES = 350

NAMESPACES = {
    *("proto", "proto/spectacularbid", "helm", "tests"),
    *("clients", "clients/python", "clients/python/spectacularbid"),
}
TOP_LEVEL = {
    *("proto", "service", "engine", "clients", "tests", "helm", "docs", "bench"),
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"),
    *("pyproject.toml", "Makefile", "Dockerfile", "compose.yaml"),
}

# Written as patterns, so that this file does not hold what it forbids.
MACHINE_FOLDER = re.compile(r"(?<![\w.-])/(work|root|home)/")
REGISTRY_HOST = re.compile(
    r"(pypi|pythonhosted|npmjs|maven\.apache|deb\.debian)\.org|proxy\.golang\.org|(index|static)\.crates\.io|yarnpkg\.com"
)

Function = ast.FunctionDef | ast.AsyncFunctionDef
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One Python file: its path below the root of the repository, and its text."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=self.path)

    @cached_property
    def parts(self) -> list[str]:
        """The path, counted from the folder on the import path that holds it."""
        return self.path.removeprefix("proto/").removeprefix("clients/python/").removesuffix(".py").split("/")

    @cached_property
    def module(self) -> str:
        return ".".join(self.parts).removesuffix(".__init__")

    def is_in(self, *packages: str) -> bool:
        return within(self.module, *packages)

    def imports(self) -> Iterator[tuple[str, str]]:
        """Yields place and full dotted name of everything imported, at any depth of the file."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((f"{self.path}:{node.lineno}", alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                package = self.parts[: len(self.parts) - node.level] if node.level else []
                base = ".".join([*package, *filter(None, [node.module])])
                yield from ((f"{self.path}:{node.lineno}", f"{base}.{alias.name}") for alias in node.names)


Rule = Callable[[Iterable[Source]], list[str]]


def within(name: str, *packages: str) -> bool:
    """Says whether a dotted name is one of the packages or inside one."""
    return any(name == package or name.startswith(f"{package}.") for package in packages)


@cache
def sources(*folders: str) -> tuple[Source, ...]:
    """Reads the Python files below those of the folders that exist, but not generated ones."""
    paths = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return tuple(
        Source(path=path.relative_to(ROOT).as_posix(), text=path.read_text(encoding="utf-8"))
        for path in paths
        if "_pb2" not in path.name and "node_modules" not in path.parts
    )


@cache
def tracked() -> tuple[str, ...]:
    """Lists the files that git tracks."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return tuple(name for name in listing.split("\0") if name)


def imports_outside(allowed: Iterable[str], modules: Iterable[Source]) -> list[str]:
    """Finds the imports from other packages than the allowed ones."""
    return [
        f"{place} imports {name}"
        for module in modules
        for place, name in module.imports()
        if not within(name, *allowed)
    ]


def imports_of(forbidden: Iterable[str], modules: Iterable[Source]) -> list[str]:
    """Finds the imports of forbidden packages."""
    return [
        f"{place} imports {name}" for module in modules for place, name in module.imports() if within(name, *forbidden)
    ]


def impure_engine(modules: Iterable[Source]) -> list[str]:
    """Finds what the engine imports beyond itself and a few pure modules."""
    return imports_outside({*PURE, "engine"}, modules)


def impure_core(modules: Iterable[Source]) -> list[str]:
    """Finds what core service modules import beyond the standard library, the engine, each other, logs and metrics."""
    core = [module for module in modules if module.is_in("service") and not module.is_in(*ADAPTERS, *WIRINGS, MAIN)]
    settings = [module for module in core if module.is_in("service.settings")]
    others = [module for module in core if module not in settings]
    return imports_outside(SETTINGS, settings) + imports_outside(CORE, others)


def wire_outside_the_edges(modules: Iterable[Source]) -> list[str]:
    """Finds the imports of gRPC, protobuf and the stubs outside the edge packages."""
    return imports_of(WIRE, [module for module in modules if not module.is_in(RPC, WEB)])


def nosy_adapters(modules: Iterable[Source]) -> list[str]:
    """Finds what store, fanout and system import of the service beyond the ports, `Secret` and themselves."""
    return [
        f"{place} imports {name}"
        for package in (STORE, FANOUT, SYSTEM)
        for module in modules
        if module.is_in(package)
        for place, name in module.imports()
        if within(name, "service") and not within(name, "service.ports", "service.secret", package)
    ]


def adapters_named_outside_the_wiring(modules: Iterable[Source]) -> list[str]:
    """Finds the imports of adapters from elsewhere than the wiring; the web edge may serve the handlers of rpc."""
    guests = {RPC: (RPC, WEB, *WIRINGS)}
    return [
        offence
        for package in ADAPTERS
        for module in modules
        if not module.is_in(*guests.get(package, (package, *WIRINGS)))
        for offence in imports_of({package}, [module])
    ]


def wiring_named_outside_main(modules: Iterable[Source]) -> list[str]:
    """Finds the imports of the wiring from elsewhere than the entry point, save of a part by the whole."""
    behind = imports_of({BACKENDS}, [module for module in modules if not module.is_in(MAIN, "service.wiring")])
    others = set(WIRINGS) - {BACKENDS}
    return behind + imports_of(others, [module for module in modules if not module.is_in(MAIN)])


def clients_that_know_the_service(modules: Iterable[Source]) -> list[str]:
    """Finds what clients import of the engine or the service."""
    return imports_of({"engine", "service"}, modules)


def inexact_numbers(modules: Iterable[Source]) -> list[str]:
    """Finds float and complex literals, uses of those types, and true divisions."""
    return [
        f"{module.path}:{node.lineno} {ast.unparse(node)}"
        for module in modules
        for node in ast.walk(module.tree)
        if (isinstance(node, ast.Constant) and isinstance(node.value, float | complex))
        or (isinstance(node, ast.Name) and node.id in {"float", "complex"})
        or (isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div))
    ]


def overlong(modules: Iterable[Source]) -> list[str]:
    """Finds the functions and modules with too many lines."""
    lengths = [(module.path, len(module.text.splitlines()), MODULE_LINES) for module in modules] + [
        (f"{module.path}:{node.lineno} {node.name}", (node.end_lineno or 0) - node.lineno + 1, FUNCTION_LINES)
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, Function)
    ]
    return [f"{place} has {lines} lines" for place, lines, limit in lengths if lines > limit]


def undocumented(modules: Iterable[Source]) -> list[str]:
    """Finds the public modules, classes and functions without a docstring; an empty file needs none."""
    return [
        f"{module.path}:{getattr(node, 'lineno', 1)} {getattr(node, 'name', 'module')} has no docstring"
        for module in modules
        if module.text.strip()
        for node in public(module.tree)
        if ast.get_docstring(node) is None
    ]


def public(scope: Documented) -> Iterator[Documented]:
    """Yields the scope and the public classes, functions and methods in it; an override inherits its contract."""
    yield scope
    for node in [] if isinstance(scope, Function) else scope.body:
        if isinstance(node, ast.ClassDef | Function) and not node.name.startswith("_"):
            marks = {ast.unparse(decorator).split(".")[-1] for decorator in node.decorator_list}
            if not marks & {"overload", "override", "setter"}:
                yield from public(node)


def closed_namespaces(paths: Iterable[str]) -> list[str]:
    """Finds the `__init__.py` that would turn a shared namespace into one package."""
    return sorted({f"{folder}/__init__.py" for folder in NAMESPACES} & set(paths))


def strange_top_level(paths: Iterable[str]) -> list[str]:
    """Finds top-level names that nobody decided on; names with a dot in front belong to tools."""
    names = {path.split("/")[0] for path in paths}
    return sorted(name for name in names - TOP_LEVEL if not name.startswith("."))


def local_traces(path: str, text: str) -> list[str]:
    """Finds paths of one machine and hosts of package registries in a file."""
    return [
        f"{path}:{number} {found[0]}"
        for number, line in enumerate(text.splitlines(), start=1)
        for found in (MACHINE_FOLDER.search(line), REGISTRY_HOST.search(line))
        if found
    ]


def unlocked(dependencies: Iterable[str], lock: str) -> list[str]:
    """Finds the dependencies that a lock does not pin."""
    pinned = {line.split("==")[0] for line in lock.splitlines() if "==" in line}
    names = [re.split(r"[^\w.-]", dependency, maxsplit=1)[0] for dependency in dependencies]
    return [name for name in names if name not in pinned]
