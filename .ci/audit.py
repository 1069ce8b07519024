"""Whether what is pinned is still good: known vulnerabilities, locks that fit pyproject.toml, pins that are behind.

Exit status 0 when nothing is wrong, 1 when something is, 3 when nobody could be asked about vulnerabilities. A pin that
is merely behind is named and is no failure: the day on which to move is the maintainers' choice.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / ".locks"
SERVICES = ("pypi", "osv")
"""Who knows of vulnerabilities; the second is asked when the first one cannot say."""
GOOD, WRONG, UNKNOWN = 0, 1, 3
_PIN = re.compile(r"^([a-z0-9.-]+)==(\S+)", re.MULTILINE)


def judged(report: dict[str, Any] | None) -> tuple[int, list[str]]:
    """The status and the lines for a report of pip-audit as JSON; None when it had none to give."""
    packages = (report or {}).get("dependencies", [])
    found = [
        f"{package['name']} {package['version']}: {problem['id']}, mended in {problem['fix_versions'] or 'no version'}"
        for package in packages
        for problem in package.get("vulns", [])
    ]
    if found:
        return WRONG, found
    skipped = sum("skip_reason" in package for package in packages)
    if not packages or skipped:
        return UNKNOWN, [f"nothing is known of {skipped or 'all'} packages"]
    return GOOD, [f"no known vulnerability in {len(packages)} packages"]


def pins(folder: Path) -> dict[str, str]:
    """Every pinned package of the locks in a folder with its version."""
    return dict(pin for lock in sorted(folder.glob("*.txt")) for pin in _PIN.findall(lock.read_text()))


def behind(ours: dict[str, str], newest: dict[str, str]) -> list[str]:
    """The pins that a fresh resolution would move."""
    return [
        f"{name} {version} -> {newest[name]}" for name, version in ours.items() if newest.get(name, version) != version
    ]


def _vulnerabilities(lock: Path) -> tuple[int, list[str]]:
    status, lines = UNKNOWN, [""]
    for service in SERVICES:
        command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", "--progress-spinner", "off"]
        options = ["--format", "json", "--vulnerability-service", service, "--requirement", str(lock)]
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
        status, lines = judged(json.loads(done.stdout) if done.stdout.startswith("{") else None)
        if status != UNKNOWN:
            break
    asked = service if status != UNKNOWN else "neither " + " nor ".join(SERVICES) + " can say"
    return status, [f"{lock.name} ({asked}): {line}" for line in lines]


def _pins_now() -> tuple[int, list[str]]:
    """Whether the locks are what pyproject.toml makes of them, and what a fresh resolution would move."""
    with TemporaryDirectory() as kept, TemporaryDirectory() as fresh:
        shutil.copytree(LOCKS, kept, dirs_exist_ok=True)
        for folder in (kept, fresh):
            command = ["make", "--no-print-directory", "lock", f"LOCKS={folder}"]
            if subprocess.run(command, cwd=ROOT, check=False).returncode:
                return UNKNOWN, ["the locks could not be resolved anew"]
        moved = [f"behind: {line}" for line in behind(pins(LOCKS), pins(Path(fresh)))] or ["no pin is behind"]
        if any((Path(kept) / lock.name).read_bytes() != lock.read_bytes() for lock in LOCKS.glob("*.txt")):
            return WRONG, ["the locks do not fit pyproject.toml: run make lock", *moved]
        return GOOD, moved


def main() -> int:
    """Look at everything, print what was found, and say how it stands."""
    results = [*(_vulnerabilities(lock) for lock in sorted(LOCKS.glob("*.txt"))), _pins_now()]
    print("\n".join(line for _, lines in results for line in lines))
    statuses = {status for status, _ in results}
    return WRONG if WRONG in statuses else max(statuses)


if __name__ == "__main__":
    sys.exit(main())
