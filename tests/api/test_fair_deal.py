"""The fair deal over the real port: commit, open, play, prove; and what does not match changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import grpc
import pytest
import pytest_asyncio

from spectacularbid.client.fair_deal import problems, seat_commitment, server_commitment
from spectacularbid.v1 import commands_pb2 as cmd
from spectacularbid.v1 import match_service_pb2 as pb
from spectacularbid.v1.deal_pb2 import (
    DEAL_STATUS_COMMITTED,
    DEAL_STATUS_OPENED,
    DEAL_STATUS_SERVER_ONLY,
    DealProof,
    DealStatus,
)
from spectacularbid.v1.events_pb2 import ABORT_REASON_DEAL_NOT_OPENED
from spectacularbid.v1.match_service_pb2_grpc import MatchServiceStub
from spectacularbid.v1.outcomes_pb2 import REFUSAL_REASON_ALREADY_READY, REFUSAL_REASON_WRONG_PHASE
from spectacularbid.v1.tiles_pb2 import SEAT_ONE, SEAT_TWO, SEAT_UNSPECIFIED, Seat
from spectacularbid.v1.views_pb2 import MATCH_MODE_ONLINE, MatchView
from tests.support.players import RESIGN, START, Table, Viewer, choose, is_over, new_id, new_table, play_until
from tests.support.rejections import rejection
from tests.support.server import Server, served
from tests.support.unchanged import changing_nothing

E1, E2 = bytes(range(32)), bytes(range(32, 64))


@pytest_asyncio.fixture(loop_scope="session")
async def fair(tmp_path: Path) -> AsyncIterator[Server]:
    """A service of its own that deals as it does in earnest."""
    async with served(tmp_path / "fair.sqlite3") as server:
        server.entropy.is_fair = True
        yield server


def commit(
    match_id: str, seat: Seat.ValueType, entropy: bytes, *, named: Seat.ValueType = SEAT_UNSPECIFIED
) -> cmd.Command:
    """The commitment of a seat to its entropy."""
    commitment = seat_commitment(match_id, seat, entropy)
    return cmd.Command(commit_entropy=cmd.CommitEntropy(commitment=commitment, seat=named))


def start(entropy: bytes, second: bytes | None = None) -> cmd.Command:
    """Ready, with the own entropy."""
    return cmd.Command(start=cmd.Start(entropy=entropy, second_entropy=second))


def statuses(view: MatchView) -> list[DealStatus.ValueType]:
    """How far both seats took part."""
    return [seat.status for seat in view.public.fair_deal.seats]


async def committed(server: Server) -> Table:
    """A match to which both seats have committed."""
    table = await new_table(server.channel)
    await table.one.do(commit(table.one.match_id, SEAT_ONE, E1))
    await table.two.do(commit(table.two.match_id, SEAT_TWO, E2))
    return table


async def proof_for(viewer: Viewer) -> DealProof:
    """The proof of the deal."""
    request = pb.GetDealProofRequest(match_id=viewer.match_id)
    return (await viewer.stub.GetDealProof(request, metadata=viewer.metadata)).proof


async def test_a_match_is_committed_to_opened_played_and_proven(fair: Server) -> None:
    """All along the same commitments are shown; at the end everybody gets the same proof, and it holds."""
    table = await committed(fair)
    view = await table.one.view()
    shown = view.public.fair_deal.server_commitment
    assert statuses(view) == [DEAL_STATUS_COMMITTED] * 2
    assert statuses(await table.one.do(start(E1))) == [DEAL_STATUS_OPENED, DEAL_STATUS_COMMITTED]
    assert statuses(await table.two.do(start(E2))) == [DEAL_STATUS_OPENED] * 2
    await play_until(table, is_over)
    proofs = [await proof_for(viewer) for viewer in (table.one, table.two, table.spectator)]
    proof = proofs[0]
    assert proofs == [proof] * 3
    assert problems(proof) == []
    assert [seat.entropy for seat in proof.seats] == [E1, E2]
    assert proof.server_commitment == shown == server_commitment(proof.match_id, proof.secret)
    assert len(proof.rounds) == (await table.one.view()).public.round_number


async def test_who_does_not_care_plays_as_before(fair: Server) -> None:
    """Both seats are marked, and the proof holds all the same."""
    table = await new_table(fair.channel, start=True)
    assert statuses(await table.one.view()) == [DEAL_STATUS_SERVER_ONLY] * 2
    await table.one.do(RESIGN)
    assert problems(await proof_for(table.two)) == []


async def test_create_and_every_view_show_the_service_s_commitment(server: Server) -> None:
    """To all three audiences, from the first answer on."""
    stub = MatchServiceStub(server.channel)
    made = await stub.CreateMatch(pb.CreateMatchRequest(request_id=new_id(), mode=MATCH_MODE_ONLINE))
    assert len(made.server_commitment) == 32
    assert made.update.view.public.fair_deal.server_commitment == made.server_commitment
    for token in (made.token, made.spectator_token):
        view = await Viewer(stub, made.match_id, token).view()
        assert view.public.fair_deal.server_commitment == made.server_commitment


async def test_who_knows_the_match_commits_with_join(server: Server) -> None:
    """The commitment comes with the seat."""
    stub = MatchServiceStub(server.channel)
    made = await stub.CreateMatch(pb.CreateMatchRequest(request_id=new_id(), mode=MATCH_MODE_ONLINE))
    commitment = seat_commitment(made.match_id, SEAT_TWO, E2)
    request = pb.JoinMatchRequest(request_id=new_id(), invite_code=made.invite_code, seat_commitment=commitment)
    joined = await stub.JoinMatch(request)
    assert statuses(joined.update.view) == [DEAL_STATUS_SERVER_ONLY, DEAL_STATUS_COMMITTED]
    assert joined.update.view.public.fair_deal.seats[1].commitment == commitment


BAD_STARTS: dict[str, Callable[[], cmd.Command]] = {
    "another entropy": lambda: start(E2),
    "none at all": lambda: START,
    "31 bytes": lambda: start(E1[1:]),
    "33 bytes": lambda: start(E1 + b"!"),
    "no bytes": lambda: start(b""),
    "another seat's besides": lambda: start(E1, E2),
}


@pytest.mark.parametrize("name", BAD_STARTS)
async def test_what_does_not_open_the_commitment_changes_nothing(server: Server, name: str) -> None:
    """INVALID_ARGUMENT; the very same command id then carries the right entropy."""
    table = await committed(server)
    command_id = new_id()
    async with changing_nothing(table):
        answer = await rejection(table.one.submit(BAD_STARTS[name](), command_id=command_id))
    assert answer.code is grpc.StatusCode.INVALID_ARGUMENT
    assert answer.reason in {"ENTROPY_NOT_MATCHING", "MALFORMED_REQUEST"}
    outcome = await table.one.submit(start(E1), command_id=command_id)
    assert outcome.HasField("accepted")
    assert not outcome.repeated
    again = await table.one.submit(start(E1), command_id=command_id)
    assert again.repeated


async def test_entropy_without_a_commitment_is_malformed(server: Server) -> None:
    """It could have been chosen late."""
    table = await new_table(server.channel)
    counted = server.sample("specbid_commands_total", kind="Start", outcome="invalid")
    async with changing_nothing(table):
        answer = await rejection(table.one.submit(start(E1)))
    assert (answer.code, answer.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "ENTROPY_NOT_MATCHING")
    assert server.sample("specbid_commands_total", kind="Start", outcome="invalid") == counted + 1


@pytest.mark.parametrize("length", [0, 31, 33])
async def test_a_commitment_has_32_bytes(server: Server, length: int) -> None:
    """By command and, unless it is left out, with Join."""
    table = await new_table(server.channel)
    command = cmd.Command(commit_entropy=cmd.CommitEntropy(commitment=bytes(length)))
    async with changing_nothing(table):
        malformed = await rejection(table.one.submit(command))
    assert (malformed.code, malformed.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "MALFORMED_REQUEST")
    if length:
        request = pb.JoinMatchRequest(request_id=new_id(), invite_code="ABC", seat_commitment=bytes(length))
        assert (await rejection(table.one.stub.JoinMatch(request))).code is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_commitment_may_be_replaced_until_anything_is_opened(server: Server) -> None:
    """A client that lost its entropy commits anew; who could know the other's entropy may not."""
    table = await committed(server)
    await table.two.do(commit(table.two.match_id, SEAT_TWO, E1))
    await table.one.do(start(E1))
    own = await table.one.submit(commit(table.one.match_id, SEAT_ONE, E2))
    other = await table.two.submit(commit(table.two.match_id, SEAT_TWO, E2))
    assert own.refused.reason == REFUSAL_REASON_ALREADY_READY
    assert other.refused.reason == REFUSAL_REASON_WRONG_PHASE
    await table.two.do(start(E1))
    assert statuses(await table.two.view()) == [DEAL_STATUS_OPENED] * 2


