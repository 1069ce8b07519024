"""Messages in domino text: what the tests say and show."""

from __future__ import annotations

from collections.abc import Iterable

from spectacularbid.client.digest import view_digest
from spectacularbid.v1 import commands_pb2 as cm
from spectacularbid.v1 import deal_pb2 as dl
from spectacularbid.v1 import events_pb2 as ev
from spectacularbid.v1 import match_service_pb2 as ms
from spectacularbid.v1 import outcomes_pb2 as oc
from spectacularbid.v1 import tiles_pb2 as tl
from spectacularbid.v1 import views_pb2 as vw

ONE, TWO = tl.SEAT_ONE, tl.SEAT_TWO
SECOND_NS = 1_000_000_000
BANK_NS = 120 * SECOND_NS
END_BY_LETTER = {
    "open": tl.END_OPENING,
    "W": tl.END_WEST,
    "E": tl.END_EAST,
    "N": tl.END_NORTH,
    "S": tl.END_SOUTH,
}


def tile(text: str) -> tl.Tile:
    """The tile of `5-3` or `3-5`."""
    low, high = sorted(map(int, text.split("-")))
    return tl.Tile(low=low, high=high)


def placed(text: str) -> vw.PlacedTile:
    """The placed tile of `2-3`, halves in reading order."""
    first, second = map(int, text.strip("[]").split("-"))
    return vw.PlacedTile(first=first, second=second)


def layout(text: str, ends: str = "", total: int = 0) -> vw.LayoutView:
    """The layout of `2-3 [3-3] 3-6 / 3-1` with ends such as `W 2 2, E 6 6` (letter, value, counts)."""
    main, north, south = [*(arm.split() for arm in text.split("/")), [], []][:3]
    made = vw.LayoutView(
        main_line=map(placed, main), north=map(placed, north), south=map(placed, south), exposed_total=total
    )
    spinners = [index for index, word in enumerate(main) if word.startswith("[")]
    if spinners:
        made.spinner_index = spinners[0]
    for word in filter(None, ends.split(",")):
        letter, value, counts = word.split()
        made.ends.append(vw.OpenEnd(end=END_BY_LETTER[letter], value=int(value), counts=int(counts)))
    return made


def paid(payer: tl.Seat.ValueType, points: int, earned: int | None = None) -> ev.Transfer:
    """Points that move."""
    return ev.Transfer(payer=payer, earned_points=points if earned is None else earned, paid_points=points)


def play(text: str, total: int = 0, transfer: ev.Transfer | None = None) -> vw.LegalAction:
    """The listed play of `5-3 W`."""
    which, end = text.split()
    command = cm.Command(play_tile=cm.PlayTile(tile=tile(which), end=END_BY_LETTER[end]))
    return vw.LegalAction(command=command, exposed_total=total, transfer=transfer)


def bids(minimum: int, maximum: int, *, credit: int = 0, raising: bool = False) -> vw.LegalAction:
    """A listed range of bids."""
    allowed = vw.BidRange(minimum_points=minimum, maximum_points=maximum, step_points=5, credit_points=credit)
    return vw.LegalAction(raise_bid=allowed) if raising else vw.LegalAction(make_bid=allowed)


def action(command: cm.Command, transfer: ev.Transfer | None = None) -> vw.LegalAction:
    """A listed command."""
    return vw.LegalAction(command=command, transfer=transfer)


START = action(cm.Command(start=cm.Start()))
CONTINUE = action(cm.Command(continue_round=cm.Continue()))
REVEAL = action(cm.Command(reveal=cm.Reveal()))
DECLINE = action(cm.Command(decline_bidding=cm.DeclineBidding()))
ACCEPT = action(cm.Command(accept_bid=cm.AcceptBid()))
DRAW = action(cm.Command(draw_tile=cm.DrawTile()))
PASS = action(cm.Command(pass_turn=cm.Pass()))


def view(
    version: int = 1,
    *,
    actions: Iterable[vw.LegalAction] = (),
    hand: str = "",
    viewer: tl.Seat.ValueType = ONE,
    balances: tuple[int, int] = (150, 150),
    names: tuple[str, str] = ("Ann", "Bob"),
    **public: object,
) -> vw.MatchView:
    """A view of seat ONE unless `viewer` says otherwise; `public` sets further fields of PublicView."""
    players = [
        vw.PlayerView(
            seat=seat,
            display_name=name,
            seated=True,
            balance_points=points,
            hand_size=len(hand.split()),
            bank_remaining_ns=BANK_NS,
        )
        for seat, name, points in zip((ONE, TWO), names, balances, strict=True)
    ]
    made = vw.MatchView(
        public=vw.PublicView(match_id="m", version=version, mode=vw.MATCH_MODE_ONLINE, players=players),
        own=vw.OwnView(seat=viewer, hand=[vw.HandTile(tile=tile(text)) for text in hand.split()]),
    )
    made.public.MergeFrom(vw.PublicView(**public))  # type: ignore[arg-type] # named by the tests
    made.own.legal_actions.extend(actions)
    return made


def fair_deal(*statuses: dl.DealStatus.ValueType) -> dl.FairDeal:
    """How far both seats took part in the deal."""
    seats = [dl.SeatDeal(seat=seat, status=status) for seat, status in zip((ONE, TWO), statuses, strict=True)]
    return dl.FairDeal(seats=seats)


def won(version: int, winner: tl.Seat.ValueType = ONE) -> vw.MatchView:
    """The view of a match that was won."""
    ending = ev.MatchWon(winner=winner, reason=ev.WIN_REASON_BALANCE)
    result = vw.ResultView(won=ending, rated=True)
    balances = (300, 0) if winner == ONE else (0, 300)
    return view(version, balances=balances, phase=vw.PHASE_OVER, result=result)


def update(
    seen: vw.MatchView | int, *events: ev.Event, complete: bool = True, digest: bytes | None = None
) -> ms.MatchUpdate:
    """An update with a view, or with an empty one of this version."""
    shown = view(seen) if isinstance(seen, int) else seen
    return ms.MatchUpdate(
        view=shown,
        events=events,
        events_complete=complete,
        view_digest=view_digest(shown) if digest is None else digest,
        presence=ms.Presence(seat_one=True, seat_two=True),
    )


def accepted(command_id: str, seen: vw.MatchView | int, *events: ev.Event) -> oc.CommandOutcome:
    """The outcome of a command that was carried out."""
    shown = view(seen) if isinstance(seen, int) else seen
    return oc.CommandOutcome(
        command_id=command_id,
        accepted=oc.Accepted(version=shown.public.version, events=events),
        view=shown,
        view_digest=view_digest(shown),
    )


def refused(
    command_id: str, seen: vw.MatchView | int, reason: oc.RefusalReason.ValueType, message: str = ""
) -> oc.CommandOutcome:
    """The outcome of a command that was refused."""
    shown = view(seen) if isinstance(seen, int) else seen
    return oc.CommandOutcome(
        command_id=command_id,
        refused=oc.Refused(reason=reason, message=message),
        view=shown,
        view_digest=view_digest(shown),
    )
