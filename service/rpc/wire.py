"""Joining serialized messages, so that what many streams share is serialized once.

In the protobuf encoding a message is the concatenation of its fields in any order, and a sub-message is a field of
wire type 2: its tag, its length, its bytes (https://protobuf.dev/programming-guides/encoding/).
"""

from __future__ import annotations

from collections.abc import Callable

from google.protobuf.descriptor import Descriptor

_LENGTH_DELIMITED = 2
_LOW_BITS = 0x7F
_MORE = 0x80


def varint(number: int) -> bytes:
    """A non-negative integer in base 128, least group first."""
    if number <= _LOW_BITS:
        return bytes((number,))
    groups = bytearray()
    while number > _LOW_BITS:
        groups.append(number & _LOW_BITS | _MORE)
        number >>= 7
    groups.append(number)
    return bytes(groups)


_SHORT = 4096
_SHORT_LENGTHS = tuple(map(varint, range(_SHORT)))


def sub_message(parent: Descriptor, name: str) -> Callable[[bytes], bytes]:
    """What writes a sub-message field of a message type around the sub-message's bytes."""
    field = parent.fields_by_name[name]
    assert field.message_type is not None
    tag = varint(field.number << 3 | _LENGTH_DELIMITED)

    def around(payload: bytes) -> bytes:
        length = len(payload)
        prefix = _SHORT_LENGTHS[length] if length < _SHORT else varint(length)
        return tag + prefix + payload

    return around
