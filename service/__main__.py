"""The command line: `spectacular-bid serve`, and the client's commands beside it."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import signal
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from service import admin, logs
from service.ports import DamagedError, StoreOpenError, StoreUnavailableError
from service.settings import Settings, SettingsError, load_settings

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

FAST = 10_000
"""Commands a second of a demonstration's bots."""
WHERE_IT_IS = "Spectacular Bid is served on {address} (metrics: http://{metrics}/metrics, matches kept in {database})."
HOW_TO_PLAY = """
Spectacular Bid is served on {address} (metrics: http://{metrics}/metrics, matches kept in {database}).

  play against a bot        spectacular-bid play --server {address}
  play against a friend     spectacular-bid play --server {address} --against friend
  pass one device around    spectacular-bid play --server {address} --pass-and-play
  watch two bots            spectacular-bid demo --server {address}

(The command is .venv/bin/spectacular-bid in this folder.) Ctrl-C stops the service; matches go on after a restart.
"""


def main() -> int:
    """Run one command; returns its exit status."""
    if not __debug__:
        print("do not run with python -O: assertions are part of the service", file=sys.stderr)
        return 2
    parser = argparse.ArgumentParser(prog="spectacular-bid", description="A two-player domino duel over gRPC.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="run the service", description="Settings are SPECBID_* variables.")
    serve.set_defaults(run=run_serve)
    migrate = commands.add_parser("migrate", help="bring the schema of PostgreSQL up to date")
    migrate.set_defaults(run=run_migrate)
    admin.add_parsers(commands, run_admin)
    from spectacularbid.client.commands import add_parsers  # noqa: PLC0415  grpc after the settings above

    add_parsers(commands, start_server=private_server)
    arguments = parser.parse_args()
    status: int = arguments.run(arguments)
    return status


def run_serve(_: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C; 2 when it cannot start, 1 when its clocks could not be stopped."""
    try:
        settings = load_settings()
        logs.configure(settings.log_level, settings.log_format)
        run_loop(serve_until_stopped(settings))
    except StoreUnavailableError:
        print("spectacular-bid stopped without notice: the clocks could not be stopped in the store", file=sys.stderr)
        return 1
    except (SettingsError, OSError, RuntimeError) as error:
        print(f"spectacular-bid cannot start: {error}", file=sys.stderr)
        return 2
    return 0


def run_migrate(_: argparse.Namespace) -> int:
    """Apply what the schema lacks and print it, a name a line; 1 when the database cannot be used."""
    from service.backends import migrate  # noqa: PLC0415

    try:
        applied = asyncio.run(migrate(load_settings()))
    except SettingsError as error:
        print(f"spectacular-bid: {error}", file=sys.stderr)
        return 2
    except StoreOpenError as error:
        print(f"spectacular-bid: {error}", file=sys.stderr)
        return 1
    print("\n".join(applied) or "the schema is up to date")
    return 0


def run_admin(arguments: argparse.Namespace) -> int:
    """Ask what the arguments say and print the answer; 1 when it is no, 2 when it could not be asked."""
    from service import tools  # noqa: PLC0415  the adapters take a second to load

    adapters: admin.Tools = tools
    try:
        answer: admin.Answer = asyncio.run(arguments.ask(adapters, load_settings(), arguments))
    except admin.RefusedError as error:
        print(f"spectacular-bid: {error}", file=sys.stderr)
        return 1
    except StoreUnavailableError as error:
        print(f"spectacular-bid: the store cannot be read: {error.__cause__}", file=sys.stderr)
        return 2
    except DamagedError as error:
        print(f"spectacular-bid: {error}; see: spectacular-bid admin store check", file=sys.stderr)
        return 2
    except (SettingsError, StoreOpenError, admin.UnreachableError) as error:
        print(f"spectacular-bid: {error}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it without a traceback
    print(*answer.lines, sep="\n")
    return 0 if answer.is_yes else 1


def where(settings: Settings) -> str:
    """What keeps the matches, for a person; an address of PostgreSQL may hold a password."""
    return str(settings.database) if settings.database_url is None else "PostgreSQL"


async def serve_until_stopped(settings: Settings) -> None:
    """Run the service until a signal. A person's Ctrl-C skips the wait for load balancers."""
    from service.wiring import serving  # noqa: PLC0415  grpc after the logs are configured (grpc#43421)

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):  # from now on: a signal during the start must not kill
        loop.add_signal_handler(number, stop.set)
    async with serving(settings, asked_to_stop=stop) as service:

        def interrupted() -> None:
            service.hurry()
            stop.set()

        loop.add_signal_handler(signal.SIGINT, interrupted)
        addresses = service.addresses
        is_open_to_guests = settings.auth == "guest" and settings.tls_certificate is None
        print(
            (HOW_TO_PLAY if is_open_to_guests else WHERE_IT_IS).format(
                address=addresses.grpc, metrics=addresses.metrics, database=where(settings)
            ),
            flush=True,
        )
        gc.freeze()  # what is here now stays; few cycles arise later, so a full collection is seldom worth its time
        gc.set_threshold(100_000, 50, 100)
        await stop.wait()


@asynccontextmanager
async def private_server() -> AsyncIterator[str]:
    """A service of one's own for a demonstration: free ports, a file that goes away. Gives its address."""
    from service.wiring import serving  # noqa: PLC0415

    logs.configure("warning", "console")
    with TemporaryDirectory(prefix="spectacular-bid-") as folder:
        database = Path(folder) / "demo.sqlite3"
        settings = Settings(
            port=0,
            metrics_port=0,
            database=database,
            drain_seconds=0.0,
            commands_per_second=FAST,  # bots do not think
        )
        async with serving(settings) as service:
            yield service.addresses.grpc


def run_loop(work: Coroutine[object, object, None]) -> None:
    """Run to the end, on uvloop where there is one (15 to 25 % less CPU)."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        asyncio.run(work)
    else:
        uvloop.run(work)


if __name__ == "__main__":
    sys.exit(main())
