"""The own part of a view to bytes: what one seat alone may see, from parts that are serialized once.

Fields are joined in ascending order, as every protobuf library writes them. What is kept here is keyed by what it says,
never by a match, so nothing of one match can be found from another.
"""

from __future__ import annotations

from functools import lru_cache

from engine import commands as cmd
from engine import view as vw
from engine.legal import LegalAction, LegalBids
from engine.seats import Seat
from engine.tiles import Tile
from service.rpc import facts
from service.rpc.wire import sub_message
from spectacularbid.v1 import commands_pb2, views_pb2

_hand = sub_message(views_pb2.OwnView.DESCRIPTOR, "hand")
_actions = sub_message(views_pb2.OwnView.DESCRIPTOR, "legal_actions")
_PLAIN_COMMANDS: dict[type[cmd.Command], commands_pb2.Command] = {
    cmd.Start: commands_pb2.Command(start=commands_pb2.Start()),
    cmd.Continue: commands_pb2.Command(continue_round=commands_pb2.Continue()),
    cmd.Reveal: commands_pb2.Command(reveal=commands_pb2.Reveal()),
    cmd.DeclineBidding: commands_pb2.Command(decline_bidding=commands_pb2.DeclineBidding()),
    cmd.AcceptBid: commands_pb2.Command(accept_bid=commands_pb2.AcceptBid()),
    cmd.DrawTile: commands_pb2.Command(draw_tile=commands_pb2.DrawTile()),
    cmd.Pass: commands_pb2.Command(pass_turn=commands_pb2.Pass()),
}


def own_bytes(own: vw.OwnView) -> bytes:
    """A serialized OwnView."""
    fields = (
        _seat_bytes(own.seat),
        *map(_hand_tile_bytes, own.hand),
        _must_play_bytes(own.must_play),
        *map(_action_bytes, own.legal_actions),
    )
    return b"".join(fields)


@lru_cache(maxsize=2)
def _seat_bytes(seat: Seat) -> bytes:
    return views_pb2.OwnView(seat=facts.SEAT_NUMBERS[seat]).SerializeToString()


@lru_cache(maxsize=29)
def _must_play_bytes(tile: Tile | None) -> bytes:
    return b"" if tile is None else views_pb2.OwnView(must_play=facts.TILES[tile]).SerializeToString()


@lru_cache(maxsize=1024)
def _hand_tile_bytes(held: vw.HandTile) -> bytes:
    ends = [facts.END_NUMBERS[end] for end in held.playable_ends]
    return _hand(views_pb2.HandTile(tile=facts.TILES[held.tile], playable_ends=ends).SerializeToString())


@lru_cache(maxsize=8192)
def _action_bytes(action: LegalAction) -> bytes:
    return _actions(_action(action).SerializeToString())


def _action(action: LegalAction) -> views_pb2.LegalAction:
    if isinstance(action, LegalBids):
        bids = views_pb2.BidRange(
            minimum_points=action.minimum,
            maximum_points=action.maximum,
            step_points=action.step,
            credit_points=action.credit,
        )
        is_first = action.kind is cmd.Bid
        return views_pb2.LegalAction(make_bid=bids) if is_first else views_pb2.LegalAction(raise_bid=bids)
    return views_pb2.LegalAction(
        command=command_message(action.command),
        exposed_total=action.exposed_total,
        transfer=facts.transfer_message(action.transfer) if action.transfer else None,
    )


def command_message(command: cmd.Command) -> commands_pb2.Command:
    """A command ready to send back."""
    if isinstance(command, cmd.PlayTile):
        play = commands_pb2.PlayTile(tile=facts.TILES[command.tile], end=facts.END_NUMBERS[command.end])
        return commands_pb2.Command(play_tile=play)
    return _PLAIN_COMMANDS[type(command)]
