"""Commitments to entropy: public facts before the first deal. What they commit to never enters the engine."""

import pytest

from engine import commands as cmd
from engine import events as ev
from engine.evolve import advance
from engine.legal import LegalCommand, legal_actions
from engine.refusals import RefusalReason
from engine.seats import SEATS, PerSeat, Seat
from engine.view import public_view
from tests.support.rules.given import CREATED, ON_SHARED_DEVICE, ONE, TWO, Match, events_of, reason_of, served

C1, C2 = b"1" * 32, b"2" * 32


@pytest.mark.parametrize("seat", SEATS)
def test_a_seat_commits_before_its_start(seat: Seat) -> None:
    """A public event; a later commitment replaces it, and nothing else changes."""
    match = Match()
    before = match.state
    assert events_of(match.send(seat, cmd.CommitEntropy(C1))) == (ev.EntropyCommitted(seat, C1),)
    match.send(seat, cmd.CommitEntropy(C2))
    assert match.state.commitments == PerSeat(b"", b"").having(seat, C2)
    assert match.state._replace(commitments=before.commitments, version=before.version) == before
    assert legal_actions(match.state, seat) == (LegalCommand(cmd.Start()),)


def test_after_the_own_start_a_commitment_is_refused() -> None:
    """It opened what was committed to, or nothing."""
    match = Match()
    match.send(ONE, cmd.Start())
    assert reason_of(match.send(ONE, cmd.CommitEntropy(C1))) is RefusalReason.ALREADY_READY
    match.send(TWO, cmd.CommitEntropy(C2))
    match.send(TWO, cmd.Start())
    assert reason_of(match.send(TWO, cmd.CommitEntropy(C2))) is RefusalReason.WRONG_PHASE


def test_after_the_other_seat_has_opened_a_commitment_is_refused() -> None:
    """Who may know its entropy could choose among deals; a seat that is ready without one opened nothing."""
    match = Match()
    match.send(ONE, cmd.CommitEntropy(C1))
    match.send(ONE, cmd.Start())
    assert reason_of(match.send(TWO, cmd.CommitEntropy(C2))) is RefusalReason.WRONG_PHASE
    assert match.state.commitments == PerSeat(C1, b"")


def test_the_view_says_how_far_each_seat_takes_part() -> None:
    """The commitment of the service from the first version on; opened with the own Start, and then for good."""
    match = Match()
    match.send(TWO, cmd.CommitEntropy(C2))
    assert public_view(match.state).fair_deal.opened == PerSeat(one=False, two=False)
    match.start()
    shown = public_view(match.state).fair_deal
    assert (shown.commitments, shown.opened) == (PerSeat(b"", C2), PerSeat(one=False, two=True))
    created = ev.MatchCreated(0, shared_device=False, start_timeout_ns=1, continue_timeout_ns=1, server_commitment=C1)
    assert public_view(advance(None, (created,))).fair_deal.server_commitment == C1


def test_a_player_may_commit_with_the_seat() -> None:
    """Without effect once seat ONE has opened."""
    state = advance(None, (CREATED,))
    seated, committed = ev.PlayerSeated(TWO, "Bo"), ev.EntropyCommitted(TWO, C2)
    assert served(state, cmd.TakeSeat(TWO, "Bo", C2)) == (seated, committed)
    opened = advance(state, (ev.EntropyCommitted(ONE, C1), ev.PlayerReady(ONE)))
    assert served(opened, cmd.TakeSeat(TWO, "Bo", C2)) == (seated,)


@pytest.mark.parametrize(
    ("before", "reason", "evidence"),
    [
        ((), ev.AbortReason.START_TIMEOUT, "not started in time"),
        (((ONE, cmd.Start()),), ev.AbortReason.START_TIMEOUT, "not started in time"),
        (
            ((ONE, cmd.CommitEntropy(C1)),),
            ev.AbortReason.DEAL_NOT_OPENED,
            "seat ONE committed to entropy and did not open it",
        ),
        (
            ((ONE, cmd.CommitEntropy(C1)), (TWO, cmd.CommitEntropy(C2))),
            ev.AbortReason.DEAL_NOT_OPENED,
            "seat ONE and TWO committed to entropy and did not open it",
        ),
        (
            ((ONE, cmd.CommitEntropy(C1)), (ONE, cmd.Start())),
            ev.AbortReason.START_TIMEOUT,
            "not started in time",
        ),
        (
            ((ONE, cmd.CommitEntropy(C1)), (TWO, cmd.CommitEntropy(C2)), (ONE, cmd.Start())),
            ev.AbortReason.DEAL_NOT_OPENED,
            "seat TWO committed to entropy and did not open it",
        ),
    ],
)
def test_who_commits_and_does_not_open_voids_the_match(
    before: tuple[tuple[Seat, cmd.Command], ...], reason: ev.AbortReason, evidence: str
) -> None:
    """At the end of the start timeout, before any deal, with a reason of its own."""
    match = Match()
    for seat, command in before:
        events_of(match.send(seat, command))
    due_ns = match.state.due_ns
    assert due_ns is not None
    assert match.serve(cmd.CheckClock(due_ns)) == (ev.MatchAborted(reason, evidence, due_ns),)


def test_a_shared_device_commits_for_both_seats() -> None:
    """One Start opens both."""
    match = Match(created=ON_SHARED_DEVICE)
    match.send(ONE, cmd.CommitEntropy(C1))
    match.send(TWO, cmd.CommitEntropy(C2))
    match.start()
    assert public_view(match.state).fair_deal.opened == PerSeat(one=True, two=True)
