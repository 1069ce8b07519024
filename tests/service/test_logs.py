"""No log line can hold a secret, whoever writes it."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from engine.clock import SECOND_NS, Arrival
from engine.commands import Pass
from engine.seats import Seat
from engine.tiles import Tile
from engine.view import Audience
from service import logs
from service.line import PlayerOrder
from service.matches import NewMatch
from service.ports import Append
from service.secret import Secret
from tests.support.ports import MemoryStore, Process
from tests.support.server import sample_of
from tests.support.virtual_matches import MATCH_ID, legal_command, order, started
from tests.support.virtual_time import in_virtual_time

TIMEOUTS = {"start_timeout_ns": 600 * SECOND_NS, "continue_timeout_ns": 60 * SECOND_NS}


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What the service's own configuration writes."""
    written = io.StringIO()
    monkeypatch.setattr("sys.stderr", written)
    before, handlers, level = structlog.get_config(), logging.root.handlers[:], logging.root.level
    logs.configure("info", "json")
    yield written
    structlog.configure(**before)
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


def logged(lines: io.StringIO) -> dict[str, Any]:
    """The one line that was written. Any: JSON."""
    (line,) = lines.getvalue().splitlines()
    facts: dict[str, Any] = json.loads(line)
    return facts


def test_a_field_that_is_not_known_is_withheld(lines: io.StringIO) -> None:
    """Its name is said, so that whoever misses it knows why."""
    structlog.get_logger().info("dealt", match_id="m", hand=(Tile(3, 5),), token="sbs_secret")
    facts = logged(lines)
    assert facts["match_id"] == "m"
    assert facts["withheld"] == ["hand", "token"]
    assert "sbs_secret" not in lines.getvalue()
    assert "Tile" not in lines.getvalue()


def test_an_exception_is_told_without_its_text_and_variables(lines: io.StringIO) -> None:
    """Kinds and places are enough to find a mistake."""

    def fails() -> None:
        tokens: dict[str, str] = {}
        try:
            tokens["sbs_secret"]
        except KeyError as error:
            raise ValueError(f"no {Tile(3, 5)}") from error

    try:
        fails()
    except ValueError as error:
        structlog.get_logger().error("internal_error", error_id="e", exc_info=error)
    exception = logged(lines)["exception"]
    assert "KeyError" in exception
    assert "ValueError" in exception
    assert "test_logs.py" in exception
    assert "'sbs_secret'" not in exception  # as the text of the KeyError has it; the source line is public
    assert "Tile(low" not in exception


def test_a_secret_shows_itself_only_when_asked() -> None:
    """In no format, no container and no comparison by text."""
    secret = Secret("sbs_token")
    assert f"{secret} {secret!r} {[secret]}" == "*** *** [***]"
    assert secret.reveal() == "sbs_token"
    assert secret == Secret("sbs_token")
    assert secret != Secret("other")
    assert hash(secret) == hash(Secret("sbs_token"))


def test_a_line_says_which_command_it_is_about(lines: io.StringIO) -> None:
    """Bound once, where the command is carried out; a field of the call itself comes first."""
    command = PlayerOrder(Pass(), Arrival.at(1), Seat.TWO, Audience.SEAT_TWO, "an-id", b"")
    known = logs.about.set(("m", 7, command))
    logs.get_logger().warning("timing_fault", match_id=None, cause="c")
    logs.about.reset(known)
    facts = logged(lines)
    assert {name: facts[name] for name in ("match_id", "version", "command", "command_id", "seat", "cause")} == {
        "match_id": None,
        "version": 7,
        "command": "Pass",
        "command_id": "an-id",
        "seat": 2,
        "cause": "c",
    }


def test_what_a_library_logs_is_told_without_its_text(lines: io.StringIO) -> None:
    """asyncio, for one, writes exceptions into its messages."""
    error = KeyError("sbs_secret")
    logging.getLogger("asyncio").error("Task exception: %r", error, exc_info=error)
    facts = logged(lines)
    assert (facts["event"], facts["level"], facts["logger"]) == ("library_message", "error", "asyncio")
    assert facts["place"].startswith("test_logs.py:")
    assert facts["exception"].endswith("KeyError")
    assert "'sbs_secret'" not in lines.getvalue()


@in_virtual_time
async def test_whatever_is_logged_while_a_command_is_carried_out_names_it() -> None:
    """Also what the store or the ledger says meanwhile; what comes after does not."""
    with structlog.testing.capture_logs(processors=[logs.with_order]) as entries:
        async with Process.running(started()) as process:
            match = process.matches.get(MATCH_ID)
            command = legal_command(await match.state())

            async def fails(_: Append) -> None:
                raise ZeroDivisionError

            process.store.before_append = fails
            sent = order(process, command, await match.state())
            with pytest.raises(ZeroDivisionError):
                await match.enter(sent.arrival, sent).done
            logs.get_logger().info("serving")
    failed = next(entry for entry in entries if entry["event"] == "command_failed")
    assert (failed["match_id"], failed["version"]) == (MATCH_ID, 3)
    assert (failed["command_id"], failed["seat"]) == (sent.command_id, 1)
    assert failed["command"] == type(command).__name__
    counted = {"kind": failed["command"], "outcome": "internal_error"}
    assert sample_of(process.metrics.registry, "specbid_commands_total", **counted) == 1
    assert "command_id" not in entries[-1]


@in_virtual_time
async def test_an_outage_of_the_store_is_told_when_it_begins_and_when_it_ends() -> None:
    """Not five times a second; a match that could not be read says so once a second."""
    with structlog.testing.capture_logs() as entries:
        async with Process.running(started()) as process:
            await asyncio.sleep(1)
            process.store.is_down = True
            await asyncio.sleep(10)
            process.store.is_down = False
            await asyncio.sleep(1)
    told = [(entry["event"], entry["log_level"]) for entry in entries if "heartbeat" in entry["event"]]
    assert told == [("heartbeat_not_stored", "warning"), ("heartbeat_stored_again", "info")]
    (back,) = (entry for entry in entries if entry["event"] == "heartbeat_stored_again")
    assert back["seconds"] == pytest.approx(10, abs=0.5)


@in_virtual_time
async def test_the_life_of_a_match_is_told_in_two_lines() -> None:
    """That it was created, and how it ended."""
    with structlog.testing.capture_logs() as entries:
        async with Process.running(MemoryStore()) as process:
            new = NewMatch("r", shared_device=True, display_name="A", second_display_name="B", **TIMEOUTS)
            match_id = (await process.matches.create(new)).match_id
            await process.matches.leave(match_id, Seat.ONE)
    told = [(entry["event"], entry["match_id"], entry.get("result")) for entry in entries]
    assert told == [("match_created", match_id, None), ("match_finished", match_id, "left_before_start")]
