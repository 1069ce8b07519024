"""The statements by which matches move in PostgreSQL, each by compare-and-swap, many of them at once.

A statement takes the matches' row locks without waiting for any: a match that somebody else is just moving is left out.
So no two batches wait for each other, and a forgotten lock holds up its own match only. Whoever is not a live replica
of the present epoch moves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

PLANNING: Final = {
    # The batch is small and the tables are large, whatever the planner knows of them.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
}
"""Settings of the connection that appends."""

GIVEN: Final = (
    ("number", "int4"),
    ("match_id", "text"),
    ("expected", "int8"),
    ("events", "text"),
    ("due_ns", "int8"),
    ("live", "bool"),
    ("ended_at_ns", "int8"),
    ("sender", "text"),
    ("command_id", "text"),
    ("body_hash", "bytea"),
    ("command_version", "int8"),
    ("refusal", "text"),
    ("receipt", "text"),
)
ALSO: Final = (
    ("invite_hash", "bytea"),
    ("request_id", "text"),
    ("request_audience", "text"),
    ("rules_hash", "bytea"),
    ("secret", "bytea"),
    ("entropy_one", "bytea"),
    ("entropy_two", "bytea"),
    ("snapshot_format", "int4"),
    ("snapshot", "bytea"),
)
"""Columns of changes that do more than move a match by a command."""
CREDENTIALS: Final = (("number", "int4"), ("token_hash", "bytea"), ("audience", "text"), ("subject", "text"))


def _unnested(columns: Sequence[tuple[str, str]], first: int) -> str:
    arrays = ", ".join(f"${first + place}::{kind}[]" for place, (_, kind) in enumerate(columns))
    return f"unnest({arrays}) AS given ({', '.join(name for name, _ in columns)})"


_MINE: Final = "EXISTS (SELECT FROM replicas WHERE replica_id = $1 AND epoch = $2 AND state IN ('live', 'leaving'))"
_NO_SUCH_COMMAND: Final = """NOT EXISTS (
    SELECT FROM commands AS c
    WHERE c.match_id = given.match_id AND c.sender = given.sender AND c.command_id = given.command_id)"""
_NO_SUCH_REQUEST: Final = "NOT EXISTS (SELECT FROM seat_requests AS r WHERE r.request_id = given.request_id)"


def _stood(further: str = "") -> str:
    return f"""stood AS MATERIALIZED (
    SELECT given.* FROM given JOIN matches AS m USING (match_id)
    WHERE m.version = given.expected AND {_MINE} AND {_NO_SUCH_COMMAND} {further}
    FOR NO KEY UPDATE OF m SKIP LOCKED
)"""


_MOVED: Final = """moved AS (
    UPDATE matches AS m SET version = m.version + 1, due_ns = stood.due_ns, live = stood.live,
        ended_at_ns = coalesce(stood.ended_at_ns, m.ended_at_ns)
    FROM stood WHERE m.match_id = stood.match_id AND stood.expected > 0 AND stood.events IS NOT NULL
), stepped AS (
    INSERT INTO steps (match_id, version, events)
    SELECT match_id, expected + 1, events FROM stood WHERE events IS NOT NULL
), recorded AS (
    INSERT INTO commands (match_id, sender, command_id, body_hash, version, refusal, receipt)
    SELECT match_id, sender, command_id, body_hash, command_version, refusal, receipt
    FROM stood WHERE command_id IS NOT NULL
)"""

MOVES: Final = f"""
WITH given AS MATERIALIZED (SELECT * FROM {_unnested(GIVEN, 3)}), {_stood()}, {_MOVED}
SELECT number FROM stood
"""
"""Moves matches that are there. Parameters: replica, epoch, a column each of `GIVEN`. Returns what was carried out."""

EVERYTHING: Final = f"""
WITH given AS MATERIALIZED (SELECT * FROM {_unnested((*GIVEN, *ALSO), 3)}),
{_stood(f"AND {_NO_SUCH_REQUEST}").replace("stood AS", "standing AS", 1)},
made AS (
    INSERT INTO matches (match_id, version, due_ns, live, invite_hash)
    SELECT match_id, 1, due_ns, live, invite_hash FROM given
    WHERE expected = 0 AND {_MINE} AND {_NO_SUCH_COMMAND} AND {_NO_SUCH_REQUEST}
    ON CONFLICT DO NOTHING RETURNING match_id
), stood AS MATERIALIZED (
    SELECT * FROM standing UNION ALL SELECT given.* FROM given JOIN made USING (match_id)
), {_MOVED}, requested AS (
    INSERT INTO seat_requests (request_id, match_id, audience)
    SELECT request_id, match_id, request_audience FROM stood WHERE request_id IS NOT NULL
), credited AS (
    INSERT INTO credentials (token_hash, match_id, audience, subject)
    SELECT given.token_hash, stood.match_id, given.audience, given.subject
    FROM {_unnested(CREDENTIALS, 3 + len(GIVEN) + len(ALSO))} JOIN stood USING (number)
), dealt AS (
    INSERT INTO deals (match_id, rules_hash, secret, entropy_one, entropy_two)
    SELECT match_id, rules_hash, secret, entropy_one, entropy_two FROM stood WHERE rules_hash IS NOT NULL
    ON CONFLICT (match_id) DO UPDATE SET entropy_one = excluded.entropy_one, entropy_two = excluded.entropy_two
), kept AS (
    INSERT INTO snapshots (match_id, version, format, state)
    SELECT match_id, expected + 1, snapshot_format, snapshot FROM stood WHERE snapshot IS NOT NULL
    ON CONFLICT (match_id) DO UPDATE
    SET version = excluded.version, format = excluded.format, state = excluded.state
)
SELECT number FROM stood
"""
"""The same for changes of every kind; after the columns of `GIVEN` and `ALSO` come those of `CREDENTIALS`."""

REASON: Final = """
SELECT EXISTS (SELECT FROM commands WHERE match_id = $3 AND sender = $5 AND command_id = $6),
    EXISTS (SELECT FROM seat_requests WHERE request_id = $7),
    CASE WHEN $4::int8 = 0
        THEN NOT EXISTS (SELECT FROM matches WHERE match_id = $3 OR invite_hash = $8)
        ELSE EXISTS (SELECT FROM matches WHERE match_id = $3 AND version = $4)
    END,
    EXISTS (SELECT FROM replicas WHERE replica_id = $1 AND epoch = $2 AND state IN ('live', 'leaving'))
"""
