"""Checking the proof of a deal with nothing but the client."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict

from spectacularbid.client import fair_deal
from spectacularbid.client.commands.terminal import CommandFailedError
from spectacularbid.client.commands.verify import verify
from spectacularbid.client.deal_part import DealPart, may_open
from spectacularbid.v1 import deal_pb2
from spectacularbid.v1.commands_pb2 import Command, Pass, Start
from spectacularbid.v1.tiles_pb2 import SEAT_ONE, SEAT_TWO
from spectacularbid.v1.views_pb2 import MatchView, OwnView, PlayerView, PublicView
from tests.clients.terminals import arguments, paper_terminal

SHARED = json.loads((Path(__file__).parents[2] / "clients/conformance/fair-deal-v1.json").read_text(encoding="utf-8"))


def with_change(tampering: dict[str, Any]) -> dict[str, Any]:
    """The shared proof with one place changed."""
    changed: dict[str, Any] = deepcopy(SHARED["proof"])
    *way, last = tampering["at"]
    place: Any = changed
    for step in way:
        place = place[step]
    place[last] = tampering["value"]
    return changed


def written(path: Path, content: object) -> str:
    """The path of a file with this content."""
    path.write_text(json.dumps(content), encoding="utf-8")
    return str(path)


async def verified(file: str) -> tuple[int, list[str]]:
    """Exit status and lines of `verify` on a file."""
    terminal, paper = paper_terminal()
    return await verify(terminal, arguments("verify", file)), paper.lines


@pytest.mark.parametrize("vector", SHARED["vectors"], ids=lambda vector: vector["name"])
def test_every_step_gives_the_fixed_bytes(vector: dict[str, Any]) -> None:
    """The same vectors as the service's own computation."""
    match_id, secret = vector["matchId"], bytes.fromhex(vector["secret"])
    seats = [
        deal_pb2.SeatProof(
            seat=seat,
            entropy=bytes.fromhex(entropy),
            commitment=fair_deal.seat_commitment(match_id, seat, bytes.fromhex(entropy)) if entropy else b"",
        )
        for seat, entropy in zip((SEAT_ONE, SEAT_TWO), vector["entropies"], strict=True)
    ]
    proof = deal_pb2.DealProof(
        match_id=match_id,
        rules_hash=bytes.fromhex(vector["rulesHash"]),
        server_commitment=fair_deal.server_commitment(match_id, secret),
        secret=secret,
        seats=seats,
    )
    assert proof.server_commitment.hex() == vector["serverCommitment"]
    assert [seat.commitment.hex() for seat in proof.seats] == vector["seatCommitments"]
    assert fair_deal.transcript(proof).hex() == vector["transcript"]
    assert fair_deal.problems(proof) == []
    for fixed in vector["rounds"]:
        key = fair_deal.round_key(secret, fair_deal.transcript(proof), fixed["number"])
        order = " ".join(f"{low}-{high}" for low, high in fair_deal.tile_order(key))
        assert (key.hex(), order) == (fixed["key"], fixed["order"])


@pytest.mark.parametrize("wrapped", [False, True])
async def test_a_true_proof_is_proven(tmp_path: Path, wrapped: bool) -> None:  # noqa: FBT001 - a test's parameter
    """As the JSON of the proof, and of the whole answer."""
    content = {"proof": SHARED["proof"]} if wrapped else SHARED["proof"]
    status, lines = await verified(written(tmp_path / "proof.json", content))
    assert status == 0
    assert lines[0].endswith("2 rounds and 3 draws follow from what was committed to.")
    assert lines[-1] == "The deal is proven."


@pytest.mark.parametrize("tampering", SHARED["tampered"], ids=lambda tampering: tampering["name"])
async def test_a_proof_that_was_tampered_with_fails_with_a_sentence(tmp_path: Path, tampering: dict[str, Any]) -> None:
    """Each kind by what it says."""
    status, lines = await verified(written(tmp_path / "proof.json", with_change(tampering)))
    assert status == 1
    assert tampering["sentence"] in lines
    assert lines[-1] == "The deal is NOT proven."