async def test_a_shared_device_commits_and_opens_for_both(fair: Server) -> None:
    """Like Resign, the command names the seat; one Start opens both."""
    table = await new_table(fair.channel, shared_device=True)
    await table.one.do(commit(table.one.match_id, SEAT_ONE, E1))
    await table.one.do(commit(table.one.match_id, SEAT_TWO, E2, named=SEAT_TWO))
    assert (await rejection(table.one.submit(start(E1)))).reason == "ENTROPY_NOT_MATCHING"
    assert statuses(await table.one.do(start(E1, E2))) == [DEAL_STATUS_OPENED] * 2
    await table.one.do(cmd.Command(resign=cmd.Resign(seat=SEAT_ONE)))
    proof = await proof_for(table.one)
    assert problems(proof) == []
    assert [seat.entropy for seat in proof.seats] == [E1, E2]


async def test_online_nobody_names_a_seat(server: Server) -> None:
    """The token decides."""
    table = await new_table(server.channel)
    answer = await rejection(table.one.submit(commit(table.one.match_id, SEAT_TWO, E2, named=SEAT_TWO)))
    assert answer.code is grpc.StatusCode.INVALID_ARGUMENT


async def test_who_commits_and_never_opens_voids_the_match(server: Server) -> None:
    """Before any deal, with a reason of its own that is counted."""
    counted = server.sample("specbid_matches_finished_total", result="deal_not_opened")
    stub = MatchServiceStub(server.channel)
    request = pb.CreateMatchRequest(request_id=new_id(), mode=MATCH_MODE_ONLINE)
    request.start_timeout.seconds = 1
    made = await stub.CreateMatch(request)
    one = Viewer(stub, made.match_id, made.token)
    await one.do(commit(made.match_id, SEAT_ONE, E1))
    views: list[MatchView] = []
    async with one.watching() as call:
        while not views:
            response = await call.read()
            assert isinstance(response, pb.WatchMatchResponse)
            if is_over(response.update.view):
                views.append(response.update.view)
    assert views[0].public.result.aborted.reason == ABORT_REASON_DEAL_NOT_OPENED
    assert views[0].public.round_number == 0
    assert server.sample("specbid_matches_finished_total", result="deal_not_opened") == counted + 1
    proof = await proof_for(one)
    assert problems(proof) == []
    assert not proof.rounds


