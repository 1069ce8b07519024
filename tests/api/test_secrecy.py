"""What a viewer may not know never reaches the wire: every message of whole matches, looked through tile by tile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from google.protobuf.message import Message

from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1.commands_pb2 import PlayTile
from spectacularbid.v1.events_pb2 import RoundBlocked, ShownHand, TilePlayed
from spectacularbid.v1.outcomes_pb2 import CommandOutcome
from spectacularbid.v1.tiles_pb2 import Tile
from spectacularbid.v1.views_pb2 import HandTile, MatchView, OwnView, PlacedTile
from tests.support.players import (
    RESIGN,
    START,
    Table,
    Viewer,
    choose,
    hand_of,
    is_over,
    new_table,
    play,
    play_until,
    situation,
    tile_text,
)
from tests.support.server import Server

PUBLIC_PARENTS = (TilePlayed, ShownHand)
OWN_PARENTS = (HandTile, OwnView, PlayTile)
SPECTATOR = 0


def tiles_in(message: Message, parent: Message | None = None) -> Iterator[tuple[Message, Tile]]:
    """Every tile anywhere in a message, with the message that holds it."""
    if isinstance(message, Tile):
        assert parent is not None
        yield parent, message
        return
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            values = value if descriptor.is_repeated else [value]
            for child in values if not descriptor.message_type.GetOptions().map_entry else ():
                yield from tiles_in(child, message)


@dataclass
class Witness:
    """Looks at every message to one viewer. `seat` is 0 for a spectator."""

    seat: int
    hidden: set[str] = field(default_factory=set)
    seen: int = 0

    def look(self, message: Message) -> None:
        """No tile that is hidden from this viewer now, and own tiles only where a hand is shown."""
        self.seen += 1
        for parent, tile in tiles_in(message):
            assert isinstance(parent, PUBLIC_PARENTS + OWN_PARENTS), type(parent)
            assert self.seat != SPECTATOR or isinstance(parent, PUBLIC_PARENTS), "a spectator has no hand"
            assert tile_text(tile) not in self.hidden, (self.seat, type(parent), tile_text(tile))


def on_table(view: MatchView) -> set[str]:
    """The tiles that have been played."""
    layout = view.public.layout
    placed: list[PlacedTile] = [*layout.main_line, *layout.north, *layout.south]
    return {"-".join(map(str, sorted((tile.first, tile.second)))) for tile in placed}


WHOLE_SET = {f"{low}-{high}" for low in range(7) for high in range(low, 7)}


@dataclass
class Court:
    """A match with a witness for each viewer; after every command all of them look at all that can be asked for."""

    table: Table
    witnesses: dict[int, Witness] = field(default_factory=lambda: {seat: Witness(seat) for seat in range(3)})

    def viewer(self, seat: int) -> Viewer:
        """Who sits there."""
        return self.table.seat(seat) if seat else self.table.spectator

    async def examine(self) -> None:
        """Update what is hidden from whom, then look at GetMatch and at fresh and resumed watches."""
        views = {seat: await self.viewer(seat).view() for seat in range(3)}
        public = views[SPECTATOR].public
        hands = {seat: set(hand_of(views[seat])) for seat in (1, 2)}
        shown = {tile_text(tile) for _, tile in tiles_in(public.settlement)} | {
            tile_text(tile) for _, tile in tiles_in(public.result)
        }
        for seat, witness in self.witnesses.items():
            known = on_table(views[SPECTATOR]) | shown | hands.get(seat, set())
            witness.hidden = WHOLE_SET - known if public.round_number else set()
            assert hands.get(3 - seat, set()) - shown <= witness.hidden or seat == SPECTATOR
            witness.look(views[seat])
            for after_version in (0, max(1, public.version - 1)):
                async with self.viewer(seat).watching(after_version) as call:
                    response = await call.read()
                    assert isinstance(response, pb.WatchMatchResponse)
                    self.look_at_update(witness, response.update)

    def look_at_update(self, witness: Witness, update: pb.MatchUpdate) -> None:
        """The whole of it, unless a new round began at this version: its events may show the round before."""
        witness.look(update.view)
        new_round = any(event.HasField("round_dealt") for event in update.events)
        if not new_round:
            witness.look(update)
        for event in update.events:
            event_kind = event.WhichOneof("event")
            assert event_kind is not None
            for parent, _ in tiles_in(event):
                assert isinstance(parent, PUBLIC_PARENTS)
                assert event_kind in ("tile_played", "round_blocked")

    def hear(self, outcome: CommandOutcome, seat: int) -> None:
        """The answer to a command concerns its sender only."""
        for parent, _ in tiles_in(outcome.accepted):
            assert isinstance(parent, PUBLIC_PARENTS)
        assert outcome.HasField("accepted"), seat


@pytest.mark.parametrize("seed", [21, 22, 23])
async def test_no_message_of_a_match_holds_a_tile_that_its_viewer_may_not_know(server: Server, seed: int) -> None:
    """Faults 80, 85, 86, 88: the other hand, the boneyard, the opening tile; spectators see no hand at all."""
    server.entropy.chance.seed(seed)
    court = Court(await new_table(server.channel))
    court.table.chance.seed(seed)
    await court.examine()
    for _ in range(60):
        view = await court.table.on_turn_view()
        if is_over(view):
            break
        seat = view.own.seat
        court.hear(await court.table.seat(seat).submit(choose(court.table.chance, view)), seat)
        await court.examine()
    assert all(witness.seen > 100 for witness in court.witnesses.values())


def unknown_paths(message: Message, path: str = "") -> Iterator[str]:
    """Where a message holds fields that the contract does not name."""
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None and not descriptor.message_type.GetOptions().map_entry:
            for child in value if descriptor.is_repeated else [value]:
                yield from unknown_paths(child, f"{path}.{descriptor.name}")
    known = type(message).FromString(message.SerializeToString())
    known.DiscardUnknownFields()
    if known.SerializeToString() != message.SerializeToString():
        yield path


async def test_messages_hold_nothing_beside_the_contract(table: Table) -> None:
    """No field without a name could carry a secret past a reader of the contract."""
    for viewer in (*table.seats, table.spectator):
        assert list(unknown_paths(await viewer.update())) == []
    assert list(unknown_paths(await table.one.submit(START))) == []


async def test_only_the_player_on_turn_has_legal_actions(server: Server) -> None:
    """Channel 11: they would tell of the hand."""
    table = await new_table(server.channel, start=True)
    for _ in range(20):
        view = await table.on_turn_view()
        if view.public.phase not in (2, 3, 4):
            break
        waiting = await table.view_of(3 - view.own.seat)
        assert not waiting.own.legal_actions
        assert not waiting.own.HasField("must_play")
        assert all(not held.playable_ends for held in waiting.own.hand)
        await table.seat(view.own.seat).do(choose(table.chance, view))


async def test_a_draw_is_told_without_its_tile(server: Server) -> None:
    """Channel 4: the drawer finds it in the own hand, also after a reload (fault 89)."""
    table = await new_table(server.channel, start=True)
    view = await play_until(
        table, lambda view: any(action.command.HasField("draw_tile") for action in view.own.legal_actions)
    )
    drawer, other = table.seat(view.own.seat), table.seat(3 - view.own.seat)
    async with other.watching(view.public.version) as call:
        await call.read()
        outcome = await drawer.submit(choose(table.chance, view))
        response = await call.read()
    assert isinstance(response, pb.WatchMatchResponse)
    for events in (outcome.accepted.events, response.update.events):
        assert [event.WhichOneof("event") for event in events] == ["tile_drawn"]
        assert list(tiles_in(events[0])) == []
    (drawn,) = set(hand_of(outcome.view)) - set(hand_of(view))
    assert drawn in hand_of(await drawer.view())
    assert response.update.view.public.boneyard_size == view.public.boneyard_size - 1


async def test_refusals_tell_the_opponent_nothing(table: Table) -> None:
    """Channel 12: probing every tile at every end leaves no trace in what the opponent may ask for."""
    view = await table.on_turn_view()
    prober, other = table.seat(3 - view.own.seat), table.seat(view.own.seat)
    before = (await other.view()).SerializeToString()
    for tile in sorted(WHOLE_SET):
        assert (await prober.submit(play(f"{tile} E"))).HasField("refused")
    assert (await other.view()).SerializeToString() == before


@pytest.mark.parametrize(("seed", "ending"), [(50, "blocked"), (12, "dominoed")])
async def test_after_a_block_both_hands_are_shown_and_after_a_domino_none(
    server: Server, seed: int, ending: str
) -> None:
    """D5: the hands fix the payment of a block; after a domino they stay hidden until the match is over."""
    table, _ = await situation(server, lambda view: view.public.HasField("settlement"), seed=seed)
    public = (await table.spectator.view()).public
    assert public.settlement.WhichOneof("ending") == ending
    shown = [tile_text(tile) for _, tile in tiles_in(public)]
    hands = [tile for seat in (1, 2) for tile in hand_of(await table.view_of(seat))]
    assert sorted(shown) == (sorted(hands) if ending == "blocked" else [])


async def test_at_the_end_everybody_sees_both_hands(server: Server) -> None:
    """Nothing is secret any more but the boneyard."""
    table = await new_table(server.channel, start=True)
    await play_until(table, lambda view: view.public.boneyard_size < 14)
    hands = [hand_of(await table.view_of(seat)) for seat in (1, 2)]
    await table.one.do(RESIGN)
    result = (await table.spectator.view()).public.result
    assert [[tile_text(tile) for tile in shown.tiles] for shown in result.hands] == hands


async def test_views_are_the_same_to_the_byte_whenever_they_are_asked_for(table: Table) -> None:
    """Channel 26: a pure function of the match and the audience."""
    for viewer in (*table.seats, table.spectator):
        first = (await viewer.update()).view.SerializeToString()
        async with viewer.watching() as call:
            response = await call.read()
        assert isinstance(response, pb.WatchMatchResponse)
        assert response.update.view.SerializeToString() == first
        assert (await viewer.update()).view.SerializeToString() == first


async def test_the_own_hand_is_sorted(table: Table) -> None:
    """Channel 30: its order tells nothing of the deal."""
    for seat in (1, 2):
        hand = hand_of(await table.view_of(seat))
        assert hand == sorted(hand)
        assert len(hand) == 7


async def test_a_block_shows_hands_in_its_event_too() -> None:
    """The two public places of tiles in events are the played tile and the hands of a block."""
    hand = ShownHand(tiles=[Tile(low=1, high=2)])
    assert [type(parent) for parent, _ in tiles_in(RoundBlocked(hands=[hand]))] == [ShownHand]
