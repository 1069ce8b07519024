"""Rules for a database that lost what it had acknowledged, taken away one at a time."""

from __future__ import annotations

from tests.sim.mutants import MATCH, WATERMARK, Change, Mutant

LINEAGE, LINK = "service/store/postgres_lineage.py", "service/store/postgres_link.py"
TAILS, LEDGER = "service/tails.py", "service/ledger.py"


def _mutant(name: str, *changes: Change) -> Mutant:
    return Mutant(name, changes, among_replicas=True)


LOST_TAILS = (
    _mutant(
        "a server that was started anew is believed",
        Change(LINEAGE, "if is_lost or before not in (None, self._server):", "if False:"),
    ),
    _mutant(
        "nothing waits until a server was compared",
        Change(LINK, "                    await self._server.trusted(self._patience_seconds)\n", ""),
    ),
    _mutant(
        "lost commits not recorded",
        Change(TAILS, "self._ledger.record(Fault(FaultCause.COMMITS_LOST,", "(Fault(FaultCause.COMMITS_LOST,"),
    ),
    _mutant("lost versions stay known", Change(TAILS, "            match.start_over()\n", "            pass\n")),
    _mutant(
        "streams go on behind lost versions",
        Change(MATCH, "            watch.end(VersionsLostError())\n", "            pass\n"),
    ),
    _mutant(
        "lost commits take nobody's time",
        Change("engine/faults.py", "FaultCause.PUBLISH_STALL, FaultCause.COMMITS_LOST})", "FaultCause.PUBLISH_STALL})"),
    ),
    _mutant(
        "what others had closed counts also when it is lost",
        Change(WATERMARK, "self._closed_ns = 0  # what others had closed may be open again", "pass"),
    ),
    _mutant(
        "rows of the ledger that are lost not stored again",
        Change(LEDGER, "deque(row for row in self._own if row not in stored)", "deque()"),
    ),
    _mutant("a match that is ahead is no proof", Change(TAILS, "if kept.get(match.match_id) != step]", "if False]")),
)
