"""How much one holder may ask for: allowances of so many a second, and streams open at once.

A limit turns a request away before it enters a match's line: it never stops a clock, and what one seat sends takes
nothing from the other's allowance. There are no timers; a full table forgets whoever was quiet longest.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from engine.clock import SECOND_NS
from engine.view import Audience
from service.metrics.process import Limit
from service.ports import Credential
from service.watches import Watch

KNOWN_HOLDERS = 50_000
"""Holders whose allowance is remembered, for each kind of request."""
SPECTATORS = 200
"""Streams of spectators that one match may have here."""
BURST_SECONDS = 2
"""What an allowance saves up, as seconds of its rate."""

Holder: TypeAlias = tuple[str, Audience] | bytes
"""A seat or device with all its tokens, or a spectator by the hash of the token."""


class LimitedError(Exception):
    """More than the allowance; `wait_ns` is how long until the next request fits."""

    def __init__(self, wait_ns: int) -> None:
        super().__init__("limited")
        self.wait_ns = wait_ns


class StreamReplacedError(Exception):
    """The holder opened a newer stream in the place of this one."""


class TokenRevokedError(Exception):
    """The token of this stream was rotated."""


class TooManySpectatorsError(Exception):
    """The match has as many spectators here as it may have."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Requests a second: commands and reads of a holder, admissions of a guest's address or of a platform subject.

    0 is no limit. `seat_streams` and `spectator_streams` are how many a holder may have open.
    """

    commands: int = 10
    reads: int = 5
    guests: int = 200
    creates: int = 50
    strangers: int = 5
    seat_streams: int = 2
    spectator_streams: int = 1


UNLIMITED = Rates(0, 0, 0, 0, 0, 1_000_000, 1_000_000)


class Allowance:
    """So many requests a second for each key, twice as many at once (the generic cell rate algorithm).

    `on_limited` is told of every request that is one too many.
    """

    def __init__(
        self, now_ns: Callable[[], int], per_second: int, on_limited: Callable[[], None] = lambda: None
    ) -> None:
        self._now_ns = now_ns
        self._on_limited = on_limited
        self._each_ns = SECOND_NS // per_second if per_second else 0
        self._saved_ns = per_second * BURST_SECONDS * self._each_ns
        self._used_up_to_ns: OrderedDict[Hashable, int] = OrderedDict()

    def take(self, key: Hashable) -> None:
        """Count one request. Raises LimitedError, and then counts nothing."""
        now_ns = self._now_ns()
        used_up_to_ns = max(self._used_up_to_ns.get(key, 0), now_ns) + self._each_ns
        if used_up_to_ns - now_ns > self._saved_ns:
            self._on_limited()
            raise LimitedError(used_up_to_ns - now_ns - self._saved_ns)
        self._used_up_to_ns[key] = used_up_to_ns
        self._used_up_to_ns.move_to_end(key)
        if len(self._used_up_to_ns) > KNOWN_HOLDERS:
            self._used_up_to_ns.popitem(last=False)


def holder_of(credential: Credential) -> Holder:
    """Whose allowance a token uses: the tokens of one seat share it, so that a fresh token brings nothing."""
    if credential.audience is Audience.SPECTATOR:
        return credential.token_hash
    return credential.match_id, credential.audience


class Limits:
    """The allowances and the open streams of this process. `shed` counts what is turned away.

    Commands are taken by their `Holder`, and so are reads: looks at the match, a view or a stream that is opened.
    """

    def __init__(self, now_ns: Callable[[], int], rates: Rates, shed: Callable[[Limit], None] = lambda _: None) -> None:
        def allowance(per_second: int, limit: Limit) -> Allowance:
            return Allowance(now_ns, per_second, partial(shed, limit))

        self.shed = shed
        self.guests = allowance(rates.guests, Limit.GUESTS)
        self.creates = allowance(rates.creates, Limit.CREATES)
        self.strangers = allowance(rates.strangers, Limit.STRANGERS)
        self.commands = allowance(rates.commands, Limit.COMMANDS)
        self.reads = allowance(rates.reads, Limit.READS)
        self.streams = OpenStreams(
            seat_streams=rates.seat_streams,
            spectator_streams=rates.spectator_streams,
            on_full=partial(shed, Limit.SPECTATORS),
        )


class OpenStreams:
    """Who has which streams open here, oldest first. `on_full` is told of a spectator whom a match has no room for."""

    def __init__(self, *, seat_streams: int, spectator_streams: int, on_full: Callable[[], None]) -> None:
        self._on_full = on_full
        self._seat_streams = seat_streams
        self._spectator_streams = spectator_streams
        self._streams: dict[Holder, dict[Watch, Credential]] = {}
        self._spectators: dict[str, int] = {}

    def open(self, credential: Credential, watch: Watch) -> None:
        """Count a stream; `close` must follow. One too many ends the holder's oldest.

        Raises TooManySpectatorsError, and then counts nothing.
        """
        holder, spectates = holder_of(credential), credential.audience is Audience.SPECTATOR
        streams = self._streams.get(holder, {})
        is_full = len(streams) >= (self._spectator_streams if spectates else self._seat_streams)
        spectators = self._spectators.get(credential.match_id, 0)
        if spectates and not is_full and spectators >= SPECTATORS:
            self._on_full()
            raise TooManySpectatorsError
        if is_full:
            oldest = next(iter(streams))
            oldest.end(StreamReplacedError())
            self.close(credential, oldest)
        self._streams.setdefault(holder, {})[watch] = credential
        if spectates:
            self._spectators[credential.match_id] = self._spectators.get(credential.match_id, 0) + 1

    def close(self, credential: Credential, watch: Watch) -> None:
        """A stream has ended, or no longer counts; again is harmless."""
        holder = holder_of(credential)
        streams = self._streams.get(holder, {})
        if streams.pop(watch, None) is None:
            return
        if not streams:
            del self._streams[holder]
        if credential.audience is Audience.SPECTATOR:
            left = self._spectators[credential.match_id] = self._spectators[credential.match_id] - 1
            if not left:
                del self._spectators[credential.match_id]

    def credentials(self) -> dict[bytes, Credential]:
        """What streams are open with, by token."""
        return {each.token_hash: each for streams in self._streams.values() for each in streams.values()}

    def revoke(self, credential: Credential) -> None:
        """End every stream that was opened with this very token."""
        for watch, opened_with in list(self._streams.get(holder_of(credential), {}).items()):
            if opened_with.token_hash == credential.token_hash:
                watch.end(TokenRevokedError())
                self.close(credential, watch)
