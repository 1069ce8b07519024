"""Views to bytes: built once a version and audience, serialized once, joined for each stream.

Fields are joined in ascending order, as every protobuf library writes them, so that a client that serializes a view
again gets the same bytes and the same digest.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import NamedTuple

from engine import view as vw
from engine.events import Event
from engine.state import MatchState
from service.rpc import facts
from service.rpc.own_view import own_bytes
from service.rpc.public_view import public_bytes
from service.rpc.wire import sub_message
from spectacularbid.v1 import views_pb2

CACHED_VIEWS = 4096
"""Matches whose current views are kept serialized."""
DIGEST_BYTES = 8
_public_field = sub_message(views_pb2.MatchView.DESCRIPTOR, "public")
_own_field = sub_message(views_pb2.MatchView.DESCRIPTOR, "own")


class RenderedView(NamedTuple):
    """A serialized MatchView (for spectators a SpectatorView), its digest, and whom it was made for."""

    data: bytes
    digest: bytes
    match_id: str
    version: int
    audience: vw.Audience


class _Version(NamedTuple):
    state: MatchState
    public: bytes
    views: dict[vw.Audience, RenderedView]
    events: dict[int, tuple[bytes, ...]]


class Renderer:
    """Serialized views by match and audience, for the version last asked for."""

    def __init__(self) -> None:
        self._versions: OrderedDict[str, _Version] = OrderedDict()

    def view(self, match_id: str, state: MatchState, audience: vw.Audience) -> RenderedView:
        """The view of a match for an audience."""
        version = self._version(match_id, state)
        rendered = version.views.get(audience)
        if rendered is None:
            own = vw.own_view(state, audience)
            data = version.public
            if own is not None:
                data += _own_field(own_bytes(own))
            digest = hashlib.sha256(data).digest()[:DIGEST_BYTES]
            rendered = RenderedView(data, digest, match_id, state.version, audience)
            version.views[audience] = rendered
        return rendered

    def events(self, match_id: str, state: MatchState, cursor: int, events: tuple[Event, ...]) -> tuple[bytes, ...]:
        """The serialized Event messages of `events`, those after `cursor` up to the state's version."""
        known = self._version(match_id, state).events
        rendered = known.get(cursor)
        if rendered is None:
            rendered = known[cursor] = tuple(map(facts.event_bytes, events))
        return rendered

    def _version(self, match_id: str, state: MatchState) -> _Version:
        version = self._versions.get(match_id)
        if version is None or version.state is not state:
            public = _public_field(public_bytes(match_id, vw.public_view(state)))
            version = self._versions[match_id] = _Version(state, public, {}, {})
            self._versions.move_to_end(match_id)
            if len(self._versions) > CACHED_VIEWS:
                self._versions.popitem(last=False)
        return version
