"""The view digest: a warning, not a proof.

The service sends the first 8 bytes of the SHA-256 of the serialized view. protobuf hands over the parsed view, not the
bytes as received, so the client serializes it again, deterministically. That gives the same bytes as long as the
client knows every field. Fields unknown to it are kept, but written after the known ones, so that a newer service may
cause a false alarm: a mismatch goes to a hook together with that hint, and never stops anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from spectacularbid.v1.views_pb2 import MatchView

DIGEST_BYTES = 8


@dataclass(frozen=True, slots=True)
class Desync:
    """A view whose digest is not the one that came with it."""

    version: int
    expected: bytes
    computed: bytes
    has_unknown_fields: bool


def view_digest(view: MatchView) -> bytes:
    """The first 8 bytes of the SHA-256 of `view.SerializeToString(deterministic=True)`."""
    return hashlib.sha256(view.SerializeToString(deterministic=True)).digest()[:DIGEST_BYTES]


def check_digest(view: MatchView, digest: bytes, on_desync: Callable[[Desync], None]) -> None:
    """Report a view that does not match its digest. An empty digest is not checked."""
    if not digest:
        return
    computed = view_digest(view)
    if computed != digest:
        on_desync(Desync(view.public.version, digest, computed, has_unknown_fields(view)))


def has_unknown_fields(message: Message) -> bool:
    """Whether the message, at any depth, has fields that this client does not know."""
    if len(UnknownFieldSet(message)):
        return True
    return any(has_unknown_fields(child) for child in _children(message))


def _children(message: Message) -> list[Message]:
    children: list[Message] = []
    for descriptor, value in message.ListFields():
        if descriptor.type == FieldDescriptor.TYPE_MESSAGE:
            children += [value] if isinstance(value, Message) else list(value)
    return children
