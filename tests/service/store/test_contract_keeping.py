"""What every store promises to keep and to find again, whatever it is made of."""

import asyncio
from dataclasses import replace

import pytest

from engine.events import AbortReason, MatchAborted, MatchWon, WinReason
from engine.refusals import Refusal
from engine.seats import PerSeat, Seat
from engine.view import Audience
from service.ports import (
    Credential,
    DealSecrets,
    DueMatch,
    SeatRequest,
    Store,
    StoreUnavailableError,
    UnknownTokenError,
    VersionConflictError,
)
from tests.support.store import (
    CREATED,
    NOON_NS,
    REFUSAL,
    OpenStore,
    creation,
    hashed,
    move,
    outcome,
    refused,
    state_at,
    together,
    turn,
)


@pytest.mark.parametrize("refusal", [None, REFUSAL])
async def test_the_outcome_of_a_command_is_kept(store: Store, refusal: Refusal | None) -> None:
    """A repeat gets exactly what the first one got."""
    record = outcome("c", refusal=refusal)
    await store.append(creation("m"))
    await store.append(move("m", 1, record=record))
    assert await store.command("m", Audience.SEAT_ONE, "c") == record


async def test_a_record_without_a_running_decision_is_kept(store: Store) -> None:
    """Nobody's clock runs before the start."""
    record = outcome("c")
    record = record._replace(receipt=record.receipt._replace(decision=None))
    await store.append(creation("m"))
    await store.append(move("m", 1, record=record))
    assert await store.command("m", Audience.SEAT_ONE, "c") == record


async def test_a_refused_command_is_kept_and_changes_nothing_else(store: Store) -> None:
    """Without events neither the version nor the due instant moves."""
    record = outcome("c", version=1, refusal=REFUSAL)
    await store.append(creation("m"))
    await store.append(refused("m", 1, record)._replace(due_ns=NOON_NS + 9, live=False))
    assert await store.command("m", Audience.SEAT_ONE, "c") == record
    assert await store.steps("m") == [CREATED]
    assert await store.live_matches() == [DueMatch("m", NOON_NS)]
    await store.append(move("m", 1))


async def test_a_command_is_known_by_match_sender_and_id(store: Store) -> None:
    """The same id from another sender or in another match is another command."""
    for match_id in ("m", "n"):
        await store.append(creation(match_id))
        await store.append(move(match_id, 1, record=outcome("c")))
    await store.append(move("m", 2, record=outcome("c", version=3, sender=Audience.SEAT_TWO)))
    assert await store.command("m", Audience.SEAT_ONE, "c") == outcome("c")
    assert await store.command("m", Audience.SEAT_TWO, "c") == outcome("c", version=3, sender=Audience.SEAT_TWO)
    assert await store.command("m", Audience.DEVICE, "c") is None
    assert await store.command("m", Audience.SEAT_ONE, "other") is None


@pytest.mark.parametrize("command_id", ["", "a", "Ünï-çødé 🁫", "'; DROP TABLE commands", "x" * 1_000])
async def test_any_text_is_a_command_id(store: Store, command_id: str) -> None:
    """Clients choose them; none is cut short or taken for another."""
    await store.append(creation("m"))
    await store.append(move("m", 1, record=outcome(command_id)))
    assert await store.command("m", Audience.SEAT_ONE, command_id) == outcome(command_id)
    assert await store.command("m", Audience.SEAT_ONE, f"{command_id} ") is None


async def test_a_seat_request_is_kept(store: Store) -> None:
    """A repeat of create or join gets the same match and seat."""
    request = SeatRequest("r", "m", Audience.SEAT_ONE)
    await store.append(creation("m", seat_request=request))
    assert await store.seat_request("r") == request
    assert await store.seat_request("other") is None


async def test_the_secrets_of_a_deal_are_kept_and_replaced_with_a_step(store: Store) -> None:
    """All or nothing with the step that they belong to; a match without them has none."""
    made, opened = DealSecrets(b"r" * 32, b"s" * 32), DealSecrets(b"r" * 32, b"s" * 32, PerSeat(b"1" * 32, b""))
    assert await store.deal_secrets("m") is None
    await store.append(creation("m")._replace(deal=made))
    assert await store.deal_secrets("m") == made
    with pytest.raises(VersionConflictError):
        await store.append(move("m", 7)._replace(deal=opened))
    assert await store.deal_secrets("m") == made
    await store.append(move("m", 1)._replace(deal=opened))
    assert await store.deal_secrets("m") == opened
    assert "ssss" not in repr(opened)
    assert "1111" not in repr(opened)


