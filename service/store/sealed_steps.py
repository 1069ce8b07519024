"""Steps as they lie in the database: as `event_json` writes them, with hidden tiles sealed."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any, Final

from engine.events import Event, Step
from service.store.event_json import FORMS, step_of, step_of_raw
from service.store.json_forms import Form
from service.store.sealing import Seal

HIDDEN: Final[dict[str, tuple[str, ...]]] = {"dealt": ("hands", "boneyard", "open"), "drew": ("tile",)}
"""What of an event no one may read without the key, by the event's tag."""
# Any: each event has a class of its own, the key.
_PLAIN: Final[dict[object, Callable[[Any], str]]] = {form.made: form.encode for form in FORMS if form.tag not in HIDDEN}
_HIDING: Final[dict[object, tuple[Form[Any], Form[Any]]]] = {
    form.made: form.apart(HIDDEN[form.tag]) for form in FORMS if form.tag in HIDDEN
}
SEALED: Final = "sealed"
"""The name under which an event holds what is hidden."""


def sealed_step_text(step: Step, seal: Seal, place: str) -> str:
    """The events of one version; most hide nothing and are written as they are."""
    texts = []
    for event in step:
        plain = _PLAIN.get(type(event))
        texts.append(_sealed_text(event, seal, place) if plain is None else plain(event))
    return "[" + ",".join(texts) + "]"


def sealed_step_of(text: str, seal: Seal, place: str) -> Step:
    """The events of a text by `sealed_step_text`. Raises StoredFormatError."""
    if f'"{SEALED}"' not in text:
        return step_of(text)
    return step_of_raw([_opened(event, seal, place) for event in json.loads(text)])


def resealed(text: str, seal: Seal, place: str) -> str:
    """The same events, sealed anew. Raises StoredFormatError."""
    return sealed_step_text(sealed_step_of(text, seal, place), seal, place)


def _sealed_text(event: Event, seal: Seal, place: str) -> str:
    shown, hidden = _HIDING[type(event)]
    sealed = b64encode(seal.close(hidden.encode(event).encode(), place)).decode()
    return f'{shown.encode(event)[:-1]},"{SEALED}":"{sealed}"}}'


# Any: parsed JSON, whose shape event_json checks.
def _opened(event: dict[str, Any], seal: Seal, place: str) -> dict[str, Any]:
    if SEALED not in event:
        return event
    sealed = b64decode(event.pop(SEALED))
    return {**event, **json.loads(seal.open(sealed, place))}
