"""The deals of one match: its secret as the store has it, what the seats open, and the order of each round."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib.resources import files

from engine.commands import CheckClock, Continue, Start
from engine.seats import SEATS, PerSeat, Seat
from engine.state import MatchState, Phase
from engine.tiles import Tile
from service import fair_deal
from service.line import PlayerOrder, ServiceOrder
from service.ports import DealSecrets, Store


class EntropyNotMatchingError(Exception):
    """A Start does not open what its seat committed to; nothing has changed."""


@cache
def current_rules_hash() -> bytes:
    """SHA-256 of the rule text that this version of the service plays by."""
    return hashlib.sha256(files("engine").joinpath("rules.txt").read_bytes()).digest()


def transcript_of(match_id: str, state: MatchState, secrets: DealSecrets) -> bytes:
    """The digest of all that was said before the first deal."""
    return fair_deal.transcript(
        match_id,
        secrets.rules_hash,
        state.server_commitment,
        (state.commitments.one, state.commitments.two),
        (secrets.entropies.one, secrets.entropies.two),
    )


class MatchDeals:
    """What a match's writer asks for the order of a round. `shuffle` makes it from the round's key."""

    def __init__(self, match_id: str, store: Store, shuffle: Callable[[bytes], tuple[Tile, ...]]) -> None:
        self._match_id = match_id
        self._store = store
        self._shuffle = shuffle
        self._secrets: DealSecrets | None = None

    def forget(self) -> None:
        """The store may know more."""
        self._secrets = None

    def keep(self, secrets: DealSecrets) -> None:
        """These were stored."""
        self._secrets = secrets

    async def order_for(self, state: MatchState, order: PlayerOrder | ServiceOrder) -> tuple[Tile, ...]:
        """The order of the next round, for a command that may deal it."""
        secrets = await self._load()
        if isinstance(order, PlayerOrder):
            secrets = replace(secrets, entropies=_merged(secrets.entropies, order.entropies))
        number = 1 if state.round is None else state.round.number + 1
        transcript = transcript_of(self._match_id, state, secrets)
        return self._shuffle(fair_deal.round_key(secrets.secret, transcript, number))

    async def opened_by(self, state: MatchState, order: PlayerOrder, seat: Seat) -> DealSecrets | None:
        """What a Start that is accepted adds to the secrets, None for nothing. Raises EntropyNotMatchingError."""
        for starting in SEATS if state.options.shared_device else (seat,):
            self._check(starting, state.commitments[starting.index], order.entropies[starting.index])
        secrets = await self._load()
        opened = replace(secrets, entropies=_merged(secrets.entropies, order.entropies))
        return None if opened == secrets else opened

    def _check(self, seat: Seat, commitment: bytes, entropy: bytes) -> None:
        wanted = fair_deal.seat_commitment(self._match_id, seat.value, entropy) if entropy else b""
        if wanted != commitment:
            raise EntropyNotMatchingError

    async def _load(self) -> DealSecrets:
        if self._secrets is None:
            self._secrets = await self._store.deal_secrets(self._match_id)
            assert self._secrets is not None, "every match is stored with its secret"
        return self._secrets


def may_deal(state: MatchState, order: PlayerOrder | ServiceOrder) -> bool:
    """Whether the command deals the next round if it is accepted."""
    if state.phase is Phase.SETTLED:
        return isinstance(order.command, Continue | CheckClock)
    return state.phase is Phase.NOT_STARTED and isinstance(order.command, Start)


def _merged(known: PerSeat[bytes], given: PerSeat[bytes]) -> PerSeat[bytes]:
    return PerSeat(given.one or known.one, given.two or known.two)