async def test_the_last_snapshot_is_kept_with_the_step_that_led_to_it(open_store: OpenStore) -> None:
    """All or nothing; in the place of the one before; a match may have none."""
    store = await open_store()
    for match_id in ("m", "n"):
        await store.append(creation(match_id))
    assert await store.snapshot("m") is None
    await store.append(move("m", 1)._replace(snapshot=state_at(2)))
    assert await store.snapshot("m") == state_at(2)
    for late in (move("m", 1), move("m", 7)):
        with pytest.raises(VersionConflictError):
            await store.append(late._replace(snapshot=state_at(late.expected_version + 1)))
    assert await store.snapshot("m") == state_at(2)
    await store.append(move("m", 2)._replace(snapshot=state_at(3)))
    await store.append(move("m", 3, record=outcome("c")))
    assert await store.snapshot("m") == state_at(3)
    assert await store.snapshot("n") is None
    assert await store.snapshot("unknown") is None
    await store.close()
    store = await open_store()
    assert await store.snapshot("m") == state_at(3)
    assert await store.steps("m") == [CREATED, turn(2), turn(3), turn(4)]


async def test_snapshots_share_a_commit_with_other_changes(store: Store) -> None:
    """One that conflicts leaves the others standing."""
    for number in range(20):
        await store.append(creation(f"m{number}"))
    changes = [
        move(f"m{number}", 1 + (number == 7), record=outcome("c"))._replace(
            snapshot=None if number % 3 else state_at(2 + (number == 7))
        )
        for number in range(20)
    ]
    assert await together(store, changes) == [VersionConflictError if number == 7 else None for number in range(20)]
    kept = [number for number in range(20) if await store.snapshot(f"m{number}") is not None]
    assert kept == [number for number in range(20) if number % 3 == 0]


async def test_live_matches_come_earliest_due_first(store: Store) -> None:
    """A suspended match needs the service at once."""
    for match_id, due_ns in (("b", 20), ("a", 30), ("c", 10), ("suspended", None)):
        await store.append(creation(match_id, due_ns=due_ns))
    expected = [DueMatch("suspended", None), DueMatch("c", 10), DueMatch("b", 20), DueMatch("a", 30)]
    assert await store.live_matches() == expected


async def test_every_step_says_when_the_match_is_due_next(store: Store) -> None:
    """Clocks start and stop, waits begin and end."""
    await store.append(creation("m", due_ns=10))
    await store.append(creation("n", due_ns=20))
    await store.append(move("m", 1, due_ns=30))
    assert await store.live_matches() == [DueMatch("n", 20), DueMatch("m", 30)]
    await store.append(move("m", 2, due_ns=None))
    assert await store.live_matches() == [DueMatch("m", None), DueMatch("n", 20)]


async def test_a_finished_match_is_not_live_but_kept(store: Store) -> None:
    """Its log stays readable."""
    await store.append(creation("m"))
    await store.append(move("m", 1, due_ns=None, live=False))
    assert await store.live_matches() == []
    assert await store.steps("m") == [CREATED, turn(2)]


async def test_a_token_is_known_by_its_hash(store: Store) -> None:
    """Each opens one match for one audience."""
    tokens = [Credential(hashed(audience.name), "m", audience) for audience in Audience]
    await store.append(creation("m", credentials=tokens))
    assert [await store.credential(token.token_hash) for token in tokens] == tokens
    assert await store.credential(hashed("other")) is None
    one, two = tokens[0].token_hash, tokens[1].token_hash
    await store.replace_credential(one, hashed("another"))
    assert await store.good_tokens({one: 1, two: 2, hashed("other"): 3}.keys()) == {two}
    assert await store.good_tokens([]) == set()


async def test_a_further_token_can_be_added_and_added_again(store: Store) -> None:
    """Repeating it after an unknown outcome is safe."""
    await store.append(creation("m"))
    token = Credential(hashed("spectator"), "m", Audience.SPECTATOR)
    await store.add_credential(token)
    await store.add_credential(token)
    assert await store.credential(token.token_hash) == token


async def test_a_token_for_no_match_is_a_mistake_that_harms_nobody_else(store: Store) -> None:
    """The change beside it is stored."""
    token = Credential(hashed("t"), "unknown", Audience.SPECTATOR)
    added, appended = await asyncio.gather(
        store.add_credential(token), store.append(creation("m")), return_exceptions=True
    )
    assert isinstance(added, AssertionError)
    assert appended is None
    assert await store.credential(token.token_hash) is None
    assert await store.steps("m") == [CREATED]


async def test_a_match_is_found_by_its_invite_code(store: Store) -> None:
    """Also when it went on."""
    await store.append(creation("m", invite_hash=hashed("code")))
    await store.append(creation("n"))
    await store.append(move("m", 1))
    assert await store.match_for_invite(hashed("code")) == "m"
    assert await store.match_for_invite(hashed("other")) is None


async def test_an_invite_code_in_use_is_a_conflict(store: Store) -> None:
    """Codes are short; whoever creates a match draws another one."""
    changes = [creation("m", invite_hash=hashed("code")), creation("n", invite_hash=hashed("code")), creation("o")]
    assert await together(store, changes) == [None, VersionConflictError, None]
    assert await store.match_for_invite(hashed("code")) == "m"
    assert await store.steps("n") == []


