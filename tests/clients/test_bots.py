"""The two bots, and playing a whole match."""

from __future__ import annotations

from random import Random

import pytest

from spectacularbid.client.actions import bids_of, is_bid, kind_of
from spectacularbid.client.bots import STRATEGIES, BotStuckError, Strategy, greedy_choice, random_choice, run_bot
from spectacularbid.client.session import MatchSession
from spectacularbid.v1 import commands_pb2 as cm
from spectacularbid.v1 import outcomes_pb2 as oc
from spectacularbid.v1 import views_pb2 as vw
from spectacularbid.v1.deal_pb2 import DEAL_STATUS_COMMITTED as COMMITTED
from spectacularbid.v1.deal_pb2 import DEAL_STATUS_SERVER_ONLY as SERVER_ONLY
from tests.clients.build import (
    ACCEPT,
    CONTINUE,
    DECLINE,
    DRAW,
    PASS,
    REVEAL,
    START,
    TWO,
    accepted,
    action,
    bids,
    fair_deal,
    paid,
    play,
    refused,
    update,
    view,
    won,
)
from tests.clients.peer import Matches, Playing, silence

ACCEPT_15 = action(ACCEPT.command, paid(TWO, 15))
UNKNOWN_ACTION = vw.LegalAction.FromString(b"\xa2\x06\x03new")
UNKNOWN_COMMAND = vw.LegalAction(command=cm.Command.FromString(b"\xa2\x06\x03new"))

VIEWS = {
    "start": view(actions=[START]),
    "continue": view(actions=[CONTINUE]),
    "reveal": view(actions=[REVEAL]),
    "first bid": view(actions=[DECLINE, bids(15, 150)], hand="6-4 1-0"),
    "only one bid": view(actions=[DECLINE, bids(15, 15)], balances=(16, 284), hand="5-5"),
    "raise": view(actions=[ACCEPT_15, bids(20, 165, credit=15, raising=True)], hand="5-5"),
    "no bid to pay": view(actions=[ACCEPT_15], balances=(10, 290)),
    "an empty range": view(actions=[DECLINE, bids(15, 10)], balances=(10, 290)),
    "only losing bids": view(actions=[DECLINE, bids(15, 15)], balances=(15, 285), hand="6-4"),
    "plays": view(actions=[play("5-3 W", 15, paid(TWO, 15)), play("6-6 E", 24), play("4-1 N", 5, paid(TWO, 5))]),
    "draw": view(actions=[DRAW]),
    "pass": view(actions=[PASS]),
    "with what is new": view(actions=[UNKNOWN_ACTION, UNKNOWN_COMMAND, DRAW]),
}
EMPTY_VIEWS = {
    "not on turn": view(),
    "a spectator": vw.MatchView(public=view().public),
    "only what is new": view(actions=[UNKNOWN_ACTION, UNKNOWN_COMMAND]),
}


def is_listed(command: cm.Command, shown: vw.MatchView) -> bool:
    """Whether the view lists the command, as it is or within a range."""
    for listed in shown.own.legal_actions:
        if is_bid(listed) and kind_of(listed) == command.WhichOneof("command"):
            points = command.raise_bid.points if listed.HasField("raise_bid") else command.make_bid.points
            return points in bids_of(listed)
        if listed.command == command:
            return True
    return False


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
@pytest.mark.parametrize("shown", VIEWS.values(), ids=VIEWS)
def test_a_bot_chooses_what_is_listed(strategy: Strategy, shown: vw.MatchView) -> None:
    """Under fifty seeds, and the same choice for the same seed."""
    for seed in range(50):
        command = strategy(shown, Random(seed))
        assert command is not None
        assert is_listed(command, shown)
        assert command == strategy(shown, Random(seed))


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
@pytest.mark.parametrize("shown", EMPTY_VIEWS.values(), ids=EMPTY_VIEWS)
def test_a_bot_waits_while_nothing_is_listed(strategy: Strategy, shown: vw.MatchView) -> None:
    """Actions of tomorrow are not chosen: it could not tell what they do."""
    assert strategy(shown, Random(1)) is None


def test_the_random_bot_gets_around() -> None:
    """Every play is chosen under some seed; a bid that would lose at once under none."""
    chosen = [random_choice(VIEWS["plays"], Random(seed)) for seed in range(50)]
    assert all(listed.command in chosen for listed in VIEWS["plays"].own.legal_actions)
    assert {str(random_choice(VIEWS["only losing bids"], Random(seed))) for seed in range(50)} == {str(DECLINE.command)}


