"""How values become JSON on disk: a form per class, with keys and names of its own, so that code can be renamed.

A field that is None is left out. A key that is missing reads as the field's default, so a field can be added later; a
key that is not known is passed over.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Mapping
from enum import Enum
from json.encoder import encode_basestring_ascii
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from service.ports import DamagedError

T = TypeVar("T")
J = TypeVar("J", bool, int, str)
Json: TypeAlias = "bool | int | str | list[Json] | dict[str, Json] | None"

TAG: Final = "t"
"""The key that says which form an object has, where there is a choice."""


class StoredFormatError(DamagedError):
    """A stored text is not what this version writes: damaged, or from a newer version."""


class Kind(NamedTuple, Generic[T]):
    """A two-way translation of one type: to JSON text, and from a parsed JSON value.

    The text is compact and ASCII: every character that could trouble a database is escaped. `decode` raises ValueError,
    KeyError or TypeError for anything else.
    """

    encode: Callable[[T], str]
    decode: Callable[[Json], T]


class _Required(Enum):
    REQUIRED = "required"


class Field(NamedTuple):
    """A field's key on disk, its kind and, where the key may be missing, its default."""

    key: str
    kind: Kind[Any]  # each field has a type of its own; the round trip over every class is tested
    default: object = _Required.REQUIRED


class Form(Generic[T]):
    """The JSON object of one class. `fields` are by attribute; with a `tag` it can be told from others."""

    def __init__(self, made: Callable[..., T], tag: str | None = None, /, **fields: Field) -> None:
        self.made = made
        self.tag = tag
        self.fields: Final[Mapping[str, Field]] = fields
        self._start: Final = "" if tag is None else f',"{TAG}":"{tag}"'
        self._writes: Final = tuple((name, f',"{key}":', kind.encode) for name, (key, kind, _) in fields.items())
        self._reads: Final = tuple((name, key, kind.decode, default) for name, (key, kind, default) in fields.items())

    @property
    def kind(self) -> Kind[T]:
        """This form as the kind of a field."""
        return Kind(self.encode, self.decode)

    def apart(self, keys: Container[str]) -> tuple[Form[T], Form[T]]:
        """A form that writes all but these keys, and one that writes them alone."""
        shown = {name: field for name, field in self.fields.items() if field.key not in keys}
        hidden = {name: field for name, field in self.fields.items() if field.key in keys}
        return Form(self.made, self.tag, **shown), Form(self.made, **hidden)

    def encode(self, value: T) -> str:
        """The JSON object of `value`."""
        text = self._start
        for name, start, encode in self._writes:
            if (part := getattr(value, name)) is not None:
                text = f"{text}{start}{encode(part)}"
        return f"{{{text[1:]}}}"  # without the first comma

    def decode(self, raw: Json) -> T:
        """The value of a JSON object."""
        if type(raw) is not dict:
            raise TypeError("not an object")
        parts = {}
        for name, key, decode, default in self._reads:
            if key in raw:
                parts[name] = decode(raw[key])
            elif default is _Required.REQUIRED:
                raise KeyError(key)
            else:
                parts[name] = default
        return self.made(**parts)


def exactly(made: type[J], encode: Callable[[J], str]) -> Kind[J]:
    """A type that JSON has itself; True is no number."""

    def checked(raw: Json) -> J:
        if type(raw) is not made:
            raise TypeError(f"not {made.__name__}")
        return raw

    return Kind(encode, checked)


def named(names: Mapping[T, str | int]) -> Kind[T]:
    """Values under fixed names."""
    texts = {value: json.dumps(name) for value, name in names.items()}
    decoded: dict[Json, T] = {name: value for value, name in names.items()}
    return Kind(texts.__getitem__, decoded.__getitem__)


def listed(kind: Kind[T]) -> Kind[tuple[T, ...]]:
    """An array of one kind."""
    encode, decode = kind

    def parts(raw: Json) -> tuple[T, ...]:
        if type(raw) is not list:
            raise TypeError("not an array")
        return tuple([decode(part) for part in raw])

    return Kind(lambda values: "[" + ",".join([encode(value) for value in values]) + "]", parts)


def one_of(*forms: Form[Any]) -> Kind[Any]:  # the forms have different types
    """Values of several classes, told apart by the tags of their forms."""
    encoders = {form.made: form.encode for form in forms}
    decoders: dict[Json, Callable[[Json], object]] = {form.tag: form.decode for form in forms}

    def decode(raw: Json) -> object:
        if type(raw) is not dict:
            raise TypeError("not an object")
        return decoders[raw[TAG]](raw)

    return Kind(lambda value: encoders[type(value)](value), decode)


NUMBER: Final = exactly(int, str)
FLAG: Final = exactly(bool, {True: "true", False: "false"}.__getitem__)
TEXT: Final = exactly(str, encode_basestring_ascii)


def read(raw: Json, decode: Callable[[Json], T]) -> T:
    """The value of what was stored. Raises StoredFormatError."""
    try:
        return decode(raw)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise StoredFormatError("a stored value is damaged or from a newer version") from error


def read_text(text: str, decode: Callable[[Json], T]) -> T:
    """The value of a stored JSON text. Raises StoredFormatError."""
    return read(text, lambda _: decode(json.loads(text)))
