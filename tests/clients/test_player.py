"""`play`: the line-mode player, driven by a script of typed lines."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest

from spectacularbid.client.commands.saved import default_path
from spectacularbid.client.commands.terminal import BLANK_LINES
from spectacularbid.v1 import commands_pb2 as cm
from spectacularbid.v1 import match_service_pb2 as ms
from spectacularbid.v1 import outcomes_pb2 as oc
from spectacularbid.v1 import views_pb2 as vw
from spectacularbid.v1.deal_pb2 import DEAL_STATUS_COMMITTED as COMMITTED
from spectacularbid.v1.deal_pb2 import DEAL_STATUS_SERVER_ONLY as SERVER_ONLY
from tests.clients.build import (
    ACCEPT,
    DECLINE,
    ONE,
    REVEAL,
    START,
    TWO,
    accepted,
    action,
    bids,
    fair_deal,
    paid,
    refused,
    update,
    view,
    won,
)
from tests.clients.build import play as playing_of
from tests.clients.peer import Matches, Playing, StatusError, silence
from tests.clients.terminals import FRIEND, Typed, played, sent, showing

PLAYS = [playing_of("5-3 W", 15, paid(TWO, 15)), playing_of("5-3 E", 7)]


@pytest.fixture(autouse=True)
def _state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


async def test_a_match_is_played_by_the_numbers_of_the_choices(address: str, matches: Matches) -> None:
    """Start, a play, the result; the invite code for the friend comes first."""
    matches.play_scripts.append(showing(view(2, actions=[START]), view(3, actions=PLAYS), won(4)))
    paper = await played(address, Typed(["1", "2"]), *FRIEND)
    assert paper.lines[0] == "Invite code for your friend: invite"
    assert "1) start" in paper.lines
    assert "1) play 5-3 at W: total 15, +15" in paper.lines
    assert "2) play 5-3 at E: total 7" in paper.lines
    assert "Ann wins: the opponent's balance reached zero (rated)" in paper.lines
    assert sent(matches) == [START.command, PLAYS[1].command]
    assert not default_path("m").exists()


async def test_a_start_waits_until_the_other_player_can_choose_no_more(address: str, matches: Matches) -> None:
    """Who has committed keeps its entropy closed until then."""
    alone = view(2, actions=[START], fair_deal=fair_deal(COMMITTED, SERVER_ONLY))
    matches.play_scripts.append(showing(alone))
    paper = await played(address, Typed(["1"]), *FRIEND)
    assert any(line.startswith("Wait until the other player is here") for line in paper.lines)
    assert sent(matches) == []


async def test_a_number_is_sent_with_the_version_that_it_was_chosen_from(address: str, matches: Matches) -> None:
    """So that the second of two quick numbers cannot hit another list."""
    matches.play_scripts.append(showing(view(7, actions=PLAYS), won(8)))
    await played(address, Typed(["1"]), *FRIEND)
    assert matches.plays[0].commands[0].expected_version == 7


@pytest.mark.parametrize(
    ("listed", "line", "command"),
    [
        ([DECLINE, bids(15, 40)], "bid 20", cm.Command(make_bid=cm.Bid(points=20))),
        ([DECLINE, bids(15, 40)], "BID 17", cm.Command(make_bid=cm.Bid(points=17))),
        (
            [ACCEPT, bids(20, 40, credit=15, raising=True)],
            "raise 25",
            cm.Command(raise_bid=cm.Raise(points=25)),
        ),
        ([DECLINE, bids(15, 40)], "1", DECLINE.command),
    ],
)
async def test_bids_are_typed_as_points(
    address: str, matches: Matches, listed: list[vw.LegalAction], line: str, command: cm.Command
) -> None:
    """What the rules say to the amount, the service says."""
    matches.play_scripts.append(showing(view(2, actions=listed), won(3)))
    await played(address, Typed([line]), *FRIEND)
    assert sent(matches) == [command]


async def test_a_bid_range_is_shown_with_its_price(address: str, matches: Matches) -> None:
    """Without a number, since it needs an amount."""
    matches.play_scripts.append(showing(view(2, actions=[DECLINE, bids(15, 40)]), won(3)))
    paper = await played(address, Typed(["2", "bid", "bid lots", "1"]), *FRIEND)
    assert "   bid N (15..40 step 5, costs N)" in paper.lines
    assert "That is none of the choices." in paper.lines
    assert paper.lines.count("Say how many points, such as: bid 15") == 2


async def test_a_refusal_is_said_in_words_and_the_choice_stays(address: str, matches: Matches) -> None:
    """The same number may be typed again."""

    async def script(table: Playing) -> None:
        await table.say(update(view(2, actions=PLAYS)))
        first = await table.command()
        await table.answer(refused(first.command_id, 2, oc.REFUSAL_REASON_NOT_YOUR_TURN, "The other player decides."))
        second = await table.command()
        await table.answer(accepted(second.command_id, won(3)))
        await silence()

    matches.play_scripts.append(script)
    paper = await played(address, Typed(["1", "2"]), *FRIEND)
    assert "Refused: The other player decides." in paper.lines
    assert sent(matches) == [PLAYS[0].command, PLAYS[1].command]


async def test_help_clock_and_view_can_be_asked_for(address: str, matches: Matches) -> None:
    """The rules come from the service."""
    matches.play_scripts.append(showing(view(2, actions=PLAYS), won(3)))
    paper = await played(address, Typed(["help", "clock", "view", "nonsense", "1"]), *FRIEND)
    assert "A positive multiple of five transfers." in paper.lines
    assert any(line.startswith("Clocks unknown") for line in paper.lines)
    assert paper.lines.count("1) play 5-3 at W: total 15, +15") == 2
    assert "That is none of the choices." in paper.lines


async def test_resigning_asks_first(address: str, matches: Matches) -> None:
    """No goes on; yes resigns."""
    matches.play_scripts.append(showing(view(2, actions=PLAYS), won(3, TWO)))
    paper = await played(address, Typed(["resign", "no", "resign", "yes"]), *FRIEND)
    assert "The match goes on." in paper.lines
    assert sent(matches) == [cm.Command(resign=cm.Resign())]


async def test_a_break_of_the_connection_is_told(address: str, matches: Matches) -> None:
    """And that it is mended."""

    async def breaking(table: Playing) -> None:
        await table.say(update(view(2, actions=PLAYS)))
        await table.command()
        raise StatusError(grpc.StatusCode.UNAVAILABLE)

    async def mended(table: Playing) -> None:
        command = await table.command()
        await table.answer(accepted(command.command_id, won(3)))
        await silence()

    matches.play_scripts.extend([breaking, mended])
    paper = await played(address, Typed(["1"]), *FRIEND)
    lost = paper.lines.index("Connection lost; trying again ...")
    assert paper.lines[lost + 1] == "Connected again."


async def test_lines_of_a_script_wait_until_there_is_a_choice(address: str, matches: Matches) -> None:
    """The second line is not wasted on the opponent's turn."""

    async def script(table: Playing) -> None:
        await table.say(update(view(2, actions=[START])))
        start = await table.command()
        await table.answer(accepted(start.command_id, view(3)))
        await table.say(update(view(4, actions=PLAYS)))
        command = await table.command()
        await table.answer(accepted(command.command_id, won(5)))
        await silence()

    matches.play_scripts.append(script)
    await played(address, Typed(["1", "1"]), *FRIEND)
    assert sent(matches) == [START.command, PLAYS[0].command]


