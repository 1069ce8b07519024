"""Generates the Python code of the protos, in place beside them.

`generate.py` writes it; `generate.py --check` changes nothing and fails when what is there differs.
buf cannot drive the grpc plugin for Python, so protoc does.
"""

import argparse
import subprocess
import sys
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory

PROTO_ROOT = Path(__file__).resolve().parent
PACKAGE = "spectacularbid"
STUB_PLUGINS = ("protoc-gen-mypy", "protoc-gen-mypy_grpc")


def main() -> int:
    """Returns 0, or 1 when `--check` finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 on a difference")
    parser.add_argument("--root", type=Path, default=PROTO_ROOT, help="the folder that holds the packages")
    options = parser.parse_args()
    with TemporaryDirectory() as scratch:
        wanted = generate(options.root, Path(scratch))
    found = {path.relative_to(options.root).as_posix(): path.read_bytes() for path in generated_in(options.root)}
    if options.check:
        return report_drift(wanted=wanted, found=found)
    write(options.root, wanted=wanted, stale=found.keys() - wanted.keys())
    return 0


def generate(root: Path, out: Path) -> dict[str, bytes]:
    """Runs protoc over every proto under `root`; returns what it wrote to `out`, by path relative to `root`."""
    protos = sorted(path.relative_to(root).as_posix() for path in (root / PACKAGE).rglob("*.proto"))
    if not protos:
        return {}
    with_services = [name for name in protos if has_service(root / name)]
    run_protoc(root, [f"--python_out={out}", f"--mypy_out=quiet:{out}", *protos])
    if with_services:
        run_protoc(root, [f"--grpc_python_out={out}", f"--mypy_grpc_out=quiet:{out}", *with_services])
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in generated_in(out)}


def has_service(proto: Path) -> bool:
    """Says whether a proto declares a service; the others need no grpc module."""
    return any(line.startswith("service ") for line in proto.read_text(encoding="utf-8").splitlines())


def run_protoc(root: Path, arguments: list[str]) -> None:
    """Runs protoc with the plugins of this very environment; exits with protoc's status when it fails."""
    scripts = Path(sys.executable).parent
    plugins = [f"--plugin={name}={scripts / name}" for name in STUB_PLUGINS]
    with as_file(files("grpc_tools") / "_proto") as well_known:
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{root}", f"-I{well_known}", *plugins, *arguments]
        result = subprocess.run(command, check=False)
    if result.returncode:
        sys.exit(result.returncode)


def generated_in(folder: Path) -> list[Path]:
    """Lists the generated files under `folder`."""
    return sorted(path for path in folder.rglob("*_pb2*") if path.suffix in {".py", ".pyi"})


def report_drift(*, wanted: dict[str, bytes], found: dict[str, bytes]) -> int:
    """Prints each file that differs; returns 1 when there is one, else 0."""
    drifted = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    for name in drifted:
        state = "missing" if name not in found else "without a proto" if name not in wanted else "out of date"
        print(f"proto/{name}: {state}; run `make proto`", file=sys.stderr)
    return int(bool(drifted))


def write(root: Path, *, wanted: dict[str, bytes], stale: set[str]) -> None:
    """Writes the wanted files under `root` and removes the stale ones."""
    for name, content in wanted.items():
        (root / name).write_bytes(content)
    for name in stale:
        (root / name).unlink()


if __name__ == "__main__":
    sys.exit(main())