async def test_before_the_end_nothing_is_proven(fair: Server) -> None:
    """FAILED_PRECONDITION for everybody, whatever the phase; a token of another match gets nothing ever."""
    table = await committed(fair)
    other = await new_table(fair.channel)
    async with changing_nothing(table):
        answers = [await rejection(proof_for(viewer)) for viewer in (table.one, table.two, table.spectator)]
    for answer in answers:
        assert (answer.code, answer.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "MATCH_NOT_OVER")
    await table.one.do(start(E1))
    await table.two.do(start(E2))
    assert (await rejection(proof_for(table.one))).code is grpc.StatusCode.FAILED_PRECONDITION
    await table.one.do(RESIGN)
    stranger = Viewer(table.one.stub, table.one.match_id, other.one.token)
    assert (await rejection(proof_for(stranger))).code is grpc.StatusCode.PERMISSION_DENIED
    assert problems(await proof_for(table.two)) == []


async def test_a_restart_between_commitment_and_deal_and_between_rounds_changes_nothing(tmp_path: Path) -> None:
    """What was committed to and opened is in the store: the next process deals on."""
    database = tmp_path / "matches.sqlite3"
    async with served(database) as server:
        server.entropy.is_fair = True
        table = await committed(server)
        await table.one.do(start(E1))
    async with served(database, seed=2) as server:
        server.entropy.is_fair = True
        table = table.at(server.channel)
        await table.two.do(start(E2))
        await play_until(table, lambda view: view.public.HasField("settlement"))
    async with served(database, seed=3) as server:
        server.entropy.is_fair = True
        table = table.at(server.channel)
        await play_until(table, lambda view: view.public.round_number == 2)
        await table.one.do(RESIGN)
        proof = await proof_for(table.two)
        assert problems(proof) == []
        assert len(proof.rounds) == 2


async def test_no_live_answer_holds_the_secret_or_an_entropy(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Raw, as hex or in parts: not in what players and spectators are sent, and never in what the process writes."""
    async with served(tmp_path / "matches.sqlite3") as server:
        server.entropy.is_fair = True
        table = await committed(server)
        answers: list[bytes] = []
        for player, command in ((table.one, start(E1)), (table.two, start(E2))):
            answers.append((await player.submit(command)).SerializeToString())
        for _ in range(20):
            view = await table.on_turn_view()
            if is_over(view):
                break
            outcome = await table.seat(view.own.seat).submit(choose(table.chance, view))
            answers.append(outcome.SerializeToString())
            updates = [await viewer.update() for viewer in (table.one, table.two, table.spectator)]
            answers += [update.SerializeToString() for update in updates]
        answers.append(str(await rejection(proof_for(table.one))).encode())
        if not is_over(await table.one.view()):
            await table.one.do(RESIGN)
        proof = await proof_for(table.one)
    written = "".join(capfd.readouterr())
    for secret in (proof.secret, E1, E2):
        assert not [answer for answer in answers if secret[:8] in answer or secret.hex()[:16].encode() in answer]
        assert secret.hex()[:16] not in written
        assert repr(secret)[2:20] not in written