async def test_everything_survives_reopening(open_store: OpenStore) -> None:
    """What was acknowledged is there for the next process."""
    store = await open_store()
    token, request = Credential(hashed("t"), "m", Audience.SEAT_ONE), SeatRequest("r", "m", Audience.SEAT_ONE)
    await store.append(creation("m", credentials=[token], seat_request=request, invite_hash=hashed("code")))
    await store.append(move("m", 1, due_ns=7, record=outcome("c")))
    await store.close()
    store = await open_store()
    assert await store.steps("m") == [CREATED, turn(2)]
    assert await store.command("m", Audience.SEAT_ONE, "c") == outcome("c")
    assert await store.credential(token.token_hash) == token
    assert await store.seat_request("r") == request
    assert await store.match_for_invite(hashed("code")) == "m"
    assert await store.live_matches() == [DueMatch("m", 7)]
    await store.append(move("m", 2))


async def test_closing_finishes_what_was_handed_in(open_store: OpenStore) -> None:
    """Nobody is left without an answer."""
    store = await open_store()
    await asyncio.gather(*(store.append(creation(f"m{number}")) for number in range(50)), store.close())
    assert len(await (await open_store()).live_matches()) == 50


async def test_a_closed_store_is_unavailable(store: Store) -> None:
    """Closing twice does nothing."""
    await store.close()
    await store.close()
    with pytest.raises(StoreUnavailableError):
        await store.append(creation("m"))
    with pytest.raises(StoreUnavailableError):
        await store.steps("m")


async def test_a_waiter_that_gives_up_does_not_undo_the_change(store: Store) -> None:
    """A cancelled append may be stored, and the store goes on."""
    append = asyncio.ensure_future(store.append(creation("m")))

    async def give_up() -> None:
        append.cancel()

    gone, _ = await asyncio.gather(append, give_up(), return_exceptions=True)
    assert isinstance(gone, asyncio.CancelledError)
    await store.append(creation("n"))
    assert await store.steps("m") == [CREATED]


async def test_another_token_stands_in_the_place_of_one(open_store: OpenStore) -> None:
    """For the same match, audience and subject; also after the store was opened again."""
    store = await open_store()
    old = Credential(hashed("old"), "m", Audience.SEAT_ONE, "subject")
    await store.append(creation("m", credentials=[old]))
    await store.replace_credential(old.token_hash, hashed("new"))
    await store.close()
    again = await open_store()
    assert await again.credential(old.token_hash) is None
    assert await again.credential(hashed("new")) == replace(old, token_hash=hashed("new"))


async def test_a_token_that_is_not_there_cannot_be_replaced(store: Store) -> None:
    """Of two replacements at once the first counts; what was handed in with them is written."""
    await store.append(creation("m", credentials=[Credential(hashed("old"), "m", Audience.SEAT_ONE)]))
    results = await asyncio.gather(
        store.replace_credential(hashed("old"), hashed("new")),
        store.replace_credential(hashed("old"), hashed("newer")),
        store.append(creation("other")),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [type(None), UnknownTokenError, type(None)]
    assert await store.credential(hashed("new")) is not None
    assert await store.credential(hashed("newer")) is None


async def test_the_store_knows_which_subject_got_a_seat(store: Store) -> None:
    """By match, audience and subject together."""
    await store.append(creation("m", credentials=[Credential(hashed("t"), "m", Audience.SEAT_ONE, "ann")]))
    await store.append(creation("n", credentials=[Credential(hashed("u"), "n", Audience.SEAT_TWO, "ann")]))
    assert await store.holds("m", Audience.SEAT_ONE, "ann")
    assert not await store.holds("m", Audience.SEAT_TWO, "ann")
    assert not await store.holds("n", Audience.SEAT_ONE, "ann")
    assert not await store.holds("m", Audience.SEAT_ONE, "bo")


@pytest.mark.parametrize(
    "end",
    [
        MatchWon(Seat.ONE, WinReason.RESIGNATION, at_ns=NOON_NS + 7),
        MatchAborted(AbortReason.OPERATOR, "", at_ns=NOON_NS + 7),
    ],
)
async def test_a_credential_tells_when_its_match_ended(store: Store, end: MatchWon | MatchAborted) -> None:
    """However it ended; until then it tells nothing."""
    credential = Credential(hashed("t"), "m", Audience.SEAT_ONE)
    await store.append(creation("m", credentials=[credential]))
    assert await store.credential(hashed("t")) == credential
    await store.append(move("m", 1, due_ns=None, live=False)._replace(events=(end,)))
    assert await store.credential(hashed("t")) == replace(credential, ended_at_ns=NOON_NS + 7)
