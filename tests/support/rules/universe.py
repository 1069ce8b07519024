"""Every command that a player could send, up to bids larger than any balance."""

from collections.abc import Iterator

from engine import commands as cmd
from engine.layout import End
from engine.legal import LegalAction, LegalBids
from engine.tiles import DOUBLE_SIX

BID_POINTS = range(-5, 321)
PLAIN: tuple[cmd.Command, ...] = (
    *(cmd.Start(), cmd.Continue(), cmd.Reveal()),
    *(cmd.DeclineBidding(), cmd.AcceptBid()),
    *(cmd.DrawTile(), cmd.Pass()),
)
PLAYS: tuple[cmd.Command, ...] = tuple(cmd.PlayTile(tile, end) for tile in DOUBLE_SIX for end in End)
BIDS: tuple[cmd.Command, ...] = tuple(kind(points) for kind in (cmd.Bid, cmd.Raise) for points in BID_POINTS)
EVERY_COMMAND = (*PLAIN, *PLAYS, *BIDS)
"""All but resigning, which is never listed."""


def spelled_out(actions: tuple[LegalAction, ...]) -> Iterator[cmd.Command]:
    """The commands that a list of legal actions offers, a range of bids as its bids."""
    for action in actions:
        if isinstance(action, LegalBids):
            yield from (action.kind(points) for points in range(action.minimum, action.maximum + 1, action.step))
        else:
            yield action.command
