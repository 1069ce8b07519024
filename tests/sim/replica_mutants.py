"""Rules of many replicas taken away one at a time; and all mutants there are."""

from __future__ import annotations

from tests.sim.mutants import ALONE, CORE, MATCH, WATERMARK, WRITER, Change, Mutant
from tests.sim.tail_mutants import LOST_TAILS

LOOKOUT, STORE_TIME = "service/lookout.py", "service/system/store_time.py"
STATEMENTS, REPLICAS = "service/store/postgres_append_sql.py", "service/store/postgres_replicas.py"


def _mutant(name: str, path: str, old: str, new: str) -> Mutant:
    return Mutant(name, (Change(path, old, new),), among_replicas=True)


WAITING = (
    _mutant(
        "only this replica's watermark counts",
        WATERMARK,
        "min((peer.heartbeat.closed_ns for peer in self._peers), default=self._arrived_ns)",
        "self._arrived_ns",
    ),
    _mutant(
        "heartbeat says what has arrived, not what is handled",
        WATERMARK,
        "handled_ns = min(arrived_ns, self.in_flight.oldest_ns() or arrived_ns)",
        "handled_ns = arrived_ns",
    ),
    _mutant(
        "whoever waits for others does not look at its own line",
        MATCH,
        "await self._services.watermark.approach(due_ns)",
        "await self._services.watermark.reach(due_ns)",
    ),
    _mutant("faults found elsewhere not learned", WATERMARK, "        self._ledger.learn(others.faults)\n", ""),
    _mutant(
        "strangers in a match that was not read yet do not hold an expiry up",
        WRITER,
        "            self._services.watermark.in_flight.add(self._unproven)\n",
        "",
    ),
    _mutant(
        "strangers in a match that was not read yet not blamed",
        WRITER,
        "            self._blame_undecided(self._unproven.stamp_ns)\n",
        "",
    ),
)

LATE_TURNS = (
    _mutant(
        "turns that are found stored late not recorded",
        WRITER,
        "            self._late_turns.found(first, began_ns)\n",
        "            pass\n",
    ),
    _mutant(
        "a lock that was waited for proves nothing",
        "service/store/postgres_append.py",
        "                reason.unmoved_at = job.locked_at\n",
        "                pass\n",
    ),
    _mutant(
        "a turn that is not there yet is not late",
        "service/late_turns.py",
        "if self._judge(self._handed_in, asked_ns):",
        "if False:",
    ),
)

FENCING = (
    _mutant(
        "a lost replica is not fenced",
        WATERMARK,
        "            await self._store.fence(peer)\n",
        "            pass\n",
    ),
    _mutant(
        "a lost replica is no fault",
        WATERMARK,
        'self._record(FaultCause.REPLICA_LOST, closed_ns, now_ns, "the service stopped without notice")',
        "pass",
    ),
    _mutant(
        "a lost replica counts no more although it is not fenced",
        WATERMARK,
        "        await self._fence(others.peers)\n        self._peers = others.peers\n",
        "        self._peers = tuple(peer for peer in others.peers if peer.unseen_ns < LOST_NS // 6)\n",
    ),
    _mutant(
        "a fenced replica moves matches",
        STATEMENTS,
        """_MINE: Final = "EXISTS (SELECT FROM replicas WHERE replica_id = $1 AND epoch = $2 AND state IN""",
        """_MINE: Final = "EXISTS (SELECT FROM replicas WHERE replica_id = $1 OR epoch = $2 OR state IN""",
    ),
    _mutant(
        "a replica that was seen meanwhile is fenced",
        REPLICAS,
        "    AND seen_at < clock_timestamp() - interval '{FENCE_AFTER_SECONDS} s'\n",
        "",
    ),
)

NEWS = (
    _mutant(
        "orphaned deadlines not looked for",
        LOOKOUT,
        "            self._matches.get(match_id).look_again()\n",
        "            pass\n",
    ),
    _mutant("lost news not looked for", LOOKOUT, "                await self._look_for_versions()\n", ""),
    _mutant(
        "whoever looks while another looks sees what was",
        WRITER,
        "        state, doubts, turn = self._state, self._doubts, self._services.turns.turn\n",
        "        state, turn = self._state, self._services.turns.turn\n"
        "        doubts = self._settled_doubts = self._doubts\n",
    ),
    _mutant(
        "a viewer who has seen more elsewhere is sent away",
        MATCH,
        "            self._writer.forget(older_than=after_version)  # the viewer may have seen more elsewhere\n",
        "            pass\n",
    ),
    _mutant(
        "a repeat elsewhere shows the match of before",
        WRITER,
        "        self.forget(older_than=record.version)  # another process may have carried it out\n",
        "",
    ),
    _mutant(
        "a match that nobody watches is not looked up",
        MATCH,
        "        if self._services.bus.poll_seconds is not None:\n            self._writer.forget()\n",
        "        pass\n",
    ),
)

WRITES = (
    Mutant(
        "no dedupe of command ids across replicas",
        (
            Change(
                WRITER,
                "                return await self._repeated(order)",
                "                order = order._replace(command_id=order.command_id[::-1])",
            ),
        ),
        among_replicas=True,
    ),
    _mutant(
        "a conflict is taken for an effect",
        WRITER,
        "                self.forget()  # decide again on the newer state, with the same stamp",
        "                return Done(await self.state(), None)",
    ),
    _mutant(
        "a snapshot of the version before",
        WRITER,
        "snapshot=self._past.snapshot(step, after),",
        "snapshot=self._past.snapshot(step, after) and state,",
    ),
)

STOPS = (
    _mutant("retirement not told", CORE, "        await self._watermark.retire()\n", ""),
    _mutant("leaving not told", CORE, "        await self._leave()\n", ""),
    _mutant(
        "door closed at once although others stay",
        CORE,
        "        await self._wait(drain_seconds)\n",
        "        await self._wait(0.0 if self._watermark.staying else drain_seconds)\n",
    ),
    _mutant(
        "a replica that is leaving resumes clocks",
        LOOKOUT,
        "        if self._watermark.is_leaving:\n            return",
        "        if False:\n            return",
    ),
    _mutant(
        "a stream that is sent away does not listen on",
        "service/rpc/streams.py",
        "            await self._listen_on(watch, outbox)\n",
        "            pass\n",
    ),
    _mutant("what the last one suspended not resumed", LOOKOUT, "            await self._matches.resume()\n", ""),
    _mutant(
        "clocks suspended although others stay",
        CORE,
        "return 0 if self._watermark.staying else await self.matches.suspend()",
        "return await self.matches.suspend()",
    ),
)

CLOCKS = (
    _mutant("a clock that is ahead is sure", STORE_TIME, " + max(0, ahead_ns)", ""),
    _mutant("the way of an answer is no error", STORE_TIME, "rtt_ns // 2 + LEAST_ERROR_NS", "LEAST_ERROR_NS"),
    _mutant("stamps without the clock's error", "service/timing_guard.py", "now_ns + error_ns)", "now_ns)"),
)

AMONG_REPLICAS = (*WAITING, *LATE_TURNS, *FENCING, *NEWS, *WRITES, *STOPS, *CLOCKS, *LOST_TAILS)
"""What only several replicas can show."""
MUTANTS = (*ALONE, *AMONG_REPLICAS)