@pytest.mark.parametrize("content", [[], "proof", {"secret": 5}, {"unheard of": 1}])
async def test_what_is_no_proof_is_named_so(tmp_path: Path, content: object) -> None:
    """One sentence, no traceback."""
    with pytest.raises(CommandFailedError, match="is not the JSON of a proof"):
        await verified(written(tmp_path / "proof.json", content))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "Name either a file"),
        (("file", "--match", "m"), "Name either a file"),
        (("--match", "m"), "--match needs --token"),
        (("no such file",), "cannot be read"),
    ],
)
async def test_what_to_verify_must_be_named(
    words: tuple[str, ...], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file, or a match with a token."""
    monkeypatch.delenv("SPECBID_TOKEN", raising=False)
    terminal, _ = paper_terminal()
    with pytest.raises(CommandFailedError, match=sentence):
        await verify(terminal, arguments("verify", *words))


def test_a_part_of_the_deal_shows_up_in_start_only() -> None:
    """Nothing of it in a representation or another command, nothing at all before it is committed to."""
    part = DealPart("m", SEAT_ONE)
    assert part.opened(Command(start=Start())) == Command(start=Start())
    assert part.reveal() == b""
    part.is_committed = True
    entropy = part.opened(Command(start=Start())).start.entropy
    assert len(entropy) == 32
    assert part.commitment().commit_entropy.commitment == fair_deal.seat_commitment("m", SEAT_ONE, entropy)
    assert part.opened(Command(pass_turn=Pass())) == Command(pass_turn=Pass())
    assert entropy.hex() not in repr(part)
    assert DealPart("m", SEAT_ONE).reveal() != DealPart("m", SEAT_ONE, entropy=entropy).reveal() == entropy


def test_a_proof_without_the_own_part_is_refused() -> None:
    """Everything else may fit: whoever leaves a seat out has chosen."""
    proof = ParseDict(SHARED["proof"], deal_pb2.DealProof())
    seen = deal_pb2.FairDeal(server_commitment=proof.server_commitment)
    own = DealPart(proof.match_id, SEAT_ONE, entropy=proof.seats[0].entropy, seen=seen)
    assert own.problems(proof) == []
    stranger = DealPart("m", SEAT_ONE, entropy=bytes(32), seen=deal_pb2.FairDeal(server_commitment=bytes(32)))
    assert stranger.problems(proof) == [
        "The proof is of another match.",
        "The proof does not hold the entropy of this seat.",
        "The service committed to another secret when the match was made.",
    ]


def test_a_commitment_that_came_after_the_own_opening_is_found() -> None:
    """The last view before the own Start counts, not what is shown later."""
    proof = ParseDict(SHARED["proof"], deal_pb2.DealProof())
    early = deal_pb2.FairDeal(
        seats=[deal_pb2.SeatDeal(seat=seat.seat, commitment=seat.commitment) for seat in proof.seats]
    )
    late = deal_pb2.FairDeal(seats=[deal_pb2.SeatDeal(seat=SEAT_ONE, commitment=proof.seats[0].commitment)])
    for shown, found in ((early, 0), (late, 1)):
        part = DealPart(proof.match_id, SEAT_ONE, entropy=proof.seats[0].entropy)
        part.see(shown)
        part.opened(Command(start=Start()))
        part.see(early)
        assert len(part.problems(proof)) == found


SERVER_ONLY, COMMITTED = deal_pb2.DEAL_STATUS_SERVER_ONLY, deal_pb2.DEAL_STATUS_COMMITTED


@pytest.mark.parametrize(
    ("own", "other", "is_ready", "may"),
    [
        (COMMITTED, SERVER_ONLY, False, False),
        (COMMITTED, SERVER_ONLY, True, True),
        (COMMITTED, COMMITTED, False, True),
        (COMMITTED, deal_pb2.DEAL_STATUS_OPENED, True, True),
        (SERVER_ONLY, SERVER_ONLY, False, True),
    ],
)
def test_entropy_is_opened_only_when_the_other_seat_can_choose_no_more(
    own: deal_pb2.DealStatus.ValueType,
    other: deal_pb2.DealStatus.ValueType,
    is_ready: bool,  # noqa: FBT001 - a column of the table
    may: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """Else the service and the opponent together could look for a deal they like."""
    seats = [deal_pb2.SeatDeal(seat=SEAT_ONE, status=own), deal_pb2.SeatDeal(seat=SEAT_TWO, status=other)]
    public = PublicView(
        players=[PlayerView(seat=SEAT_ONE), PlayerView(seat=SEAT_TWO, ready=is_ready)],
        fair_deal=deal_pb2.FairDeal(seats=seats),
    )
    assert may_open(MatchView(public=public, own=OwnView(seat=SEAT_ONE))) is may
