"""Steps as they lie in the database: as `event_json` writes them, with hidden tiles sealed."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any, Final

from engine.events import Event, Step
from service.store.event_json import EVENT, FORMS, step_of, step_of_raw
from service.store.json_forms import Form
from service.store.sealing import Seal

HIDDEN: Final[dict[str, tuple[str, ...]]] = {"dealt": ("hands", "boneyard", "open"), "drew": ("tile",)}
"""What of an event no one may read without the key, by the event's tag."""
# Any: each event has a class of its own, the key.
_HIDING: Final[dict[object, tuple[Form[Any], tuple[str, ...]]]] = {
    form.made: (form, HIDDEN[form.tag]) for form in FORMS if form.tag in HIDDEN
}
SEALED: Final = "sealed"
"""The name under which an event holds what is hidden."""


def sealed_step_text(step: Step, seal: Seal, place: str) -> str:
    """The events of one version; most hide nothing and are written as they are."""
    return "[" + ",".join([_event_text(event, seal, place) for event in step]) + "]"


def sealed_step_of(text: str, seal: Seal, place: str) -> Step:
    """The events of a text by `sealed_step_text`. Raises StoredFormatError."""
    if f'"{SEALED}"' not in text:
        return step_of(text)
    return step_of_raw([_opened(event, seal, place) for event in json.loads(text)])


def resealed(text: str, seal: Seal, place: str) -> str:
    """The same events, sealed anew. Raises StoredFormatError."""
    return sealed_step_text(sealed_step_of(text, seal, place), seal, place)


def _event_text(event: Event, seal: Seal, place: str) -> str:
    hiding = _HIDING.get(type(event))
    if hiding is None:
        return EVENT.encode(event)
    form, names = hiding
    shown, hidden = form.encode_apart(event, names)
    return f'{shown[:-1]},"{SEALED}":"{b64encode(seal.close(hidden.encode(), place)).decode()}"}}'


# Any: parsed JSON, whose shape event_json checks.
def _opened(event: dict[str, Any], seal: Seal, place: str) -> dict[str, Any]:
    if SEALED not in event:
        return event
    sealed = b64decode(event.pop(SEALED))
    return {**event, **json.loads(seal.open(sealed, place))}
