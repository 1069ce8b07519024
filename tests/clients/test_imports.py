"""What the client may need."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import spectacularbid.client

FOLDER = Path(spectacularbid.client.__file__).parent
ALLOWED = sys.stdlib_module_names | {"google", "grpc"}


def imported(path: Path) -> set[str]:
    """The dotted names of all modules that a file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names.add(node.module or "")
    return names


def test_the_client_needs_grpc_protobuf_and_the_stubs_only() -> None:
    """No rules code, no service, nothing else to install."""
    strange = {
        f"{path.name}: {name}"
        for path in FOLDER.rglob("*.py")
        for name in imported(path)
        if name.split(".")[0] not in ALLOWED and not name.startswith(("spectacularbid.client", "spectacularbid.v1"))
    }
    assert strange == set()


def test_the_namespace_stays_open() -> None:
    """`spectacularbid` belongs to the stubs as well."""
    assert not (FOLDER.parent / "__init__.py").exists()
