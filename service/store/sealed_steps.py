"""Steps as they lie in the database: as `event_json` writes them, with hidden tiles sealed."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any, Final

from engine.events import RoundDealt, Step, TileDrawn
from service.store.event_json import step_of, step_text
from service.store.sealing import Seal

HIDDEN: Final[dict[str, tuple[str, ...]]] = {"dealt": ("hands", "boneyard", "open"), "drew": ("tile",)}
"""What of an event no one may read without the key, by the event's tag."""
_SEALED: Final = "sealed"


def sealed_step_text(step: Step, seal: Seal, place: str) -> str:
    """The events of one version; most hide nothing and are written as they are."""
    text = step_text(step)
    if not any(isinstance(event, RoundDealt | TileDrawn) for event in step):
        return text
    return _compact([_closed(event, seal, place) for event in json.loads(text)])


def sealed_step_of(text: str, seal: Seal, place: str) -> Step:
    """The events of a text by `sealed_step_text`. Raises StoredFormatError."""
    if f'"{_SEALED}"' not in text:
        return step_of(text)
    return step_of(_compact([_opened(event, seal, place) for event in json.loads(text)]))


# Any: parsed JSON, whose shape event_json checks.
def _closed(event: dict[str, Any], seal: Seal, place: str) -> dict[str, Any]:
    hidden = {name: event.pop(name) for name in HIDDEN.get(event["t"], ()) if name in event}
    return {**event, _SEALED: b64encode(seal.close(_compact(hidden).encode(), place)).decode()} if hidden else event


def _opened(event: dict[str, Any], seal: Seal, place: str) -> dict[str, Any]:
    if _SEALED not in event:
        return event
    sealed = b64decode(event.pop(_SEALED))
    return {**event, **json.loads(seal.open(sealed, place))}


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
