"""The bus of many replicas: NATS carries which match is at which version, and nothing else.

It may be away: then those who watch look in the store more often, and what they see is late, never wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import AuthorizationError, Error

from service.fanout.polling import POLL_SECONDS, PollingBus
from service.secret import Secret

SUBJECT: Final = "specbid.version."
"""Before a match's id; the message is the version in digits."""
WELL: Final = "specbid.well"
"""The subject of those who reach the store."""
WELL_SECONDS: Final = 1.0
"""For how long that is believed."""
CONNECTED_POLL_SECONDS: Final = 5.0
"""How often to look for lost messages: NATS delivers at most once."""
CONNECT_SECONDS: Final = 2
PING_SECONDS: Final = 5
FIRST_RETRY_SECONDS: Final = 0.25
LAST_RETRY_SECONDS: Final = 5.0
_CREDENTIALS: Final = "BEGIN NATS USER JWT"
_REFUSED: Final = "authorization violation"
MOST_OUTGOING: Final = 10_000
"""Matches whose news may wait to be sent; more are for the others to find in the store."""


class NatsBus(PollingBus):
    """Delivers at once here and over NATS elsewhere, with a subscription for each match that is watched here.

    `report` hears of each change: None when it is connected, else a sentence that says why it is not.
    """

    def __init__(self, url: Secret[str], credentials: Path | None, report: Callable[[str | None], None]) -> None:
        super().__init__()
        self._url = url
        self._credentials = credentials
        self._report = report
        self._said: str | None = None
        self._is_connected = False
        self._outgoing: dict[str, int] = {}
        self._unsettled: dict[str, None] = {}
        """Matches whose watchers came or went since the subscriptions were last settled."""
        self._is_well = False
        self._others_well_at = -WELL_SECONDS
        self._has_work = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    @property
    def poll_seconds(self) -> float | None:
        """How often to look in the store for what was not told."""
        return CONNECTED_POLL_SECONDS if self._is_connected else POLL_SECONDS

    @property
    def others_are_well(self) -> bool:
        """Whether another process has just reached the store."""
        return asyncio.get_running_loop().time() - self._others_well_at < WELL_SECONDS

    def say_well(self) -> None:
        """Tell the others that this process has."""
        self._is_well = self._is_connected
        self._has_work.set()

    def start(self) -> None:
        """Connect, and again whenever the connection is lost, until `close`."""
        self._running = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Hang up."""
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running

    def publish(self, match_id: str, version: int) -> None:
        """Say that the match is at this version."""
        super().publish(match_id, version)
        if self._is_connected and len(self._outgoing) < MOST_OUTGOING:
            self._outgoing[match_id] = version
            self._has_work.set()

    def subscribe(self, match_id: str, wake: Callable[[int | None], None]) -> Callable[[], None]:
        """Call `wake` as the port says until the returned function is called."""
        unsubscribe_here = super().subscribe(match_id, wake)
        self._settle_soon(match_id)

        def unsubscribe() -> None:
            unsubscribe_here()
            self._settle_soon(match_id)

        return unsubscribe

    def _settle_soon(self, match_id: str) -> None:
        self._unsettled[match_id] = None
        self._has_work.set()

    async def _run(self) -> None:
        retry_seconds = FIRST_RETRY_SECONDS
        while True:
            try:
                if self._credentials is not None:
                    _require_credentials(self._credentials)
                await self._live()
            except (Error, OSError, TimeoutError, ValueError) as error:
                self._say(_sentence(error))
            retry_seconds = FIRST_RETRY_SECONDS if self._is_connected else min(2 * retry_seconds, LAST_RETRY_SECONDS)
            self._is_connected = False
            await asyncio.sleep(retry_seconds)

    async def _live(self) -> None:
        """One connection from its beginning to its end."""
        client = Client()
        try:
            await self._connect(client)
            await self._serve(client)
        finally:
            with suppress(Error, OSError, TimeoutError):
                await client.close()

    async def _connect(self, client: Client) -> None:
        """Connect once. Raises what went wrong, which the client tells its callback only."""
        errors: list[Exception] = []

        async def note(error: Exception) -> None:
            errors.append(error)

        async def hurry() -> None:
            self._has_work.set()

        connecting = client.connect(
            self._url.reveal(),
            name="spectacular-bid",
            allow_reconnect=False,
            connect_timeout=CONNECT_SECONDS,
            ping_interval=PING_SECONDS,
            no_echo=True,
            user_credentials=None if self._credentials is None else str(self._credentials),
            error_cb=note,
            closed_cb=hurry,
        )
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await connecting
        except TimeoutError:
            raise errors[0] if errors else TimeoutError from None

    async def _serve(self, client: Client) -> None:
        """Send and subscribe until the connection is lost."""
        self._is_connected = True
        self._say(None)
        self._unsettled = dict.fromkeys(self._wakes)
        self._outgoing.clear()
        subscriptions: dict[str, Subscription] = {}
        await client.subscribe(WELL, cb=self._heard_well)
        self._has_work.set()
        while client.is_connected:
            await self._has_work.wait()
            self._has_work.clear()
            await self._send(client)
            await self._settle(client, subscriptions)
        raise client.last_error or ConnectionError

    async def _send(self, client: Client) -> None:
        if self._is_well:
            self._is_well = False
            await client.publish(WELL)
        outgoing, self._outgoing = self._outgoing, {}
        for match_id, version in outgoing.items():
            await client.publish(SUBJECT + match_id, b"%d" % version)

    async def _settle(self, client: Client, subscriptions: dict[str, Subscription]) -> None:
        """Subscribe for those who came. What happened before that was in force may have been missed."""
        unsettled, self._unsettled = self._unsettled, {}
        came = [match_id for match_id in unsettled if match_id in self._wakes and match_id not in subscriptions]
        for match_id in unsettled:
            if match_id not in self._wakes and match_id in subscriptions:
                await subscriptions.pop(match_id).unsubscribe()
        for match_id in came:
            subscriptions[match_id] = await client.subscribe(SUBJECT + match_id, cb=self._received)
        if came:
            await client.flush(CONNECT_SECONDS)
        for match_id in came:
            self._tell(match_id, None)

    async def _heard_well(self, _: Msg) -> None:
        self._others_well_at = asyncio.get_running_loop().time()

    async def _received(self, message: Msg) -> None:
        if message.data.isdigit():
            self._tell(message.subject.removeprefix(SUBJECT), int(message.data))

    def _say(self, problem: str | None) -> None:
        if problem != self._said or problem is None:
            self._said = problem
            self._report(problem)


def _require_credentials(path: Path) -> None:
    """See that the file is what `nsc` makes: a server that asks for nothing would not have it read."""
    if _CREDENTIALS not in path.read_text(encoding="utf-8"):
        raise ValueError("no credentials")


def _sentence(error: Exception) -> str:
    """What is wrong, without the address, which may hold a password."""
    if isinstance(error, ValueError | FileNotFoundError | PermissionError):
        return "SPECBID_NATS_CREDENTIALS_FILE cannot be read as NATS credentials"
    if isinstance(error, AuthorizationError) or _REFUSED in str(error).lower():
        return "NATS refuses the credentials of SPECBID_NATS_URL or SPECBID_NATS_CREDENTIALS_FILE"
    return "NATS cannot be reached at the address of SPECBID_NATS_URL"
