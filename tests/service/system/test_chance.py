"""Chance from the operating system."""

from service.rpc.requests import match_id_of
from service.system.chance import SystemEntropy


def test_ids_tokens_and_secrets_are_fresh_and_well_formed() -> None:
    """No counters, nothing that tells how many there are."""
    entropy = SystemEntropy()
    ids = {match_id_of(entropy.match_id()) for _ in range(1_000)}
    tokens = {entropy.token("sbs_") for _ in range(1_000)}
    secrets = {entropy.secret() for _ in range(1_000)}
    assert len(ids) == len(tokens) == len(secrets) == 1_000
    assert all(token.startswith("sbs_") and len(token) == 47 for token in tokens)
    assert all(len(secret) == 32 for secret in secrets)
