"""What must hold of all that watchers saw: never back, what the log says, and no tile that was hidden from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from google.protobuf.message import Message

from engine.seats import SEATS, Seat
from engine.tiles import Tile
from engine.view import Audience
from service.rpc import facts
from service.rpc.render import Renderer
from spectacularbid.v1 import events_pb2, outcomes_pb2, tiles_pb2, views_pb2
from tests.chaos.history import History
from tests.chaos.story import Story

SEAT_OF: Mapping[Audience, Seat] = {Audience.SEAT_ONE: Seat.ONE, Audience.SEAT_TWO: Seat.TWO}


class Capture(NamedTuple):
    """Something that one watcher got, on a stream or with an answer."""

    watcher: str
    audience: Audience
    view: views_pb2.MatchView
    events: Sequence[events_pb2.Event]


def check_views(history: History, story: Story) -> Iterator[str]:
    """What is wrong with all that people were shown of one match."""
    renderer = Renderer()
    told = {facts.event_fields((event,)) for step in story.steps for event in step}
    views: dict[tuple[int, Audience], bytes] = {}
    yield from _check_order(history, story)
    for capture in _captures(history, story.match_id):
        version = capture.view.public.version
        if not 0 < version < len(story.states):
            yield f"a view is of a stored version: {capture.watcher} v{version}"
            continue
        key = version, capture.audience
        if key not in views:
            views[key] = renderer.version(story.match_id, story.state(version)).view(capture.audience).data
        if capture.view.SerializeToString(deterministic=True) != _canonical(views[key]):
            yield f"a view says what is stored: {capture.watcher} v{version}"
        if any(outcomes_pb2.Accepted(events=[event]).SerializeToString() not in told for event in capture.events):
            yield f"an event says what is stored: {capture.watcher} v{version}"
        yield from _check_secrecy(story, capture)


def _captures(history: History, match_id: str) -> Iterator[Capture]:
    for seen in history.seen:
        if seen.match_id == match_id:
            yield Capture(seen.watcher, seen.audience, seen.update.view, seen.update.events)
    for sent, outcome, _ in history.answered:
        if sent.match_id == match_id:
            who = f"answer to {sent.sender.name} of {match_id}"
            yield Capture(who, sent.sender, outcome.view, outcome.accepted.events)


def _check_order(history: History, story: Story) -> Iterator[str]:
    newest: dict[str, int] = defaultdict(int)
    for seen in history.seen:
        if seen.match_id != story.match_id:
            continue
        version = seen.update.view.public.version
        if version < newest[seen.watcher]:
            yield f"views never go back: {seen.watcher} from v{newest[seen.watcher]} to v{version}"
        newest[seen.watcher] = version


def _canonical(data: bytes) -> bytes:
    return views_pb2.MatchView.FromString(data).SerializeToString(deterministic=True)


def _check_secrecy(story: Story, capture: Capture) -> Iterator[str]:
    """No tile in the view lies in a hand that is not the watcher's, or in the boneyard; the end shows all."""
    version = capture.view.public.version
    state = story.state(version)
    if state.round is None or state.result is not None or state.settlement is not None:
        return
    hidden = set(state.round.boneyard)
    for seat in SEATS:
        if SEAT_OF.get(capture.audience) is not seat:
            hidden |= set(state.round.hands[seat.index])
    if leaked := hidden & set(_tiles(capture.view)):
        yield f"no hidden tile is shown: {capture.watcher} v{version} {sorted(leaked)}"


def _tiles(message: Message) -> Iterator[Tile]:
    """Every tile anywhere in a message."""
    match message:
        case tiles_pb2.Tile():
            yield Tile(message.low, message.high)
        case views_pb2.PlacedTile():
            yield Tile(*sorted((message.first, message.second)))
        case _:
            for field, value in message.ListFields():
                if field.message_type is not None:
                    for part in value if field.is_repeated else (value,):
                        yield from _tiles(part)
