"""What an operator asks of a running service: abort, drain, health. Everything is a process, as on a machine."""

import asyncio
import json
import re
import signal
import socket
import sqlite3
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import grpc
import pytest

from service.__main__ import main
from spectacularbid.v1 import events_pb2
from tests.support.platform import Authority
from tests.support.players import Table, is_over, new_table, play_until, read_update
from tests.support.server import (
    ROOT,
    Finished,
    ServerProcess,
    environment,
    run_command,
    server_process,
    without_grpc_noise,
)
from tests.support.waiting import until

WHY = "the players agreed to start anew"


@asynccontextmanager
async def running(database: Path, **settings: str) -> AsyncIterator[tuple[ServerProcess, grpc.aio.Channel]]:
    """A service process and a channel to it."""
    async with server_process(database, **settings) as server, grpc.aio.insecure_channel(server.address) as channel:
        yield server, channel


async def admin(database: Path, *arguments: str, **settings: str) -> Finished:
    """An admin command."""
    return await run_command("admin", *arguments, database=database, **settings)


async def aborted(database: Path, table: Table) -> Finished:
    """`admin abort` of a match."""
    return await admin(database, "abort", table.one.match_id, "--reason", WHY)


def assert_sentence(finished: Finished, status: int, sentence: str) -> None:
    """This status, and one sentence on standard error alone."""
    assert (finished.status, finished.output) == (status, ""), finished
    (line,) = without_grpc_noise(finished.errors)
    assert sentence in line
    assert line.startswith("spectacular-bid: ")


async def test_an_aborted_match_is_over_for_everybody_who_watches(database: Path) -> None:
    """The operator's words reach the stream; nobody can move any more."""
    async with running(database) as (_, channel):
        table = await new_table(channel, start=True)
        watches = [viewer.watch() for viewer in (*table.seats, table.spectator)]
        for watch in watches:
            await read_update(watch)
        assert (await aborted(database, table)).status == 0
        for watch in watches:
            update = await read_update(watch)
            while not is_over(update.view):  # who else is there
                update = await read_update(watch)
            ended = update.view.public.result.aborted
            assert (ended.reason, ended.evidence) == (events_pb2.ABORT_REASON_OPERATOR, WHY)
            assert not update.view.public.result.rated
            assert [event.WhichOneof("event") for event in update.events] == ["match_aborted"]
        assert not (await table.on_turn_view()).own.legal_actions


async def test_of_many_aborts_at_once_one_counts(database: Path) -> None:
    """The others are told that the match is over; the log has one abort."""
    async with running(database) as (_, channel):
        table = await new_table(channel, start=True)
        answers = await asyncio.gather(*(aborted(database, table) for _ in range(4)))
        version = (await table.one.view()).public.version
        assert sorted(answer.status for answer in answers) == [0, 1, 1, 1]
        assert [answer.output for answer in answers if answer.status == 0] == [
            f"match {table.one.match_id} is aborted at version {version}\n"
        ]
        for answer in answers:
            if answer.status:
                assert_sentence(answer, 1, "the match is over already")


async def test_an_abort_that_was_answered_survives_a_crash(database: Path) -> None:
    """Durable before the answer: kill -9, and it is in the log once."""
    async with running(database) as (server, channel):
        table = await new_table(channel, start=True)
        assert (await aborted(database, table)).status == 0
        await server.kill()
    async with running(database) as (_, channel):
        assert is_over(await table.at(channel).one.view())
        assert_sentence(await aborted(database, table), 1, "over already")
    with closing(sqlite3.connect(database)) as connection:
        texts = [text for (text,) in connection.execute("SELECT events FROM steps ORDER BY version")]
    tags = [event["t"] for text in texts for event in json.loads(text)]
    assert tags.count("aborted") == 1


async def test_a_match_can_be_aborted_before_its_start_and_between_rounds(database: Path) -> None:
    """In whatever phase it is."""
    async with running(database) as (_, channel):
        waiting, settled = await new_table(channel), await new_table(channel, start=True)
        await play_until(settled, lambda view: view.public.HasField("settlement"))
        for table in (waiting, settled):
            assert (await aborted(database, table)).status == 0
            assert (await table.one.view()).public.result.aborted.evidence == WHY


