"""Both players on one device: a hand is in a view only from Reveal to the end of that decision (K7)."""

from spectacularbid.v1 import tiles_pb2
from spectacularbid.v1.outcomes_pb2 import REFUSAL_REASON_WRONG_PHASE
from spectacularbid.v1.views_pb2 import STOP_REASON_HANDOVER, MatchView
from tests.support.players import (
    RESIGN,
    REVEAL,
    START,
    Table,
    choose,
    hand_of,
    is_over,
    legal_commands,
    new_table,
    play_until,
)
from tests.support.server import Server


async def table_of(server: Server) -> tuple[Table, MatchView]:
    """A started match on a shared device."""
    table = await new_table(server.channel, shared_device=True)
    return table, await table.start()


def is_handover(view: MatchView) -> bool:
    """Whether the device is being handed over."""
    return view.public.clock.stopped.reason == STOP_REASON_HANDOVER


async def test_no_hand_is_shown_while_the_device_is_handed_over(server: Server) -> None:
    """And no clock runs; all that can be done is to reveal."""
    table, view = await table_of(server)
    assert is_handover(view)
    assert hand_of(view) == []
    assert legal_commands(view) == [REVEAL]
    assert not view.own.HasField("must_play")
    assert not view.public.clock.stopped.HasField("ends_at_unix_ns")
    refused = await table.one.submit(START)
    assert refused.refused.reason == REFUSAL_REASON_WRONG_PHASE


async def test_a_reveal_shows_the_hand_and_starts_the_clock(server: Server) -> None:
    """Of the seat whose decision it is."""
    table, handover = await table_of(server)
    view = await table.one.do(REVEAL)
    assert view.own.seat == handover.public.turn == view.public.clock.running.seat
    assert len(hand_of(view)) == 7
    assert view.public.clock.running.deadline_unix_ns - view.public.clock.running.started_at_unix_ns == 130 * 10**9


async def test_the_hand_disappears_with_the_decision_that_it_was_shown_for(server: Server) -> None:
    """The answer to the play already shows none; nobody sees the other's hand at any time."""
    table, _ = await table_of(server)
    decisions = 0
    revealed = None
    async with table.one.watching(1):
        view = await table.on_turn_view()
        while decisions < 12 and not is_over(view):
            command = choose(table.chance, view)
            answered = await table.one.do(command)
            kind = command.WhichOneof("command")
            if kind == "reveal":
                revealed = answered.own.seat
                decisions += 1
            if is_handover(answered):
                revealed = None
            if hand_of(answered):
                assert answered.own.seat == revealed == answered.public.turn
            elif kind == "draw_tile":
                raise AssertionError("a draw does not end the decision")
            assert hand_of(await table.spectator.view()) == []
            view = answered


async def test_a_draw_keeps_the_hand_in_view(server: Server) -> None:
    """The same player goes on."""
    table, _ = await table_of(server)
    view = await play_until(table, lambda view: any(command.HasField("draw_tile") for command in legal_commands(view)))
    answered = await table.one.do(choose(table.chance, view))
    assert len(hand_of(answered)) == len(hand_of(view)) + 1
    assert answered.public.clock == view.public.clock


async def test_one_start_and_one_continue_are_enough(server: Server) -> None:
    """S1: there is one device."""
    table, _ = await table_of(server)
    view = await play_until(table, lambda view: view.public.HasField("settlement"))
    if is_over(view):
        return
    assert hand_of(view) == []
    continued = await table.one.do(legal_commands(view)[0])
    assert continued.public.round_number == 2
    assert is_handover(continued)


async def test_the_device_says_who_resigns(server: Server) -> None:
    """Or it is the player on turn."""
    for seat in (1, 2):
        table, _ = await table_of(server)
        command = type(RESIGN)()
        command.resign.seat = seat  # type: ignore[assignment]
        assert (await table.one.do(command)).public.result.won.winner == 3 - seat
    table, view = await table_of(server)
    assert (await table.one.do(RESIGN)).public.result.won.winner == 3 - view.public.turn


async def test_between_rounds_the_device_must_say_who_resigns(server: Server) -> None:
    """Nobody is on turn then, and seat ONE must not lose by chance."""
    table, _ = await table_of(server)
    view = await play_until(table, lambda view: view.public.HasField("settlement") and not is_over(view))
    assert not is_over(view)
    outcome = await table.one.submit(RESIGN)
    assert outcome.refused.reason == REFUSAL_REASON_WRONG_PHASE
    command = type(RESIGN)()
    command.resign.seat = tiles_pb2.SEAT_TWO
    assert (await table.one.do(command)).public.result.won.winner == tiles_pb2.SEAT_ONE
