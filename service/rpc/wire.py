"""Joining serialized messages, so that what many streams share is serialized once.

In the protobuf encoding a message is the concatenation of its fields in any order, and a sub-message is a field of
wire type 2: its tag, its length, its bytes (https://protobuf.dev/programming-guides/encoding/).
"""

from __future__ import annotations

from functools import cache

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
"""Lengths below this are remembered."""


class SubMessage(dict[int, bytes]):
    """A sub-message field: by the length of the sub-message what comes before its bytes, the tag and that length.

    Whoever joins many pieces takes `field[len(data)], data`, which calls no Python code; `field(data)` is both in one.
    """

    def __init__(self, tag: bytes) -> None:
        super().__init__()
        self._tag = tag

    def __missing__(self, length: int) -> bytes:
        before = self._tag + varint(length)
        if length < _SHORT:
            self[length] = before
        return before

    def __call__(self, data: bytes) -> bytes:
        """The whole field."""
        return self[len(data)] + data


@cache
def sub_message(parent: Descriptor, name: str) -> SubMessage:
    """The sub-message field of a message type; the same one for all, who share what it remembers."""
    field = parent.fields_by_name[name]
    assert field.message_type is not None
    return SubMessage(varint(field.number << 3 | _LENGTH_DELIMITED))