BAD = {
    "an unknown match": (("nowhere", "--reason", WHY), "there is no match with this id"),
    "no reason": (("{match}", "--reason", "  "), "1 to 200 printable characters"),
    "a long reason": (("{match}", "--reason", "x" * 201), "1 to 200 printable characters"),
    "a reason of two lines": (("{match}", "--reason", "one\ntwo"), "1 to 200 printable characters"),
}


async def test_what_cannot_be_aborted_is_a_clear_no(database: Path) -> None:
    """Status 1 and one sentence; the match goes on."""
    async with running(database) as (_, channel):
        table = await new_table(channel, start=True)
        for arguments, sentence in BAD.values():
            named = [argument.replace("{match}", table.one.match_id) for argument in arguments]
            assert_sentence(await admin(database, "abort", *named), 1, sentence)
        assert not is_over(await table.one.view())


@pytest.mark.parametrize("command", [("drain",), ("abort", "x", "--reason", WHY)])
async def test_without_a_service_nothing_can_be_asked_of_it(database: Path, command: tuple[str, ...]) -> None:
    """Status 2; the sentence names the socket."""
    assert_sentence(await admin(database, *command), 2, f"no answer at {database}.admin: No such file or directory")


async def test_a_drain_is_what_sigterm_is(database: Path) -> None:
    """Streams end with a resume point, clocks stand, the process ends with 0."""
    async with running(database, DRAIN_SECONDS="0.2") as (server, channel):
        table = await new_table(channel, start=True)
        watch = table.spectator.watch()
        await read_update(watch)
        finished = await admin(database, "drain")
        assert (finished.status, finished.errors) == (0, "")
        assert finished.output.startswith("draining: everything is served for 0.2 s more")
        assert await server.ended() == 0
        assert server.events() == ["serving", "drain_asked_for", "draining", "drained"]
    assert "suspended" in (await admin(database, "matches")).output
    assert (await admin(database, "faults")).output == "0 faults\n"


async def test_a_match_can_be_aborted_while_the_service_drains(database: Path) -> None:
    """Everything is served then."""
    async with running(database, DRAIN_SECONDS="60") as (server, channel):
        table = await new_table(channel, start=True)
        server.process.send_signal(signal.SIGTERM)
        await until(lambda: "draining" in server.events())
        assert (await aborted(database, table)).status == 0
        assert await server.stop(signal.SIGINT) == 0


async def test_the_socket_is_for_this_user_alone_and_goes_with_the_service(database: Path) -> None:
    """What a crash left behind is in nobody's way."""
    path = database.with_name("m.sqlite3.admin")
    async with running(database) as (server, _):
        assert stat.S_ISSOCK(path.stat().st_mode)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        await server.kill()
    assert path.exists()
    assert_sentence(await admin(database, "drain"), 2, "Connection refused")
    async with running(database) as (server, channel):
        assert (await aborted(database, await new_table(channel))).status == 0
        assert await server.stop() == 0
    assert not path.exists()


async def test_the_players_port_knows_no_admin_commands(database: Path) -> None:
    """They are on the socket only."""
    async with running(database) as (_, channel):
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]
        call = channel.unary_unary("/spectacularbid.admin.v1.AdminService/Drain")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(b"")
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_socket_that_was_asked_for_and_cannot_be_made_stops_the_start(tmp_path: Path, database: Path) -> None:
    """One that was not asked for is a warning: the service is of use without it."""
    nowhere = await run_command("serve", database=database, ADMIN_SOCKET=str(tmp_path / "nowhere" / "admin"))
    too_long = await run_command("serve", database=database, ADMIN_SOCKET=str(tmp_path / ("x" * 103)))
    for finished in (nowhere, too_long):
        assert finished.status == 2
        assert "spectacular-bid cannot start: " in finished.errors
    assert "is too long a path for a socket" in too_long.errors
    folder = tmp_path / ("x" * 103)
    folder.mkdir()
    async with running(folder / "m.sqlite3") as (server, _):
        assert server.events() == ["no_admin_socket", "serving"]


async def test_two_services_do_not_share_a_socket(database: Path, tmp_path: Path) -> None:
    """The second one does not start, and the first one keeps its own."""
    admin_socket = str(tmp_path / "admin")
    async with running(database, ADMIN_SOCKET=admin_socket) as (_, channel):
        second = await run_command("serve", database=tmp_path / "other.sqlite3", ADMIN_SOCKET=admin_socket)
        assert second.status == 2
        assert f"another process listens at {admin_socket}" in second.errors
        match_id = (await new_table(channel)).one.match_id
        assert (await admin(database, "abort", match_id, "--reason", WHY, ADMIN_SOCKET=admin_socket)).status == 0


