"""What every store promises of a change, whatever it is made of: all or nothing, once, in its place."""

import asyncio
from dataclasses import replace

import pytest

from engine.view import Audience
from service.paging import pages
from service.ports import (
    STEPS_A_PAGE,
    Append,
    Credential,
    DueMatch,
    DuplicateCommandError,
    DuplicateRequestError,
    SeatRequest,
    Store,
    VersionConflictError,
)
from tests.support.store import (
    CREATED,
    NOON_NS,
    REFUSAL,
    creation,
    hashed,
    move,
    outcome,
    refused,
    together,
    turn,
)


async def test_a_match_begins_at_version_one(store: Store) -> None:
    """Version 0 means that the match must not exist yet."""
    await store.append(creation("m"))
    assert await store.steps("m") == [CREATED]


async def test_every_step_raises_the_version_by_one(store: Store) -> None:
    """Each append names the version that it builds on."""
    for change in (creation("m"), move("m", 1), move("m", 2)):
        await store.append(change)
    assert await store.steps("m") == [CREATED, turn(2), turn(3)]


async def test_steps_are_read_from_a_version_on(store: Store) -> None:
    """A replica that is behind reads what it lacks."""
    for change in (creation("m"), move("m", 1), move("m", 2)):
        await store.append(change)
    assert await store.steps("m", after_version=2) == [turn(3)]
    assert await store.steps("m", after_version=3) == []


async def test_a_long_log_is_read_page_by_page(store: Store) -> None:
    """A page has a fixed number of steps, whatever the log is long; together they are the log."""
    length = 2 * STEPS_A_PAGE + 1
    for change in (creation("m"), *(move("m", version) for version in range(1, length))):
        await store.append(change)
    assert len(await store.steps("m")) == STEPS_A_PAGE
    log = [page async for page in pages(store, "m")]
    assert [len(page) for page in log] == [STEPS_A_PAGE, STEPS_A_PAGE, 1]
    assert [step for page in log for step in page] == [CREATED, *(turn(version) for version in range(2, length + 1))]
    assert [page async for page in pages(store, "m", after_version=length - 1)] == [[turn(length)]]


async def test_a_log_may_end_with_a_page(store: Store) -> None:
    """The page behind it is empty, and nobody is given it."""
    for change in (creation("m"), *(move("m", version) for version in range(1, STEPS_A_PAGE))):
        await store.append(change)
    assert [len(page) async for page in pages(store, "m")] == [STEPS_A_PAGE]
    assert [page async for page in pages(store, "unknown")] == []


async def test_an_unknown_match_has_no_steps(store: Store) -> None:
    """It is not an error to ask."""
    assert await store.steps("unknown") == []


CONFLICTS = [
    pytest.param(creation("m"), id="it exists already"),
    pytest.param(move("m", 1), id="it went on"),
    pytest.param(move("m", 3), id="it is not there yet"),
    pytest.param(move("unknown", 1), id="it does not exist"),
    pytest.param(refused("m", 1, outcome("late", refusal=REFUSAL)), id="it went on, only a record"),
    pytest.param(refused("unknown", 1, outcome("late", refusal=REFUSAL)), id="it does not exist, only a record"),
]


@pytest.mark.parametrize("change", CONFLICTS)
async def test_a_change_for_another_version_conflicts_and_writes_nothing(store: Store, change: Append) -> None:
    """No part of it is stored: step, record, credential, seat request, due instant."""
    await store.append(creation("m"))
    await store.append(move("m", 1))
    token = Credential(hashed("token"), change.match_id, Audience.SEAT_ONE)
    request = SeatRequest("request", change.match_id, Audience.SEAT_ONE)
    record = change.record or outcome("late")
    change = change._replace(credentials=(token,), seat_request=request, record=record, due_ns=NOON_NS + 9)
    with pytest.raises(VersionConflictError):
        await store.append(change)
    assert await store.steps("m") == [CREATED, turn(2)]
    assert await store.steps("unknown") == []
    assert await store.command(change.match_id, record.sender, "late") is None
    assert await store.credential(token.token_hash) is None
    assert await store.seat_request("request") is None
    assert await store.live_matches() == [DueMatch("m", NOON_NS)]