@pytest.mark.parametrize(
    ("shown", "choice"),
    [
        (VIEWS["plays"], play("5-3 W").command),
        (view(actions=[play("5-3 W", 7), play("6-6 E", 24)]), play("6-6 E").command),
        (
            view(actions=[play("6-6 W", 20, paid(TWO, 5, earned=20)), play("2-1 E", 10, paid(TWO, 10))]),
            play("2-1 E").command,
        ),
        (VIEWS["first bid"], cm.Command(make_bid=cm.Bid(points=15))),
        (view(actions=[DECLINE, bids(15, 150)], hand="6-6 1-0"), DECLINE.command),
        (VIEWS["only losing bids"], DECLINE.command),
        (VIEWS["raise"], cm.Command(raise_bid=cm.Raise(points=20))),
        (view(actions=[ACCEPT_15, bids(20, 165, credit=15, raising=True)], hand="6-6"), ACCEPT.command),
        (VIEWS["pass"], PASS.command),
    ],
    ids=[
        "most points",
        "else most pips",
        "points paid, not earned",
        "a good opening is worth a bid",
        "a poor one is not",
        "never all",
        "a raise for a good opening",
        "else the payment",
        "nothing else",
    ],
)
def test_the_greedy_bot_takes_the_most(shown: vw.MatchView, choice: cm.Command) -> None:
    """Points first, then pips; bids by what the opening seems worth."""
    assert greedy_choice(shown, Random(1)) == choice


def test_the_greedy_bot_breaks_ties_by_chance() -> None:
    """Two ends, same points, same tile."""
    tied = view(actions=[play("5-3 W", 7), play("5-3 E", 7)])
    assert {str(greedy_choice(tied, Random(seed))) for seed in range(50)} == {
        str(play("5-3 W").command),
        str(play("5-3 E").command),
    }


async def test_a_bot_plays_until_the_result(session: MatchSession, matches: Matches) -> None:
    """It says Start without a version, since both players may do so at once; it plays with one."""

    async def script(playing: Playing) -> None:
        await playing.say(update(view(2, actions=[START])))
        start = await playing.command()
        await playing.answer(accepted(start.command_id, view(3)))
        await playing.say(update(view(4, actions=[DRAW])))
        draw = await playing.command()
        await playing.answer(accepted(draw.command_id, won(5)))
        await silence()

    matches.play_scripts.append(script)
    versions: list[int] = []
    result = await run_bot(
        session,
        greedy_choice,
        rng=Random(1),
        on_update=lambda seen: versions.append(seen.view.public.version),
    )
    assert result == won(5).public.result
    (playing,) = matches.plays
    assert [command.command for command in playing.commands] == [START.command, DRAW.command]
    assert [command.HasField("expected_version") for command in playing.commands] == [False, True]
    assert versions == [2, 3, 4, 5]


async def test_a_bot_that_was_overtaken_goes_on_with_the_newer_view(session: MatchSession, matches: Matches) -> None:
    """A stale version is nobody's fault."""

    async def script(playing: Playing) -> None:
        await playing.say(update(view(2, actions=[DRAW])))
        stale = await playing.command()
        newer = view(3, actions=[PASS])
        await playing.answer(refused(stale.command_id, newer, oc.REFUSAL_REASON_STALE_VERSION))
        again = await playing.command()
        await playing.answer(accepted(again.command_id, won(4)))
        await silence()

    matches.play_scripts.append(script)
    await run_bot(session, greedy_choice, rng=Random(1))
    (playing,) = matches.plays
    assert [command.command for command in playing.commands] == [DRAW.command, PASS.command]


async def test_a_bot_whose_listed_action_is_refused_says_so(session: MatchSession, matches: Matches) -> None:
    """Rather than trying for ever."""

    async def script(playing: Playing) -> None:
        await playing.say(update(view(2, actions=[DRAW])))
        command = await playing.command()
        await playing.answer(refused(command.command_id, 2, oc.REFUSAL_REASON_BONEYARD_EMPTY, "Nothing left."))
        await silence()

    matches.play_scripts.append(script)
    with pytest.raises(BotStuckError, match=r"Nothing left\."):
        await run_bot(session, greedy_choice, rng=Random(1))


async def test_a_bot_starts_when_the_other_seat_has_committed(session: MatchSession, matches: Matches) -> None:
    """Not before, although Start is listed."""

    async def script(table: Playing) -> None:
        await table.say(update(view(2, actions=[START], fair_deal=fair_deal(COMMITTED, SERVER_ONLY))))
        await table.say(update(view(3, actions=[START], fair_deal=fair_deal(COMMITTED, COMMITTED))))
        command = await table.command()
        assert command.command == START.command
        await table.answer(accepted(command.command_id, won(4)))
        await silence()

    shown: list[int] = []
    matches.play_scripts.append(script)
    result = await run_bot(
        session, greedy_choice, rng=Random(1), on_update=lambda each: shown.append(each.view.public.version)
    )
    assert result.HasField("won")
    assert shown[-2:] == [3, 4]
