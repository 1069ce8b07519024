"""Views to bytes: built once a version and audience, serialized once, joined for each stream.

Fields are joined in ascending order, as every protobuf library writes them, so that a client that serializes a view
again gets the same bytes and the same digest.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import NamedTuple, TypeAlias

from engine import view as vw
from engine.state import MatchState
from service.rpc.own_view import own_bytes
from service.rpc.public_view import public_bytes
from service.rpc.wire import sub_message
from spectacularbid.v1 import views_pb2

CACHED_VIEWS = 4096
"""Matches whose current views are kept serialized."""
DIGEST_BYTES = 8
_public_field = sub_message(views_pb2.MatchView.DESCRIPTOR, "public")
_own_field = sub_message(views_pb2.MatchView.DESCRIPTOR, "own")
News: TypeAlias = tuple[bytes, bool]
"""Events as serialized fields, and whether none is missing."""


class RenderedView(NamedTuple):
    """A serialized MatchView (for spectators a SpectatorView), its digest, and whom it was made for."""

    data: bytes
    digest: bytes
    match_id: str
    version: int
    audience: vw.Audience


class Version:
    """One version of a match, serialized as far as it was asked for."""

    def __init__(self, match_id: str, state: MatchState) -> None:
        self.state = state
        self.news: dict[int, News] = {}
        """By the version that a viewer knows what came after it."""
        self._match_id = match_id
        public = public_bytes(match_id, vw.public_view(state))
        self._public = _public_field[len(public)] + public
        self._views: dict[vw.Audience, RenderedView] = {}

    def view(self, audience: vw.Audience) -> RenderedView:
        """The view for an audience."""
        rendered = self._views.get(audience)
        if rendered is None:
            data, own = self._public, vw.own_view(self.state, audience)
            if own is not None:
                own_data = own_bytes(own)
                data += _own_field[len(own_data)] + own_data
            digest = hashlib.sha256(data).digest()[:DIGEST_BYTES]
            rendered = RenderedView(data, digest, self._match_id, self.state.version, audience)
            self._views[audience] = rendered
        return rendered


class Renderer:
    """What is serialized of each match, for the version last asked for."""

    def __init__(self) -> None:
        self._versions: OrderedDict[str, Version] = OrderedDict()

    def version(self, match_id: str, state: MatchState) -> Version:
        """This version of a match."""
        version = self._versions.get(match_id)
        if version is None or version.state is not state:
            version = self._versions[match_id] = Version(match_id, state)
            self._versions.move_to_end(match_id)
            if len(self._versions) > CACHED_VIEWS:
                self._versions.popitem(last=False)
        return version