@pytest.mark.parametrize("expected_version", [2, 1, 9])
async def test_a_repeated_command_is_a_duplicate_and_writes_nothing(store: Store, expected_version: int) -> None:
    """Whatever version it names: that it is a repeat counts first."""
    await store.append(creation("m"))
    await store.append(move("m", 1, record=outcome("c")))
    with pytest.raises(DuplicateCommandError):
        await store.append(move("m", expected_version, record=outcome("c", version=99)))
    assert await store.command("m", Audience.SEAT_ONE, "c") == outcome("c")
    assert await store.steps("m") == [CREATED, turn(2)]


async def test_a_repeat_that_waits_beside_the_first_is_a_duplicate(store: Store) -> None:
    """The first one counts, also within one batch."""
    await store.append(creation("m"))
    changes = [move("m", 1, record=outcome("c")), move("m", 2, record=outcome("c")), move("m", 2)]
    assert await together(store, changes) == [None, DuplicateCommandError, None]
    assert await store.steps("m") == [CREATED, turn(2), turn(3)]


async def test_a_repeated_request_is_a_duplicate_and_writes_nothing(store: Store) -> None:
    """No second match is made for it."""
    request = SeatRequest("r", "m", Audience.SEAT_ONE)
    await store.append(creation("m", seat_request=request))
    with pytest.raises(DuplicateRequestError):
        await store.append(creation("n", seat_request=replace(request, match_id="n")))
    assert await store.seat_request("r") == request
    assert await store.steps("n") == []


PRECEDENCE = [
    ("known", "known", 9, DuplicateCommandError),
    ("known", "new", 9, DuplicateCommandError),
    ("known", "known", 2, DuplicateCommandError),
    ("new", "known", 9, DuplicateRequestError),
    ("new", "known", 2, DuplicateRequestError),
    ("new", "new", 9, VersionConflictError),
    ("new", "new", 2, None),
]


@pytest.mark.parametrize(("command_id", "request_id", "version", "expected"), PRECEDENCE)
async def test_the_first_reason_counts(
    store: Store, command_id: str, request_id: str, version: int, expected: type[Exception] | None
) -> None:
    """Duplicate command, then duplicate request, then conflict."""
    await store.append(creation("m"))
    known = SeatRequest("known", "m", Audience.SEAT_TWO)
    await store.append(move("m", 1, record=outcome("known"), seat_request=known))
    change = move("m", version, record=outcome(command_id), seat_request=replace(known, request_id=request_id))
    assert await together(store, [change]) == [expected]


async def test_one_bad_change_among_fifty_leaves_the_others_stored(store: Store) -> None:
    """Changes share a commit, not their fate."""
    changes = [creation(f"m{number}") for number in range(50)]
    changes[20] = move("m20", 7, record=outcome("c"))
    assert await together(store, changes) == [VersionConflictError if number == 20 else None for number in range(50)]
    stored = [number for number in range(50) if await store.steps(f"m{number}")]
    assert stored == [number for number in range(50) if number != 20]


async def test_each_version_is_made_exactly_once(store: Store) -> None:
    """Two hundred tasks append to twenty matches; whoever loses reads on and tries again."""
    for number in range(20):
        await store.append(creation(f"m{number}"))

    async def play(task: int) -> int:
        match_id, version, conflicts = f"m{task % 20}", 1, 0
        while True:
            try:
                await store.append(move(match_id, version, record=outcome(f"c{task}")))
            except VersionConflictError:
                conflicts += 1
                version += len(await store.steps(match_id, after_version=version))
            else:
                return conflicts

    assert sum(await asyncio.gather(*map(play, range(200)))) > 0
    for number in range(20):
        assert await store.steps(f"m{number}") == [CREATED, *(turn(version) for version in range(2, 12))]


BROKEN = [
    pytest.param(creation("m")._replace(events=()), id="a match begins with events"),
    pytest.param(move("m", 1)._replace(invite_hash=b"code"), id="an invite code comes with the first step"),
    pytest.param(move("m", 1, due_ns=1 << 64), id="no instant is that late"),
]


@pytest.mark.parametrize("change", BROKEN)
async def test_a_change_that_cannot_be_is_a_mistake(store: Store, change: Append) -> None:
    """It is our fault, so it is no answer of the environment."""
    if change.expected_version:
        await store.append(creation("m"))
    with pytest.raises(AssertionError):
        await store.append(change)
    await store.append(creation("n"))