async def test_a_person_may_type_while_the_opponent_thinks(address: str, matches: Matches) -> None:
    """Help and clock work; a number does not."""
    matches.play_scripts.append(showing(view(2)))
    paper = await played(address, Typed(["1", "bid 15", "clock", "quit"], interactive=True), *FRIEND)
    assert "There is nothing to choose now." in paper.lines
    assert "There is nothing to bid for now." in paper.lines


async def test_the_opponents_comings_and_goings_are_told(address: str, matches: Matches) -> None:
    """From the presence that rides with each update."""

    async def script(table: Playing) -> None:
        await table.say(update(view(2, actions=[START])))
        start = await table.command()
        await table.answer(accepted(start.command_id, view(3)))
        ending = update(won(4))
        ending.presence.CopyFrom(ms.Presence(seat_one=True))
        await table.say(ending)
        await silence()

    matches.play_scripts.append(script)
    paper = await played(address, Typed(["1"]), *FRIEND)
    assert paper.lines.count("Bob is away") == 1


def handover(version: int, seat: int, actions: list[vw.LegalAction], hand: str) -> vw.MatchView:
    """A shared device that waits for a seat's Reveal, or shows its hand."""
    viewer = ONE if seat == ONE else TWO
    return view(version, actions=actions, hand=hand, viewer=viewer, mode=vw.MATCH_MODE_SHARED_DEVICE, turn=viewer)


async def test_nothing_of_a_hand_is_on_the_screen_during_a_handover(address: str, matches: Matches) -> None:
    """The screen is cleared before the next player is called, and their hand comes only after Reveal."""
    ending = won(5)
    ending.public.mode = vw.MATCH_MODE_SHARED_DEVICE
    matches.play_scripts.append(
        showing(
            handover(2, ONE, PLAYS, "5-3"),
            handover(3, TWO, [REVEAL], ""),
            handover(4, TWO, [action(PLAYS[0].command)], "6-4"),
            ending,
        )
    )
    paper = await played(address, Typed(["1", "1", "1"]), "--pass-and-play", "--name", "Ann", "--second-name", "Bob")
    (request,) = matches.creates
    assert (request.mode, request.second_display_name) == (vw.MATCH_MODE_SHARED_DEVICE, "Bob")
    before, after = paper.getvalue().split("\n" * BLANK_LINES)
    assert "Your hand: 5-3" in before
    cover, revealed = after.split("1) reveal")
    assert "Hand the device to Bob." in cover
    assert "5-3" not in cover
    assert "Your hand: 6-4" in revealed
