"""From the JSON of a run's params to what a handler's annotation asks for.

A handler's second parameter may be annotated with a dataclass, with the types of JSON, or not at all. What cannot be made from JSON
is refused when the handler is registered. Params that do not fit fail the attempt for good: the next one would get the same.
"""

import collections.abc
import dataclasses
import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Literal, Union, cast

from campanile.executor.failure import INVALID_PARAMS, PermanentError
from campanile.shapes import Json

Convert = Callable[[Json], Any]
"""Params to what the handler takes; PermanentError when they do not fit."""

_Make = Callable[[Any, str], Any]
"""Makes the value at a place, which is named in errors."""

_NAMES = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "an object",
}
_LISTS = (list, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)
_MAPS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def converter(name: str, handler: Callable[..., Any]) -> Convert:
    """For the function registered as `name`; TypeError says what is wrong with its parameters."""
    function = handler if inspect.isroutine(handler) else type(handler).__call__
    parameters = list(inspect.signature(handler).parameters.values())
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    taken = [p for p in parameters if p.kind in positional]
    required = [p for p in taken if p.default is inspect.Parameter.empty]
    star = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters)
    if len(required) > 2 or (len(taken) < 2 and not star):
        raise TypeError(f"the handler {name!r} must take two arguments, the context and the params: def f(ctx, params)")
    if len(taken) < 2:
        return lambda params: params
    try:
        hint = typing.get_type_hints(inspect.unwrap(function)).get(taken[1].name, Any)
    except NameError as error:
        raise TypeError(
            f"the handler {name!r}: the annotation of {taken[1].name!r} cannot be resolved ({error}); "
            "define the type in the handler's module"
        ) from error
    make = _make(hint, f"the handler {name!r}: {taken[1].name}")
    return lambda params: make(params, "params")


def _unfit(place: str, wanted: str, value: object) -> PermanentError:
    came = next(
        (text for kind, text in _NAMES.items() if type(value) is kind), "null" if value is None else repr(value)
    )
    return PermanentError(f"{place}: {wanted} was expected, not {came}", code=INVALID_PARAMS)


def _make(hint: Any, where: str) -> _Make:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in (Any, object, inspect.Parameter.empty) or isinstance(hint, typing.TypeVar):
        return lambda value, _: value
    if hint is None or hint is type(None):
        return _null
    if origin in (Union, types.UnionType):
        return _union([_make(argument, where) for argument in arguments])
    if origin is typing.Annotated:
        return _make(arguments[0], where)
    if origin is Literal:
        return functools.partial(_one_of, arguments)
    if (origin or hint) in _LISTS:
        item = _make(arguments[0] if arguments else Any, f"{where}[]")
        return lambda value, place: [item(v, f"{place}[{n}]") for n, v in enumerate(_of(list, value, place))]
    if (origin or hint) in _MAPS:
        if arguments and arguments[0] not in (str, Any):
            raise TypeError(f"{where}: the keys of a JSON object are text, not {arguments[0]}")
        item = _make(arguments[1] if arguments else Any, f"{where}[...]")
        return lambda value, place: {k: item(v, f"{place}.{k}") for k, v in _of(dict, value, place).items()}
    if typing.is_typeddict(hint):
        return lambda value, place: _of(dict, value, place)
    if hint is float:
        return lambda value, place: float(_of(float, value, place))
    if hint in (bool, int, str):
        return lambda value, place: _of(hint, value, place)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return functools.partial(_enum, hint)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _dataclass(hint, where)
    raise TypeError(
        f"{where} is annotated with {hint!r}, which cannot be made from JSON; use a dataclass, or the types of JSON: "
        "dict, list, str, int, float, bool, None"
    )


def _of(kind: type[Any], value: object, place: str) -> Any:
    fits = isinstance(value, kind) or (kind is float and isinstance(value, int))
    if not fits or (kind in (int, float) and isinstance(value, bool)):
        raise _unfit(place, _NAMES[kind], value)
    return value


def _null(value: object, place: str) -> None:
    if value is not None:
        raise _unfit(place, "null", value)


def _one_of(words: tuple[Any, ...], value: object, place: str) -> Any:
    for word in words:
        if type(word) is type(value) and word == value:
            return word
    raise PermanentError(
        f"{place}: one of {', '.join(map(repr, words))} was expected, not {value!r}", code=INVALID_PARAMS
    )


def _enum(kind: type[Enum], value: object, place: str) -> Enum:
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(repr(member.value) for member in kind)
        raise PermanentError(f"{place}: one of {known} was expected, not {value!r}", code=INVALID_PARAMS) from None


def _union(makes: list[_Make]) -> _Make:
    def made(value: object, place: str) -> Any:
        problems = []
        for make in makes:
            try:
                return make(value, place)
            except PermanentError as error:
                problems.append(error.message)
        # The last one that is not about null says most.
        told = [problem for problem in problems if " null was expected" not in problem] or problems
        raise PermanentError("; or ".join(dict.fromkeys(told)), code=INVALID_PARAMS)

    return made


def _dataclass(shape: type[Any], where: str) -> _Make:
    fields: dict[str, tuple[_Make, bool]] = {}

    def learn() -> None:
        try:
            hints = typing.get_type_hints(shape)
        except NameError as error:
            raise TypeError(f"{where}: an annotation of {shape.__name__} cannot be resolved ({error})") from error
        for field in dataclasses.fields(shape):
            if field.init:
                required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
                fields[field.name] = (_make(hints[field.name], f"{where}.{field.name}"), required)

    if shape in _open:
        # A dataclass within itself: its fields are known when the outer one is.
        return lambda value, place: _open_shapes[shape](value, place)

    def made(value: object, place: str) -> Any:
        given = cast(Mapping[str, Any], _of(dict, value, place))
        missing = [name for name, (_, required) in fields.items() if required and name not in given]
        if missing:
            names = ", ".join(f"`{name}`" for name in missing)
            raise PermanentError(f"{place}: {names} is missing (see {shape.__name__})", code=INVALID_PARAMS)
        found = {name: make(given[name], f"{place}.{name}") for name, (make, _) in fields.items() if name in given}
        try:
            return shape(**found)
        except (TypeError, ValueError) as error:
            # What the dataclass itself checks, in __post_init__.
            raise PermanentError(f"{place}: {error}", code=INVALID_PARAMS) from error

    _open.add(shape)
    _open_shapes[shape] = made
    try:
        learn()
    finally:
        _open.discard(shape)
    return made


_open: set[type[Any]] = set()
_open_shapes: dict[type[Any], _Make] = {}