async def test_health_is_a_status_of_0_or_1(database: Path) -> None:
    """SERVING, and after the stop nobody answers."""
    async with running(database) as (server, _):
        port = server.address.rpartition(":")[2]
        serving = await run_command("healthcheck", database=database, PORT=port)
        named = ("healthcheck", "--service", "spectacularbid.v1.MatchService")
        assert (serving.status, serving.output) == (0, "SERVING\n")
        assert (await run_command(*named, database=database, PORT=port)).status == 0
        unknown = await run_command("healthcheck", "--service", "nobody", database=database, PORT=port)
        assert (unknown.status, unknown.output) == (1, "")
        assert await server.stop() == 0
    gone = await run_command("healthcheck", database=database, PORT=port)
    assert_sentence(gone, 1, f"no answer at 127.0.0.1:{port}: ")
    assert_sentence(await run_command("healthcheck", database=database), 1, "a port of 0 picks a free one")


async def test_a_draining_service_is_not_healthy(database: Path) -> None:
    """It serves on, but nobody new should come."""
    async with running(database, DRAIN_SECONDS="60") as (server, _):
        port = server.address.rpartition(":")[2]
        server.process.send_signal(signal.SIGTERM)
        await until(lambda: "draining" in server.events())
        finished = await run_command("healthcheck", database=database, PORT=port)
        assert (finished.status, finished.output) == (1, "NOT_SERVING\n")
        assert await server.stop(signal.SIGINT) == 0


async def test_with_tls_health_is_asked_on_the_plaintext_port(database: Path, tmp_path: Path) -> None:
    """The setting says where, 50052 unless it says otherwise."""
    certificate, key = Authority().issue("localhost").write(tmp_path, "server")
    tls = {"TLS_CERTIFICATE": str(certificate), "TLS_KEY": str(key)}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    async with server_process(database, HEALTH_PORT=port, **tls):
        finished = await run_command("healthcheck", database=database, HEALTH_PORT=port, **tls)
        assert (finished.status, finished.output) == (0, "SERVING\n")


def help_of(monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]) -> int | str | None:
    """The exit status of a command's --help."""
    monkeypatch.setattr(sys, "argv", ["spectacular-bid", *command, "--help"])
    with pytest.raises(SystemExit) as caught:
        main()
    return caught.value.code


HELP = [("admin",), ("admin", "abort"), ("admin", "store"), ("admin", "store", "check"), ("healthcheck",)]


@pytest.mark.parametrize("command", HELP)
def test_every_command_explains_itself_and_its_statuses(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    """With --help."""
    assert help_of(monkeypatch, command) == 0
    assert "Exit status: 0 done, 1 the answer is no" in capsys.readouterr().out


def documented() -> list[tuple[str, ...]]:
    """The commands that the operator's guide names, without their arguments."""
    text = (ROOT / "docs" / "OPERATIONS.md").read_text(encoding="utf-8")
    found = re.findall(r"spectacular-bid ((?:admin )?(?:store )?[a-z]+)\b", text)
    return sorted({tuple(words.split()) for words in found})


def test_the_guide_names_the_commands() -> None:
    """So that the test below is about something."""
    assert {("serve",), ("healthcheck",), ("admin", "abort"), ("admin", "store", "backup")} <= set(documented())


@pytest.mark.parametrize("command", documented())
def test_every_command_of_the_guide_exists(monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]) -> None:
    """As it is written there."""
    assert help_of(monkeypatch, command) == 0


async def test_a_long_answer_can_be_cut_by_a_pipe(database: Path) -> None:
    """`| head` leaves no traceback."""
    async with running(database) as (_, channel):
        table = await new_table(channel, start=True)
        command = f"{sys.executable} -m service admin match {table.one.match_id} | true"
        piped = await asyncio.create_subprocess_shell(
            command, cwd=ROOT, env=environment(database, {}), stderr=asyncio.subprocess.PIPE
        )
        _, errors = await piped.communicate()
    assert without_grpc_noise(errors.decode()) == []


async def test_a_wrong_setting_is_a_sentence_here_too(database: Path) -> None:
    """Status 2."""
    assert_sentence(await admin(database, "matches", PORT="http"), 2, "SPECBID_PORT='http'")
