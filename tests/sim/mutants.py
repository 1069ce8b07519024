"""Rules of the protocol taken away one at a time: the simulator must notice each.

A mutant is a few replacements of text, each of which must match exactly once, so that it does not rot unnoticed.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Change:
    """One replacement in one file."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """A rule taken away."""

    name: str
    changes: tuple[Change, ...]
    among_replicas: bool = False
    """Whether it is hunted among several replicas, and only there."""


def _mutant(name: str, path: str, old: str, new: str) -> Mutant:
    return Mutant(name, (Change(path, old, new),))


WRITER, MATCH, LINE, MATCHES = "service/writer.py", "service/match.py", "service/line.py", "service/matches.py"
WATERMARK, GUARD, LEDGER, CORE = (
    "service/watermark.py",
    "service/timing_guard.py",
    "service/ledger.py",
    "service/core.py",
)
WITNESS = "service/rpc/witness.py"
TIMING, DECIDE, FAULTS, CLOCK = (
    "engine/decide/timing.py",
    "engine/decide/__init__.py",
    "engine/faults.py",
    "engine/clock.py",
)

STAMPS = (
    _mutant(
        "point stamps",
        GUARD,
        "return Arrival(vouched_ns - SLACK_NS, now_ns + error_ns)",
        "return Arrival.at(now_ns)",
    ),
    _mutant(
        "no stall memory",
        GUARD,
        "vouched_ns = self._stalled_since_ns if remembers_stall else self._vouched_ns",
        "vouched_ns = self._vouched_ns",
    ),
    _mutant(
        "stall memory runs out while the loop stands",
        GUARD,
        "            self._stall_forgotten_ns += max(0, passed_ns - TICK_NS)\n",
        "            pass\n",
    ),
    _mutant("no slack", GUARD, "Arrival(vouched_ns - SLACK_NS,", "Arrival(vouched_ns,"),
    _mutant(
        "unprovable stamps accepted",
        CLOCK,
        "return Verdict.IN_TIME_BY_DOUBT if narrow else Verdict.UNPROVABLE",
        "return Verdict.IN_TIME_BY_DOUBT",
    ),
    _mutant(
        "late command accepted when the timer has not fired",
        DECIDE,
        "if timing.is_after_deadline(state, request.arrival):",
        "if False:",
    ),
    _mutant(
        "bank charged from the latest bound",
        TIMING,
        "return ev.ClockStopped(decision.seat, decision.bank_used_ns(arrival.earliest_ns))",
        "return ev.ClockStopped(decision.seat, decision.bank_used_ns(arrival.latest_ns))",
    ),
    _mutant(
        "decision begins at the arrival",
        "engine/decide/playing.py",
        "return stopped, played, timing.next_decision(state, seat.other, now_ns)",
        "return stopped, played, timing.next_decision(state, seat.other, request.arrival.earliest_ns)",
    ),
    _mutant(
        "loss recorded at its settlement",
        TIMING,
        "ev.MatchWon(decision.seat.other, ev.WinReason.TIME, decision.deadline_ns)",
        "ev.MatchWon(decision.seat.other, ev.WinReason.TIME, now_ns)",
    ),
    _mutant(
        "first stamp of a command that could not be stored forgotten",
        WRITER,
        "arrival = self._owed.first(order)",
        "arrival = order.arrival",
    ),
)

ORDER = (
    _mutant(
        "expiry without waiting for the watermark",
        WATERMARK,
        "return self._closed_ns\n",
        "return self._clock.now_ns()\n",
    ),
    _mutant("line ordered by entry", LINE, "    stamp_ns: int\n", "    stamp_ns: int = field(compare=False)\n"),
    _mutant(
        "unfilled earlier tickets ignored",
        LINE,
        "return self._tickets[0] if self._tickets else None",
        "return min((one for one in self._tickets if one.order and not one.withdrawn), default=None)",
    ),
    _mutant(
        "strangers hold up an expiry",
        MATCH,
        "is_players = ticket is not None and isinstance(ticket.order, PlayerOrder)",
        "is_players = ticket is not None",
    ),
    _mutant(
        "heartbeat ignores commands in flight",
        WATERMARK,
        "handled_ns = min(arrived_ns, self.in_flight.oldest_ns() or arrived_ns)",
        "handled_ns = arrived_ns",
    ),
    _mutant(
        "watermark sleeps on what a stall vouched for",
        WATERMARK,
        "await asyncio.sleep(min(ahead_ns / 1e9, BEAT_SECONDS))",
        "await asyncio.sleep(ahead_ns / 1e9)",
    ),
    _mutant(
        "timer trusts the loop's clock",
        "service/deadlines.py",
        "min(max(0, self._timer_due_ns - self._clock.now_ns()), LONGEST_NAP_NS)",
        "max(0, self._timer_due_ns - self._clock.now_ns())",
    ),
    _mutant(
        "deadlines not armed at start",
        MATCHES,
        "self._services.deadlines.arm(match.match_id, match.due_ns)",
        "pass",
    ),
)

WRITES = (
    Mutant(
        "no dedupe of command ids",
        (
            Change(
                WRITER,
                "                return await self._repeated(order)",
                "                order = order._replace(command_id=order.command_id[::-1])",
            ),
        ),
    ),
    Mutant(
        "version conflict ignored",
        (
            Change(
                MATCH,
                "            self._writer.forget()  # the outcome of the write is unknown; the store knows\n",
                "",
            ),
            Change(
                WRITER,
                "                self.forget()  # decide again on the newer state, with the same stamp",
                "                return Done(await self.state(), None)",
            ),
        ),
    ),
    _mutant(
        "cached state kept after a failed write",
        MATCH,
        "            self._writer.forget()  # the outcome of the write is unknown; the store knows\n",
        "",
    ),
    _mutant(
        "answer before commit",
        WRITER,
        "await self._services.store.append(",
        "(lambda change: self._services.spawn(self._services.store.append(change)))(",
    ),
    _mutant(
        "turn not published when the store's answer was lost",
        MATCH,
        "        self._publish(state)  # what is there after a write whose answer was lost may be\n",
        "",
    ),
    _mutant(
        "a step that is in the snapshot folded again",
        "service/past.py",
        "                if version > begins:\n",
        "                if version >= begins:\n",
    ),
)

FAULT_LEDGER = (
    _mutant(
        "ledger ignored at expiry",
        TIMING,
        "    for fault in evidence.faults:\n        if fault.covers",
        "    for fault in evidence.faults[:0]:\n        if fault.covers",
    ),
    _mutant(
        "ledger ignored at a charge",
        TIMING,
        "        if fault.burned_ns(decision, arrival.earliest_ns) > tolerance:",
        "        if False:",
    ),
    _mutant("STORE_GAP not recorded", WATERMARK, "if now_ns - self._last_ns >= self._gap_ns and", "if False and"),
    _mutant(
        "REPLICA_LOST not judged at start",
        WATERMARK,
        'self._record(FaultCause.REPLICA_LOST, closed_ns, now_ns, "the service stopped without notice")',
        "pass",
    ),
    _mutant("OUTAGE not judged at start", WATERMARK, "if now_ns - newest_ns >= self._outage_ns:", "if False:"),
    _mutant("NOT_COMMITTED ignored", FAULTS, "return started <= from_ns < deadline", "return False"),
    _mutant("CLOCK_FAULT not recorded", GUARD, "if abs(step_ns) > STEP_NS:", "if False:"),
    _mutant("PUBLISH_STALL not recorded", GUARD, "if length_ns >= self._publish_stall_ns:", "if False:"),
    _mutant("turns stored late not recorded", WRITER, "        self._late_turns.stored(step, self._stored_ns)\n", ""),
    _mutant(
        "time lost in the delay not counted",
        FAULTS,
        "max(from_ns, decision.started_at_ns)",
        "max(from_ns, decision.delay_ends_at_ns)",
    ),
    _mutant(
        "commands that could not be checked not blamed",
        MATCH,
        "        self._writer.turned_away(ticket)\n        self._line",
        "        self._line",
    ),
    _mutant(
        "stamps that prove nothing not recorded",
        WRITER,
        "if isinstance(event, MatchAborted) and event.evidence not in map(str, evidence.faults):",
        "if False:",
    ),
    _mutant(
        "abort stored before its proof",
        WRITER,
        "            await self._services.ledger.store()  # the proof before what follows from it\n",
        "            pass\n",
    ),
    _mutant(
        "heartbeat stored before the evidence",
        WATERMARK,
        "        self._look_for_gap(self._gap_ns)\n        await self._ledger.store()\n",
        "",
    ),
)

STOPS = (
    _mutant(
        "suspended clocks not resumed", MATCHES, "        await self._command_all(suspended, ResumeClocks())\n", ""
    ),
    _mutant(
        "drain that refuses commands",
        CORE,
        "        await edge.refuse_new_clients()\n",
        "        await edge.stop(0.0)\n",
    ),
    _mutant(
        "faults before a planned stop forgotten",
        CLOCK,
        "            if instant_ns < to_ns:\n",
        "            if False:\n",
    ),
    _mutant(
        "clocks run behind a closed door",
        CORE,
        "        suspended = await self._suspend()\n",
        "        suspended = 0\n",
    ),
    _mutant(
        "door closed although the clocks could not be stopped",
        CORE,
        "                if loop.time() >= gives_up:\n                    raise\n",
        "                return 0\n",
    ),
    _mutant(
        "clocks stand before older commands are in",
        MATCHES,
        "            await self._reach(now_ns)\n",
        "            pass\n",
    ),
    _mutant(
        "clocks stand from whenever that is stored",
        MATCHES,
        "ServiceOrder(SuspendClocks(now_ns))",
        "ServiceOrder(SuspendClocks())",
    ),
    _mutant("a planned stop is not told", CORE, "        await self._watermark.retire()\n", ""),
)

WITNESSES = (
    _mutant(
        "a proxy's clock believed",
        WITNESS,
        "            one.at(stamp_ns)\n",
        "            (0, 40_000_000)\n",
    ),
    _mutant(
        "a proxy's clock known after a step of service time",
        WITNESS,
        " and abs(parted_ns - one.parted_ns) <= STEP_NS",
        "",
    ),
    _mutant(
        "a proxy's stamp not cut to the service's own",
        WITNESS,
        "max(own.earliest_ns, said_earliest_ns), min(own.latest_ns, said_latest_ns)",
        "said_earliest_ns, said_latest_ns",
    ),
    _mutant(
        "a proxy's stamp believed to the point",
        WITNESS,
        "stamp_ns - max(most_ns for _, most_ns in known)",
        "stamp_ns - min(least_ns for least_ns, _ in known)",
    ),
)

ALONE = (*STAMPS, *ORDER, *WRITES, *FAULT_LEDGER, *STOPS, *WITNESSES)
"""What one process can show."""
