"""Write the dashboards' JSON into the chart, or with --check say which files are out of date."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from helm.dashboards.grafana import Board
from helm.dashboards.on_call import ON_CALL
from helm.dashboards.service import SERVICE

BOARDS = (SERVICE, ON_CALL)
FOLDER = Path(__file__).resolve().parent.parent / "spectacular-bid" / "files" / "dashboards"


def text_of(board: Board) -> str:
    """The content of the board's file."""
    return json.dumps(board.to_json(), indent=2, ensure_ascii=False) + "\n"


def outdated() -> list[str]:
    """The files that are missing, too many, or not what the code says."""
    texts = {f"{board.uid}.json": text_of(board) for board in BOARDS}
    here = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    return sorted(name for name in texts.keys() | here.keys() if texts.get(name) != here.get(name))


def main() -> int:
    """Write, or check; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m helm.dashboards", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 when something differs")
    if parser.parse_args().check:
        for name in outdated():
            print(f"{name} is out of date: make dashboards", file=sys.stderr)
        return 1 if outdated() else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for board in BOARDS:
        (FOLDER / f"{board.uid}.json").write_text(text_of(board), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
