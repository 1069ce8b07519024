"""The results of trials as a table in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.chaos.history import MACHINE
from tests.chaos.trial import Report

HEADINGS = (
    "scenario",
    "times",
    "matches",
    "on time",
    "no result",
    "commands",
    "answers",
    "repeats",
    "failed calls",
    "updates",
    "rows of the ledger",
    "violations",
)


def table(reports: Iterable[Report]) -> str:
    """A row for each trial."""
    rows = [HEADINGS, *(_cells(report) for report in reports)]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|---" * len(HEADINGS) + "|", *lines[1:]]) + "\n"


def _cells(report: Report) -> Sequence[str]:
    history, endings = report.history, report.endings
    ledger = ", ".join(f"{count} {cause}" for cause, count in sorted(report.ledger.items()))
    figures = (
        sum(one.kind != MACHINE for one in history.injected),
        endings.total(),
        endings["time"],
        endings["no result"],
        len({(sent.match_id, sent.command_id) for sent in history.sent}),
        len(history.answered),
        sum(answer.outcome.repeated for answer in history.answered),
        sum(history.failures.values()),
        len(history.seen),
    )
    return (report.scenario.name, *(f"{figure:,}" for figure in figures), ledger or "none", str(len(report.violations)))
