"""Typed params of handlers: what is made of JSON, what is refused, and when."""

import logging
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, TypedDict

import pytest

from campanile import Context, Executor, Json, PermanentError
from campanile.executor import failure
from campanile.executor.assignment import FAILED, SUCCESS
from campanile.executor.params import converter

from fake_node import FakeNode, assignment  # isort: skip


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Line:
    text: str
    amount: float = 1.0


@dataclass(frozen=True)
class Bill:
    customer: int
    lines: list[Line] = field(default_factory=list)
    colour: Colour | None = None
    kind: Literal["a", "b"] = "a"
    notes: dict[str, str] | None = None
    parent: "Bill | None" = None

    def __post_init__(self) -> None:
        if self.customer < 0:
            raise ValueError("customer is below 0")


class Loose(TypedDict):
    customer: int


def made(handler: Any, params: Json) -> Any:
    return converter("h", handler)(params)


def typed(ctx: Context, bill: Bill) -> None: ...


def test_a_dataclass_is_made_with_all_that_is_in_it() -> None:
    params = {
        "customer": 7,
        "lines": [{"text": "x", "amount": 2}, {"text": "y"}],
        "colour": "red",
        "kind": "b",
        "notes": {"a": "b"},
        "parent": {"customer": 6},
        "unknown": "is passed over",
    }
    lines = [Line("x", 2.0), Line("y")]
    assert made(typed, params) == Bill(7, lines, Colour.RED, "b", {"a": "b"}, Bill(6))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (None, "params: an object was expected, not null"),
        ([1], "params: an object was expected, not a list"),
        ({}, "params: `customer` is missing (see Bill)"),
        ({"customer": "7"}, "params.customer: a whole number was expected, not text"),
        ({"customer": True}, "params.customer: a whole number was expected, not true or false"),
        ({"customer": 7, "lines": [{"text": "x"}, {}]}, "params.lines[1]: `text` is missing (see Line)"),
        (
            {"customer": 7, "lines": [{"text": "x", "amount": "1"}]},
            "params.lines[0].amount: a number was expected, not text",
        ),
        ({"customer": 7, "colour": "green"}, "params.colour: one of 'red', 'blue' was expected, not 'green'"),
        ({"customer": 7, "kind": "c"}, "params.kind: one of 'a', 'b' was expected, not 'c'"),
        ({"customer": 7, "notes": {"a": 1}}, "params.notes.a: text was expected, not a whole number"),
        ({"customer": 7, "parent": {"customer": "x"}}, "params.parent.customer: a whole number was expected, not text"),
        ({"customer": -1}, "params: customer is below 0"),
    ],
)
def test_params_that_do_not_fit_say_where_and_are_permanent(params: Json, message: str) -> None:
    with pytest.raises(PermanentError) as caught:
        made(typed, params)
    assert (caught.value.message, caught.value.code) == (message, failure.INVALID_PARAMS)


def test_json_types_and_no_annotation_are_as_ever() -> None:
    def bare(ctx, params):  # type: ignore[no-untyped-def]
        ...

    def loose(ctx: Context, params: Json) -> None: ...
    def words(ctx: Context, params: dict[str, Any]) -> None: ...
    def typed_dict(ctx: Context, params: Loose) -> None: ...
    async def listed(ctx: Context, params: list[int]) -> None: ...

    class Caller:
        def __call__(self, ctx: Context, params: Bill) -> None: ...

        def method(self, ctx: Context, params: Bill) -> None: ...

    for handler in (bare, loose, words, typed_dict):
        assert made(handler, {"customer": 7}) == {"customer": 7}
    assert made(bare, None) is None
    assert made(listed, [1, 2]) == [1, 2]
    for handler in (Caller(), Caller().method):
        assert made(handler, {"customer": 7}) == Bill(7)


def test_what_cannot_be_made_from_json_is_refused_when_it_is_registered() -> None:
    executor = Executor("127.0.0.1:1", token="t")

    class Plain: ...

    @dataclass
    class Holds:
        at: Plain

    def plain(ctx: Context, params: Plain) -> None: ...
    def holds(ctx: Context, params: Holds) -> None: ...
    def one(params: Json) -> None: ...
    def three(ctx: Context, params: Json, more: int) -> None: ...
    def unknown(ctx: Context, params: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    for handler, message in (
        (plain, "the handler 'x': params is annotated with"),
        (holds, "the handler 'x': params.at is annotated with"),
        (one, "must take two arguments"),
        (three, "must take two arguments"),
        (unknown, "cannot be resolved"),
    ):
        with pytest.raises(TypeError, match=message):
            executor.handler("x")(handler)  # type: ignore[type-var]


async def test_a_typed_handler_runs_and_failures_are_printed(fake: FakeNode, caplog: pytest.LogCaptureFixture) -> None:
    executor = Executor(fake.address, token="token", slots=4)

    @executor.handler("typed")
    async def typed(ctx: Context, bill: Bill) -> int:
        return bill.customer + 1

    @executor.handler("breaks")
    def breaks(ctx: Context, params: Json) -> None:
        raise KeyError("no such customer")

    handle = executor.start()
    link = await fake.executor()
    with caplog.at_level(logging.WARNING, "campanile.executor"):
        link.assign(assignment(1, 1, "typed", p=b'{"customer":7}'))
        [ended] = await link.finish("d")
        assert (ended["s"], ended["w"]) == (SUCCESS, b"8")
        link.assign(assignment(2, 1, "typed", p=b'{"customer":"7"}'))
        [ended] = await link.finish("d")
        assert (ended["s"], ended["c"], ended["p"]) == (FAILED, failure.INVALID_PARAMS, True)
        link.assign(assignment(3, 1, "breaks"))
        await link.next("executor.log")
    assert "run 2 of job job, attempt 1, failed: INVALID_PARAMS: params.customer" in caplog.text
    assert "Traceback" in caplog.text, "where it failed"
    await handle.kill()
