"""Rows as every database keeps them: a value's columns in the order of its table."""

from __future__ import annotations

from typing import Final, TypeAlias

from engine.events import MatchAborted, MatchWon, Step
from engine.faults import Fault
from engine.seats import PerSeat
from service.ports import CommandRecord, Credential, DealSecrets, LedgerRow
from service.store.event_json import (
    audience_of,
    audience_text,
    cause_of,
    cause_text,
    receipt_of,
    receipt_text,
    refusal_of,
    refusal_text,
)
from service.store.sealing import Seal

DealRow: TypeAlias = tuple[str, bytes, bytes, bytes, bytes]
CommandRow: TypeAlias = tuple[str, str, str, bytes, int, str | None, str]
CredentialRow: TypeAlias = tuple[bytes, str, str, str]
FaultRow: TypeAlias = tuple[str, str | None, int, int, str]


MOST_OVERDUE: Final = 1_000
"""Overdue matches that are told of at once."""


def deal_row(match_id: str, deal: DealSecrets, seal: Seal) -> DealRow:
    """match_id, rules_hash, secret, entropy_one, entropy_two; what is secret is sealed, an absent entropy empty."""

    def closed(value: bytes, name: str) -> bytes:
        return seal.close(value, f"{match_id}/{name}") if value else value

    one, two = deal.entropies.one, deal.entropies.two
    return match_id, deal.rules_hash, closed(deal.secret, "secret"), closed(one, "one"), closed(two, "two")


def deal_of(row: DealRow, seal: Seal) -> DealSecrets:
    """The secrets of a row by `deal_row`."""
    match_id, rules_hash, secret, one, two = row

    def opened(sealed: bytes, name: str) -> bytes:
        return seal.open(sealed, f"{match_id}/{name}") if sealed else sealed

    return DealSecrets(rules_hash, opened(secret, "secret"), PerSeat(opened(one, "one"), opened(two, "two")))


def command_row(match_id: str, record: CommandRecord) -> CommandRow:
    """match_id, sender, command_id, body_hash, version, refusal, receipt."""
    refusal = None if record.refusal is None else refusal_text(record.refusal)
    sender, receipt = audience_text(record.sender), receipt_text(record.receipt)
    return match_id, sender, record.command_id, record.body_hash, record.version, refusal, receipt


def command_of(row: CommandRow) -> CommandRecord:
    """The outcome of a row by `command_row`."""
    _, sender, command_id, body_hash, version, refusal, receipt = row
    refused = None if refusal is None else refusal_of(refusal)
    return CommandRecord(audience_of(sender), command_id, body_hash, version, refused, receipt_of(receipt))


def credential_row(credential: Credential) -> CredentialRow:
    """token_hash, match_id, audience, subject."""
    return credential.token_hash, credential.match_id, audience_text(credential.audience), credential.subject


def fault_row(row: LedgerRow) -> FaultRow:
    """cause, match_id, from_ns, to_ns, evidence."""
    fault = row.fault
    return cause_text(fault.cause), row.match_id, fault.from_ns, fault.to_ns, fault.evidence


def fault_of(row: FaultRow) -> LedgerRow:
    """The ledger's row of a row by `fault_row`."""
    cause, match_id, from_ns, to_ns, evidence = row
    return LedgerRow(Fault(cause_of(cause), from_ns, to_ns, evidence), match_id)


def ended_at_ns(step: Step) -> int | None:
    """When the match ended, if it did in this step."""
    ends = [event.at_ns for event in step if isinstance(event, MatchWon | MatchAborted)]
    return ends[-1] if ends else None
