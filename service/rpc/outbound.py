"""The last look at what leaves: a view goes only to the audience that it was made for, or not at all (channels 2, 27).

Presenters and caches decide what is shown; this knows nothing of them. It compares the credential of the call with the
tag of the view, and reads from the very bytes whose hand is in them.
"""

from __future__ import annotations

from typing import TypeAlias

from engine.view import Audience
from service.metrics import Metrics
from service.rpc.render import RenderedView

_SEAT_NUMBERS = {Audience.SPECTATOR: (0,), Audience.SEAT_ONE: (1,), Audience.SEAT_TWO: (2,), Audience.DEVICE: (1, 2)}
_PUBLIC_TAG, _OWN_TAG, _OWN_SEAT_TAG = 0x0A, 0x12, 0x08
_LOW_BITS, _MORE = 0x7F, 0x80
_UNREADABLE = -1
Addressed: TypeAlias = tuple[bytes, RenderedView | None]
"""A serialized message and the view in it; None for a message whose type has no place for one."""


class ProjectionError(Exception):
    """A message was about to go to somebody for whom it was not made. Says nothing of its content."""

    def __init__(self, match_id: str) -> None:
        super().__init__("a message was made for another audience")
        self.match_id = match_id


class Guard:
    """Stands at the way out to the holder of one credential."""

    def __init__(self, match_id: str, audience: Audience, metrics: Metrics) -> None:
        self._match_id = match_id
        self._audience = audience
        self._seats = _SEAT_NUMBERS[audience]
        self._metrics = metrics

    def release(self, message: Addressed) -> bytes:
        """The bytes to send. Raises ProjectionError when the view in them is for another match, audience or seat."""
        data, view = message
        if view is not None and not (
            view.audience is self._audience
            and view.match_id == self._match_id
            and own_seat_number(view.data) in self._seats
        ):
            self._metrics.process.projection_violations.inc()
            raise ProjectionError(self._match_id)
        return data


def own_seat_number(data: bytes) -> int:
    """Whose hand a serialized view holds: the seat's number, 0 when there is no own part, -1 for other bytes."""
    size, end = len(data), 0
    try:
        for tag in (_PUBLIC_TAG, _OWN_TAG):
            if data[end] != tag:
                return _UNREADABLE
            at, length, shift = end + 1, 0, 0
            while (byte := data[at]) & _MORE:
                length |= (byte & _LOW_BITS) << shift
                shift += 7
                at += 1
            start = at + 1
            end = start + (length | byte << shift)
            if tag == _PUBLIC_TAG and end == size:
                return 0
        is_whole = end == size and data[start] == _OWN_SEAT_TAG
        return data[start + 1] if is_whole else _UNREADABLE
    except IndexError:
        return _UNREADABLE
