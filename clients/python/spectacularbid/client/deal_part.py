"""A seat's own part in the deal: its entropy, committed to before and opened with Start."""

from __future__ import annotations

import secrets

from spectacularbid.client.fair_deal import ENTROPY_BYTES, problems, seat_commitment
from spectacularbid.client.views import player_of
from spectacularbid.v1.commands_pb2 import Command, CommitEntropy, Start
from spectacularbid.v1.deal_pb2 import (
    DEAL_STATUS_COMMITTED,
    DEAL_STATUS_SERVER_ONLY,
    DealProof,
    FairDeal,
)
from spectacularbid.v1.tiles_pb2 import SEAT_ONE, Seat
from spectacularbid.v1.views_pb2 import MATCH_MODE_SHARED_DEVICE, MatchView


class DealPart:
    """32 random bytes of a seat. They leave this process with Start only, and show up in no representation."""

    def __init__(
        self, match_id: str, seat: Seat.ValueType, *, entropy: bytes = b"", seen: FairDeal | None = None
    ) -> None:
        self._match_id = match_id
        self.seat = seat
        self._seen = seen
        self._shown: FairDeal | None = None
        self._is_opened = False
        self.is_committed = bool(entropy)
        self._entropy = entropy or secrets.token_bytes(ENTROPY_BYTES)

    def __repr__(self) -> str:
        return f"DealPart(is_committed={self.is_committed})"

    def reveal(self) -> bytes:
        """The entropy, to be kept in private; empty when the seat takes no part."""
        return self._entropy if self.is_committed else b""

    def commitment(self) -> Command:
        """The command that commits to it."""
        commitment = seat_commitment(self._match_id, self.seat, self._entropy)
        return Command(commit_entropy=CommitEntropy(commitment=commitment))

    def opened(self, command: Command) -> Command:
        """The command as it must be sent: a Start opens what was committed to."""
        if not self.is_committed or not command.HasField("start") or command.start.HasField("entropy"):
            return command
        self._is_opened = True
        return Command(start=Start(entropy=self._entropy))

    def see(self, fair_deal: FairDeal) -> None:
        """What a view shows; the last one before this seat opens is remembered."""
        if not self._is_opened:
            self._shown = fair_deal

    def problems(self, proof: DealProof) -> list[str]:
        """What is wrong with the proof of the match, also seen from this seat."""
        found = problems(proof)
        if proof.match_id != self._match_id:
            found.append("The proof is of another match.")
        own = next((seat.entropy for seat in proof.seats if seat.seat == self.seat), b"")
        if self.is_committed and own != self._entropy:
            found.append("The proof does not hold the entropy of this seat.")
        if self._seen is not None and self._seen.server_commitment != proof.server_commitment:
            found.append("The service committed to another secret when the match was made.")
        if self._is_opened and self._shown is not None and self._other(self._shown) != self._other(proof):
            found.append("The other seat's commitment is not the one that was shown before this seat opened.")
        return found

    def _other(self, shown: FairDeal | DealProof) -> bytes:
        return next((seat.commitment for seat in shown.seats if seat.seat != self.seat), b"")


def no_part(match_id: str) -> DealPart:
    """The part of a session that has committed to nothing."""
    return DealPart(match_id, SEAT_ONE)


def may_open(view: MatchView) -> bool:
    """Whether Start may be sent without giving the others a choice between deals.

    Who has committed opens only when the other seat has committed too, or is ready and cannot commit any more.
    """
    public = view.public
    own = next((seat for seat in public.fair_deal.seats if seat.seat == view.own.seat), None)
    if own is None or own.status != DEAL_STATUS_COMMITTED or public.mode == MATCH_MODE_SHARED_DEVICE:
        return True
    other = next(seat for seat in public.fair_deal.seats if seat.seat != view.own.seat)
    return other.status != DEAL_STATUS_SERVER_ONLY or player_of(view, other.seat).ready
