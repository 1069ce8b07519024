"""The events of a match as lines for people, about one a turn."""

from __future__ import annotations

from spectacularbid.client.text import blocked_text
from spectacularbid.client.views import name_of
from spectacularbid.client.words import bank_text, end_text, gain_text, tile_text
from spectacularbid.v1.events_pb2 import BidAccepted, Event, RoundDealt, TilePlayed, Transfer
from spectacularbid.v1.match_service_pb2 import MatchUpdate
from spectacularbid.v1.tiles_pb2 import Seat
from spectacularbid.v1.views_pb2 import MatchView

MISSED = "(some events were not told)"


class Narrator:
    """Tells what happened between updates, but not the result, which is in the view.

    Draws are told with the play or pass that they lead to.

    Balances and banks are kept up from event to event, and taken from every view.
    """

    def __init__(self) -> None:
        self._view = MatchView()
        self._balances: dict[int, int] = {}
        self._banks_ns: dict[int, int] = {}
        self._drawn = 0

    def tell(self, update: MatchUpdate) -> list[str]:
        """What happened since the last update."""
        is_first = not self._view.public.version
        self._view = update.view
        lines = [] if update.events_complete or is_first else [MISSED]
        for event in update.events:
            lines += self._lines(event)
        for player in update.view.public.players:
            self._balances[player.seat] = player.balance_points
            self._banks_ns[player.seat] = player.bank_remaining_ns
        return lines

    def _lines(self, event: Event) -> list[str]:
        match event.WhichOneof("event"):
            case "tile_drawn":
                self._drawn += 1
                return []
            case "clock_stopped":
                seat = event.clock_stopped.seat
                self._banks_ns[seat] = self._banks_ns.get(seat, 0) - event.clock_stopped.bank_used_ns
                return []
            case "round_dealt":
                return [self._dealt(event.round_dealt)]
            case "bidding_declined" | "bid_made" | "bid_accepted":
                return [self._auction(event)]
            case "tile_played":
                return [self._played(event.tile_played)]
            case "passed":
                return [f"  {self._who_with_draws(event.passed.seat)} passes"]
            case "round_dominoed" | "round_blocked":
                return [self._settled(event), f"  {self._standings()}"]
            case _:
                return self._match_lines(event)

    def _match_lines(self, event: Event) -> list[str]:
        """What is not part of a round. Nothing for what needs no words, or is newer than this client."""
        match event.WhichOneof("event"):
            case "player_seated":
                return [f"{event.player_seated.display_name} takes a seat"]
            case "continue_timed_out":
                return ["Nobody waited any longer for Continue"]
            case "handover_opened":
                return [f"  the device goes to {self._name(event.handover_opened.seat)}"]
            case "clocks_suspended":
                return ["The service is being restarted; the clocks stand still"]
            case "clocks_resumed":
                return ["The clocks go on"]
            case _:
                return []

    def _dealt(self, dealt: RoundDealt) -> str:
        self._drawn = 0
        how = f"{self._name(dealt.jockey)} is the jockey" if dealt.jockey else "ranked opening"
        return f"Round {dealt.round_number}: {how}"

    def _auction(self, event: Event) -> str:
        match event.WhichOneof("event"):
            case "bidding_declined":
                return f"  {self._name(event.bidding_declined.seat)} declines bidding"
            case "bid_made":
                return f"  {self._name(event.bid_made.seat)} bids {event.bid_made.points}"
            case _:
                return self._accepted(event.bid_accepted)

    def _accepted(self, accepted: BidAccepted) -> str:
        credit = f", credit {accepted.credit_points}" if accepted.credit_points else ""
        price = accepted.transfer.paid_points
        balances = self._moved(accepted.transfer)
        return f"  {self._name(accepted.bidder)} opens for {price} (bid {accepted.points}{credit}){balances}"

    def _played(self, played: TilePlayed) -> str:
        who = self._who_with_draws(played.seat)
        line = f"  {who} plays {tile_text(played.tile)} at {end_text(played.end)}: total {played.exposed_total}"
        if not played.HasField("transfer"):
            return line
        return f"{line}, {gain_text(played.transfer)}{self._moved(played.transfer)}"

    def _settled(self, event: Event) -> str:
        if event.HasField("round_dominoed"):
            return f"  {self._name(event.round_dominoed.seat)} dominoes"
        if event.round_blocked.HasField("transfer"):
            self._moved(event.round_blocked.transfer)
        return f"  {blocked_text(self._view, event.round_blocked)}"

    def _standings(self) -> str:
        return "; ".join(
            f"{self._name(player.seat)} {self._balances.get(player.seat, 0)} points, "
            f"bank {bank_text(self._banks_ns.get(player.seat, 0))}"
            for player in self._view.public.players
        )

    def _moved(self, transfer: Transfer) -> str:
        """Move the points; the new balances, seat ONE first. Nothing while the balances are unknown."""
        if transfer.payer not in self._balances:
            return ""
        for seat in self._balances:
            sign = -1 if seat == transfer.payer else 1
            self._balances[seat] += sign * transfer.paid_points
        return f" ({'-'.join(str(points) for _, points in sorted(self._balances.items()))})"

    def _who_with_draws(self, seat: Seat.ValueType) -> str:
        drawn, self._drawn = self._drawn, 0
        return self._name(seat) + (f" draws {drawn} and" if drawn else "")

    def _name(self, seat: Seat.ValueType) -> str:
        return name_of(self._view, seat)
