"""Services that leak, one way each: what the trials must find."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeAlias
from unittest.mock import patch

from prometheus_client import Counter

from engine import view as vw
from engine.refusals import RefusalReason
from engine.seats import SEATS
from engine.state import MatchState
from engine.tiles import hand_pips
from service.logs import get_logger
from service.rpc import facts
from service.rpc.outbound import Addressed
from service.rpc.render import News, Version
from service.rpc.streams import Presenter
from service.writer import MatchWriter
from spectacularbid.v1 import events_pb2, outcomes_pb2
from spectacularbid.v1 import match_service_pb2 as pb

# Any: what is replaced here is called with whatever it was called with.
Leak: TypeAlias = Callable[[], AbstractContextManager[Any]]


def _hands(state: MatchState) -> str:
    return repr(state.round.hands) if state.round else ""


def _one_event_more(event_of: Callable[[MatchState], events_pb2.Event | None]) -> AbstractContextManager[Any]:
    original = Presenter._news

    def news(self: Presenter, version: Version, cursor: int) -> News:
        events, complete = original(self, version, cursor)
        event = event_of(version.state)
        if event is not None:
            events += pb.MatchUpdate(events=[event]).SerializeToString()
        version.news[cursor] = events, complete
        return events, complete

    return patch.object(Presenter, "_news", news)


def hand_in_an_event() -> AbstractContextManager[Any]:
    """Both hands in the text of an event."""
    return _one_event_more(
        lambda state: events_pb2.Event(player_seated=events_pb2.PlayerSeated(display_name=_hands(state)))
    )


def tile_in_an_event() -> AbstractContextManager[Any]:
    """The next tile of the boneyard as a play."""

    def played(state: MatchState) -> events_pb2.Event | None:
        if state.round is None or not state.round.boneyard:
            return None
        return events_pb2.Event(tile_played=events_pb2.TilePlayed(tile=facts.TILES[state.round.boneyard[0]]))

    return _one_event_more(played)


def size_off_by_one() -> AbstractContextManager[Any]:
    """A boneyard that is one smaller when both hands together are odd."""
    original = vw.public_view

    def public_view(state: MatchState) -> vw.PublicView:
        view = original(state)
        if state.round is None or view.round is None:
            return view
        odd = sum(hand_pips(state.round.hands[seat.index]) for seat in SEATS) % 2
        return view._replace(round=view.round._replace(boneyard_size=view.round.boneyard_size - odd))

    return patch.object(vw, "public_view", public_view)


def telling_refusal() -> AbstractContextManager[Any]:
    """Another sentence where the opponent has the tile than where the boneyard has it."""
    original = Presenter.outcome

    async def outcome(self: Presenter, fields: Any, done: Any) -> Addressed:  # noqa: ANN401
        data, view = await original(self, fields, done)
        refusal, current = done.record.refusal, done.state.round
        if refusal is None or refusal.reason is not RefusalReason.TILE_NOT_IN_HAND or current is None:
            return data, view
        if fields.command.tile in current.boneyard:
            return data, view
        told = outcomes_pb2.CommandOutcome.FromString(data)
        told.refused.message = "Your opponent has that tile."
        return told.SerializeToString(), view

    return patch.object(Presenter, "outcome", outcome)


def hand_in_the_log() -> AbstractContextManager[Any]:
    """A line with the hands for every command."""
    original = MatchWriter.carry_out

    async def carry_out(self: MatchWriter, order: Any) -> Any:  # noqa: ANN401
        get_logger().info("deciding", hands=_hands(await self.state()))
        return await original(self, order)

    return patch.object(MatchWriter, "carry_out", carry_out)


def token_in_the_log() -> AbstractContextManager[Any]:
    """A line with every answer's caller."""
    from tests.support.twins.world import Call  # noqa: PLC0415  only this leak is the transport's

    original = Call.invocation_metadata

    def invocation_metadata(self: Call) -> tuple[tuple[str, str], ...]:
        get_logger().info("called", metadata=original(self))
        return original(self)

    return patch.object(Call, "invocation_metadata", invocation_metadata)


def tile_in_a_label() -> AbstractContextManager[Any]:
    """A counter by the tile that comes next from the boneyard."""
    original = MatchWriter.carry_out

    async def carry_out(self: MatchWriter, order: Any) -> Any:  # noqa: ANN401
        done = await original(self, order)
        metrics = self._services.metrics
        counter = getattr(metrics, "leak", None) or Counter("leak", "Leak.", ["hands"], registry=metrics.registry)
        metrics.leak = counter  # type: ignore[attr-defined]
        counter.labels(_hands(done.state)).inc()
        return done

    return patch.object(MatchWriter, "carry_out", carry_out)


def count_of_attempts() -> AbstractContextManager[Any]:
    """Updates that count refused commands too."""
    original = Presenter.update

    def update(self: Presenter, *rest: Any) -> Addressed:  # noqa: ANN401
        data, view = original(self, *rest)
        told = pb.MatchUpdate.FromString(data)
        told.service_now_unix_ns += len(self._store.commands)  # type: ignore[attr-defined]
        return told.SerializeToString(), view

    return patch.object(Presenter, "update", update)


TWIN_LEAKS: dict[str, tuple[Leak, str]] = {
    "a hand in an event": (hand_in_an_event, "stream"),
    "a size that depends on the hands": (size_off_by_one, "stream"),
    "a refusal that tells where the tile is": (telling_refusal, "probes SubmitCommand"),
    "hands in the log": (hand_in_the_log, "log"),
    "hands in a metric's label": (tile_in_a_label, "metrics"),
}
"""Each leak with a channel on which a twin must show it."""
