"""How values become JSON on disk: a form per class, with keys and names of its own, so that code can be renamed.

A field that is None is left out. A key that is missing reads as the field's default, so a field can be added later; a
key that is not known is passed over.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Mapping
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
        self._start: Final = "{" if tag is None else f'{{"{TAG}":"{tag}"'
        self._rows: Final = tuple(
            (name, key, f'"{key}":', *kind, default) for name, (key, kind, default) in fields.items()
        )

    @property
    def kind(self) -> Kind[T]:
        """This form as the kind of a field."""
        return Kind(self.encode, self.decode)

    def encode(self, value: T) -> str:
        """The JSON object of `value`."""
        return _object(self._start, self._texts(value))

    def encode_apart(self, value: T, hidden: Container[str]) -> tuple[str, str]:
        """The JSON object of `value` without these keys, and one of them alone."""
        texts = list(zip([key for _, key, *_ in self._rows], self._texts(value), strict=True))
        shown = [text for key, text in texts if key not in hidden]
        return _object(self._start, shown), _object("{", [text for key, text in texts if key in hidden])

    def _texts(self, value: T) -> list[str]:
        """Each field with its key; empty for one that is None."""
        texts = []
        for name, _, start, encode, _, _ in self._rows:
            part = getattr(value, name)
            texts.append("" if part is None else start + encode(part))
        return texts

    def decode(self, raw: Json) -> T:
        """The value of a JSON object."""
        if type(raw) is not dict:
            raise TypeError("not an object")
        parts = {}
        for name, key, _, _, decode, default in self._rows:
            if key in raw:
                parts[name] = decode(raw[key])
            elif default is _Required.REQUIRED:
                raise KeyError(key)
            else:
                parts[name] = default
        return self.made(**parts)


def _object(start: str, texts: Iterable[str]) -> str:
    """A JSON object of those fields that are there; `start` is its brace and maybe a first field."""
    fields = ",".join([text for text in texts if text])
    return start + ("," if fields and start != "{" else "") + fields + "}"


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
FLAG: Final = exactly(bool, lambda flag: "true" if flag else "false")
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
