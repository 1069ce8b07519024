"""What everyone may see of a match, as text for an operator."""

from __future__ import annotations

from google.protobuf.json_format import MessageToJson

from engine.state import MatchState
from engine.view import Audience
from service.rpc.render import Renderer
from spectacularbid.v1 import views_pb2


def public_json(match_id: str, state: MatchState) -> str:
    """The PublicView that every spectator gets, as JSON with the fields' names of the proto."""
    rendered = Renderer().version(match_id, state).view(Audience.SPECTATOR)
    public = views_pb2.SpectatorView.FromString(rendered.data).public
    return MessageToJson(public, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
