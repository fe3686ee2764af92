"""Between the protocol's maps and dataclasses, by the dataclasses' annotations.

A field `every_sec` is `everySec` on the wire. Instants are aware datetimes here and milliseconds since 1970 UTC there. A field
annotated with `Json` is a payload: any JSON value here, a binary of JSON text there. Fields that a newer node added are passed
over; a variant of a tagged union that is not known becomes `Other`.
"""

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, ClassVar, Final, TypeVar, Union, cast

from campanile.errors import protocol_error

Json = Any
"""Any JSON value: None, bool, int, float, str, list, dict."""

T = TypeVar("T")
_Read = Callable[[object], Any]
_Write = Callable[[Any], object]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclasses.dataclass(frozen=True)
class Other:
    """A variant that this release does not know, as it came; it can be sent back."""

    fields: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class _Field:
    name: str
    wire: str
    read: _Read
    write: _Write
    required: bool
    flat: bool


FLAT: Final = {"flat": True}
"""Metadata of a nested shape whose fields stand beside the others on the wire; `{"wire": name}` gives a field another name, and
`{"local": True}` lets a datetime without a zone be a local time, whose zone another field names."""


def to_ms(instant: datetime) -> int:
    """Milliseconds since 1970 UTC; ValueError for a datetime without a zone."""
    if instant.tzinfo is None:
        raise ValueError(f"{instant!r} has no time zone; use datetime.now(UTC) or replace(tzinfo=...)")
    return (instant - _EPOCH) // timedelta(milliseconds=1)


def _to_ms_or_local(time: datetime) -> object:
    """As `to_ms`; a datetime without a zone as text, which the node reads in the zone of another field."""
    return to_ms(time) if time.tzinfo is not None else time.isoformat(timespec="milliseconds")


def from_ms(ms: int) -> datetime:
    """The instant, in UTC."""
    return _EPOCH + timedelta(milliseconds=ms)


def to_payload(value: Json) -> bytes:
    """JSON text; TypeError or ValueError for what is not JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def from_payload(value: object) -> Json:
    """A payload's value: a binary holds JSON text, all else is the value itself."""
    return json.loads(value) if isinstance(value, bytes) else value


class _UnfitError(TypeError):
    """A value of another class than its field has, with the path of the field."""

    def __init__(self, path: list[str], message: str) -> None:
        super().__init__(f"{'.'.join(path)} {message}".lstrip())
        self.path, self.message = path, message


def _writer_of(*shapes: type[Any]) -> _Write:
    """Writes values of these classes, and says of all others which ones there are."""
    names = ", ".join(shape.__name__ for shape in shapes if shape is not Other)

    def checked(value: Any) -> object:
        if not isinstance(value, shapes):
            raise _UnfitError([], f"must be {names}, not {type(value).__name__}")
        return value.fields if isinstance(value, Other) else write(value)

    return checked


def write(value: Any) -> dict[str, object]:
    """The map of a dataclass. Fields that are None are left out: the node has its default for them."""
    out: dict[str, object] = {}
    tag = getattr(value, "TAG", None)
    if tag is not None:
        out[tag] = value.KIND
    for field in _fields(type(value)):
        item = getattr(value, field.name)
        if item is None:
            continue
        if field.flat:
            out.update(write(item))
        else:
            try:
                out[field.wire] = field.write(item)
            except _UnfitError as error:
                raise _UnfitError([field.name, *error.path], error.message) from None
    return out


def read(shape: type[T], value: object) -> T:
    """The dataclass of a map; ProtocolError names the field that does not fit."""
    if not isinstance(value, Mapping):
        raise protocol_error(f"{shape.__name__}: a map was expected, not {type(value).__name__}")
    found: dict[str, Any] = {}
    for field in _fields(shape):
        if field.flat:
            found[field.name] = field.read(value)
        elif field.wire in value:
            try:
                found[field.name] = field.read(value[field.wire])
            except (TypeError, ValueError) as error:
                raise protocol_error(f"{shape.__name__}.{field.wire}: {error}") from error
        elif field.required:
            raise protocol_error(f"{shape.__name__}: `{field.wire}` is missing")
    return shape(**found)


_known: dict[type[Any], tuple[_Field, ...]] = {}


def _fields(shape: type[Any]) -> tuple[_Field, ...]:
    found = _known.get(shape)
    if found is None:
        found = _known[shape] = _look_at(shape)
    return found


def _look_at(shape: type[Any]) -> tuple[_Field, ...]:
    hints = typing.get_type_hints(shape)
    made = []
    for field in dataclasses.fields(shape):
        first, *rest = field.name.split("_")
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        reader, writer = _codec(hints[field.name])
        if field.metadata.get("local"):
            writer = _to_ms_or_local
        wire = field.metadata.get("wire") or first + "".join(word.capitalize() for word in rest)
        made.append(_Field(field.name, wire, reader, writer, required, bool(field.metadata.get("flat"))))
    return tuple(made)


def _codec(hint: Any) -> tuple[_Read, _Write]:
    """How values of an annotation are read and written."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return from_payload, to_payload
    if origin in (Union, types.UnionType):
        return _union(arguments)
    if origin is list:
        reader, writer = _codec(arguments[0])
        return (lambda value: [reader(item) for item in _typed(list, value)]), (
            lambda value: [writer(v) for v in value]
        )
    if origin is dict:
        reader, writer = _codec(arguments[1])
        return (
            lambda value: {str(key): reader(item) for key, item in _typed(dict, value).items()},
            lambda value: {key: writer(item) for key, item in value.items()},
        )
    if hint is datetime:
        return _instant, to_ms
    if dataclasses.is_dataclass(hint):
        return functools.partial(read, cast(type[Any], hint)), _writer_of(cast(type[Any], hint))
    if issubclass(hint, Enum):
        return hint, lambda value: hint(value).value
    if hint is float:
        return (lambda value: float(_number(value))), float
    return functools.partial(_typed, hint), lambda value: value


def _union(arguments: tuple[Any, ...]) -> tuple[_Read, _Write]:
    """`X | None`, or variants told apart by their tag, with `Other` among them."""
    variants = [a for a in arguments if a is not type(None)]
    if len(variants) == 1:
        reader, writer = _codec(variants[0])
        return (lambda value: None if value is None else reader(value)), writer
    known = {v.KIND: v for v in variants if v is not Other}
    tag = next(iter(known.values())).TAG

    def tagged(value: object) -> Any:
        if value is None and type(None) in arguments:
            return None
        fields = _typed(dict, value)
        shape = known.get(str(fields.get(tag)).upper())
        return Other(fields) if shape is None else read(shape, fields)

    return tagged, _writer_of(*variants)


def _typed(kind: type[T], value: object) -> T:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"{kind.__name__} was expected, not {type(value).__name__}")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"a number was expected, not {type(value).__name__}")
    return value


def _instant(value: object) -> datetime:
    return datetime.fromisoformat(value) if isinstance(value, str) else from_ms(_typed(int, value))


class Tagged:
    """A variant: `TAG` is the field that tells variants apart, `KIND` this one's word in it."""

    TAG: ClassVar[str]
    KIND: ClassVar[str]
