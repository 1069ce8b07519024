"""Reading from PostgreSQL: each function is one query."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from engine.events import Step
from engine.state import MatchState
from engine.view import Audience
from service.ports import CommandRecord, Credential, DealSecrets, DueMatch, SeatRequest
from service.store.event_json import audience_of, audience_text
from service.store.postgres_link import Connection
from service.store.rows import MOST_OVERDUE, command_of, deal_of
from service.store.sealed_steps import sealed_step_of
from service.store.sealing import Seal
from service.store.snapshot_rows import snapshot_of


async def steps(
    connection: Connection, seal: Seal, match_id: str, after_version: int, at_most: int | None = None
) -> Sequence[Step]:
    """The steps of versions after_version + 1 and on, in order, all of them or so many."""
    query = "SELECT version, events FROM steps WHERE match_id = $1 AND version > $2 ORDER BY version LIMIT $3"
    rows = await connection.fetch(query, match_id, after_version, at_most)
    return [sealed_step_of(text, seal, f"{match_id}/{version}") for version, text in rows]


async def snapshot(connection: Connection, seal: Seal, match_id: str) -> MatchState | None:
    """The last snapshot of a match."""
    query = "SELECT match_id, version, format, state FROM snapshots WHERE match_id = $1"
    row = await connection.fetchrow(query, match_id)
    return None if row is None else snapshot_of(tuple(row), seal)


async def steps_at(connection: Connection, seal: Seal, versions: Mapping[str, int]) -> Mapping[str, Step]:
    """The steps that made these versions of matches, of those that there are."""
    query = (
        "SELECT match_id, version, events FROM steps"
        " JOIN unnest($1::text[], $2::int8[]) AS asked (match_id, version) USING (match_id, version)"
    )
    rows = await connection.fetch(query, list(versions), list(versions.values()))
    return {match_id: sealed_step_of(text, seal, f"{match_id}/{version}") for match_id, version, text in rows}


async def command(connection: Connection, match_id: str, sender: Audience, command_id: str) -> CommandRecord | None:
    """The stored outcome of a command."""
    query = (
        "SELECT match_id, sender, command_id, body_hash, version, refusal, receipt FROM commands"
        " WHERE match_id = $1 AND sender = $2 AND command_id = $3"
    )
    row = await connection.fetchrow(query, match_id, audience_text(sender), command_id)
    return None if row is None else command_of(tuple(row))


async def credential(connection: Connection, token_hash: bytes) -> Credential | None:
    """What a token is good for."""
    query = (
        "SELECT match_id, audience, subject, ended_at_ns FROM credentials JOIN matches USING (match_id)"
        " WHERE token_hash = $1"
    )
    row = await connection.fetchrow(query, token_hash)
    if row is None:
        return None
    match_id, audience, subject, ended_at_ns = row
    return Credential(token_hash, match_id, audience_of(audience), subject, ended_at_ns)


async def good_tokens(connection: Connection, token_hashes: Collection[bytes]) -> set[bytes]:
    """Which of these tokens are good; one that was replaced is not."""
    query = "SELECT token_hash FROM credentials WHERE token_hash = ANY ($1::bytea[])"
    return {row["token_hash"] for row in await connection.fetch(query, list(token_hashes))}


async def holds(connection: Connection, match_id: str, audience: Audience, subject: str) -> bool:
    """Whether a subject got a token of a match for an audience."""
    query = "SELECT EXISTS (SELECT FROM credentials WHERE subject = $1 AND match_id = $2 AND audience = $3)"
    return bool(await connection.fetchval(query, subject, match_id, audience_text(audience)))


async def seat_request(connection: Connection, request_id: str) -> SeatRequest | None:
    """What a create or join request got."""
    row = await connection.fetchrow("SELECT match_id, audience FROM seat_requests WHERE request_id = $1", request_id)
    return None if row is None else SeatRequest(request_id, row["match_id"], audience_of(row["audience"]))


async def match_for_invite(connection: Connection, invite_hash: bytes) -> str | None:
    """The match that can be joined with an invite code."""
    match_id: str | None = await connection.fetchval("SELECT match_id FROM matches WHERE invite_hash = $1", invite_hash)
    return match_id


async def deal_secrets(connection: Connection, seal: Seal, match_id: str) -> DealSecrets | None:
    """What fixes the tiles of a match."""
    query = "SELECT match_id, rules_hash, secret, entropy_one, entropy_two FROM deals WHERE match_id = $1"
    row = await connection.fetchrow(query, match_id)
    return None if row is None else deal_of(tuple(row), seal)


async def live_matches(connection: Connection) -> Sequence[DueMatch]:
    """Every match that is not over, earliest due first."""
    query = "SELECT match_id, due_ns FROM matches WHERE live ORDER BY due_ns NULLS FIRST, match_id"
    return [DueMatch(*row) for row in await connection.fetch(query)]


async def overdue(connection: Connection, before_ns: int) -> Sequence[str]:
    """Live matches that were due before an instant, the oldest first, a bounded number."""
    query = "SELECT match_id FROM matches WHERE live AND due_ns < $1 ORDER BY due_ns, match_id LIMIT $2"
    return [row["match_id"] for row in await connection.fetch(query, before_ns, MOST_OVERDUE)]


async def versions(connection: Connection, match_ids: Sequence[str]) -> Mapping[str, int]:
    """The versions of matches."""
    query = "SELECT match_id, version FROM matches WHERE match_id = ANY ($1::text[])"
    return {row["match_id"]: row["version"] for row in await connection.fetch(query, match_ids)}


async def meta(connection: Connection, key: str) -> str | None:
    """A fact about the service itself."""
    value: str | None = await connection.fetchval("SELECT value FROM meta WHERE key = $1", key)
    return value


async def service_ns(connection: Connection) -> int:
    """The database's own clock: nanoseconds since the Unix epoch, in steps of a microsecond."""
    now_ns: int = await connection.fetchval("SELECT (extract(epoch FROM clock_timestamp()) * 1000000000)::int8")
    return now_ns
