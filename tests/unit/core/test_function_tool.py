"""What a function's parameters may be, and what is refused when the tool is made."""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional
from uuid import UUID

import pandas as pd
import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from opencode_jupyter import Tool, ToolContext, ToolError, ToolResult, Workspace, tool
from opencode_jupyter.core.context import InitContext
from opencode_jupyter.core.errors import InvalidArgumentsError
from opencode_jupyter.core.tool import Definition
from opencode_jupyter.jupyter.magics.parameters import spec_of
from tests.support.workspaces import OpenWorkspace

if TYPE_CHECKING:
    from fractions import Fraction

    import opencode_jupyter as oj


@pytest.fixture
async def ws(open_workspace: OpenWorkspace) -> Workspace:
    return await open_workspace({}, store=False)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    x: float
    y: float = 0.0


@dataclass
class Span:
    start: int
    end: int = 10


class Row(TypedDict):
    name: str
    count: int


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str]


class Node(BaseModel):
    value: int
    children: list[Node] = []


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]


@pytest.mark.parametrize(
    ("annotation", "argument", "expected"),
    [
        (int, "3", 3),
        (Point, {"x": 1}, Point(x=1.0)),
        (list[Point], [{"x": 1}], [Point(x=1.0)]),
        (dict[str, list[int]], {"a": ["1"]}, {"a": [1]}),
        (Colour, "blue", Colour.BLUE),
        (Literal["a", 1], 1, 1),
        (Annotated[int, Field(ge=1, le=5)], 5, 5),
        (Pet, {"kind": "dog", "tricks": ["sit"]}, Dog(kind="dog", tricks=["sit"])),
        (datetime, "2026-02-03T04:05:06", datetime(2026, 2, 3, 4, 5, 6)),  # noqa: DTZ001
        (date, "2026-02-03", date(2026, 2, 3)),
        (timedelta, "PT90S", timedelta(seconds=90)),
        (Path, "a/b.txt", Path("a/b.txt")),
        (Decimal, "1.10", Decimal("1.10")),
        (UUID, "12345678123456781234567812345678", UUID("12345678123456781234567812345678")),
        (Span, {"start": 1}, Span(1, 10)),
        (Row, {"name": "a", "count": "2"}, {"name": "a", "count": 2}),
        (Node, {"value": 1, "children": [{"value": 2}]}, Node(value=1, children=[Node(value=2)])),
        (set[int], [1, 1, 2], {1, 2}),
        (tuple[int, str], ["1", "a"], (1, "a")),
        (Optional[int], None, None),  # noqa: UP045
        (int | str, "x", "x"),
        (bytes, "abc", b"abc"),
        (Any, {"free": [1]}, {"free": [1]}),
    ],
)
@pytest.mark.anyio
async def test_types_arrive_as_they_are_annotated(ws: Workspace, annotation: Any, argument: Any, expected: Any) -> None:
    values: list[Any] = []

    def takes(value: Any) -> str:
        values.append(value)
        return "ok"

    takes.__annotations__["value"] = annotation
    registered = ws.registry.register(tool(takes))
    assert registered.static is not None
    assert list(registered.static.parameters["properties"]) == ["value"]
    await ws.call("takes", {"value": argument})
    assert values == [expected]
    assert type(values[0]) is type(expected)


@pytest.mark.parametrize(
    ("annotation", "wrong"),
    [
        (int, "many"),
        (Point, {"y": 1}),
        (Colour, "green"),
        (Annotated[int, Field(ge=1)], 0),
        (Pet, {"kind": "cow"}),
        (datetime, "soon"),
        (Row, {"name": "a"}),
        (Node, {"value": 1, "children": [{"value": "x"}]}),
    ],
)
@pytest.mark.anyio
async def test_values_that_do_not_fit_are_refused(ws: Workspace, annotation: Any, wrong: Any) -> None:
    def takes(value: Any) -> str:
        raise AssertionError(value)

    takes.__annotations__["value"] = annotation
    ws.registry.register(takes)
    with pytest.raises(InvalidArgumentsError, match='"value"'):
        await ws.call("takes", {"value": wrong})


def test_schemas_name_choices_limits_and_descriptions() -> None:
    @tool
    def f(
        colour: Colour,
        size: Annotated[int, Field(ge=1, description="how big")],
        unit: Annotated[str, "of the size"] = "cm",
        pet: Pet | None = None,
        tree: Node | None = None,
    ) -> str:
        return ""

    assert f.static is not None
    properties = f.static.parameters["properties"]
    assert properties["colour"]["enum"] == ["red", "blue"]
    assert (properties["size"]["minimum"], properties["size"]["description"]) == (1, "how big")
    assert properties["unit"] == {"type": "string", "default": "cm", "description": "of the size"}
    assert [variant["properties"]["kind"]["const"] for variant in properties["pet"]["oneOf"]] == ["cat", "dog"]
    assert "$ref" not in str(f.static.parameters) and "$defs" not in str(f.static.parameters)
    assert properties["tree"]["properties"]["children"]["items"] == {"type": "object"}
    assert f.static.parameters["required"] == ["colour", "size"]


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("annotation", "type_name"),
    [(pd.DataFrame, "DataFrame"), (Callable[[int], str], "Callable"), (type, "type"), (inspect.Signature, "Signature")],
)
def test_a_type_that_json_has_no_form_for_is_named(annotation: Any, type_name: str) -> None:
    def plot(title: str, data: Any) -> str:
        return title

    plot.__annotations__["data"] = annotation
    with pytest.raises(TypeError, match=rf"plot: the parameter data has the type .*{type_name}.*comes as JSON"):
        tool(plot)


def test_a_name_that_only_type_checkers_know_is_an_error_unless_it_is_the_context() -> None:
    def half(part: Fraction) -> str:
        return str(part)

    with pytest.raises(
        TypeError, match=r"half: the type Fraction of the parameter part can't be found .*TYPE_CHECKING"
    ):
        tool(half)

    def fine(n: int, context: oj.ToolContext) -> str:
        return context.agent * n

    fine_tool = tool(fine)
    assert fine_tool.static is not None and list(fine_tool.static.parameters["properties"]) == ["n"]


@pytest.mark.parametrize("signature", ["*parts", "**options", "a, *rest, b=1"])
def test_open_ended_parameters_are_named(signature: str) -> None:
    namespace: dict[str, Any] = {}
    exec(f"def f({signature}): ...", namespace)
    with pytest.raises(TypeError, match=r"f: a tool can't have the parameter \*\*?\w+; give each one a name"):
        tool(namespace["f"])


def test_a_method_in_its_class_is_no_tool() -> None:
    with pytest.raises(TypeError, match=r"register an object's method: tool\(thing.ask\)"):

        class Oracle:
            @tool
            def ask(self, text: str) -> str:
                return text


@pytest.mark.parametrize("wrong", [3, None.__class__, object()])
def test_what_can_not_be_called_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="needs a method execute or __call__"):
        tool(wrong)


def test_a_lambda_needs_a_name_and_a_tool_is_one_already() -> None:
    with pytest.raises(TypeError, match="give the tool one"):
        tool(lambda x: x)
    assert tool("twice")(lambda x: x).id == "twice"
    with pytest.raises(TypeError, match="is a tool already"):
        tool(tool("twice")(lambda x: x))


def test_parameters_must_be_a_model_or_a_schema() -> None:
    with pytest.raises(TypeError, match="parameters= takes a pydantic model"):
        tool("x", parameters=int)(lambda x: x)  # type: ignore[call-overload]


# ---------------------------------------------------------------------- signatures


@pytest.mark.anyio
async def test_positional_only_unannotated_and_defaults(ws: Workspace) -> None:
    @tool
    def f(a, /, b: int = 2, *, c=None, d: str = None) -> str:  # type: ignore[assignment, no-untyped-def]  # noqa: RUF013
        return repr((a, b, c, d))

    ws.registry.register(f)
    assert (await ws.call("f", {"a": [1]})).output == "([1], 2, None, None)"
    assert (await ws.call("f", {"a": 1, "b": "3", "c": {}, "d": None})).output == "(1, 3, {}, None)"


@pytest.mark.anyio
async def test_names_that_pydantic_keeps_for_itself(ws: Workspace) -> None:
    @tool
    def f(json: str, _hidden: int, model_config: str = "m", copy: bool = False, model_name: str = "n") -> str:
        return repr((json, _hidden, model_config, copy, model_name))

    ws.registry.register(f)
    assert f.static is not None
    assert list(f.static.parameters["properties"]) == ["json", "_hidden", "model_config", "copy", "model_name"]
    output = (await ws.call("f", {"json": "j", "_hidden": 1, "copy": True})).output
    assert output == "('j', 1, 'm', True, 'n')"
    with pytest.raises(InvalidArgumentsError, match='"_hidden"'):
        await ws.call("f", {"json": "j"})


@pytest.mark.anyio
async def test_the_context_by_name_by_type_and_by_place(ws: Workspace) -> None:
    def by_name(ctx) -> str:  # type: ignore[no-untyped-def]
        return ctx.agent

    def by_type(n: int, about: ToolContext | None = None) -> str:
        assert about is not None
        return about.agent * n

    async def by_place(call: ToolContext, /, n: int) -> str:
        return call.agent * n

    for fn in (by_name, by_type, by_place):
        ws.registry.register(fn)
    assert (await ws.call("by_name")).output == "build"
    assert (await ws.call("by_type", {"n": 2})).output == "buildbuild"
    assert (await ws.call("by_place", {"n": 1})).output == "build"


@pytest.mark.anyio
async def test_types_of_an_enclosing_function_are_found(ws: Workspace) -> None:
    class Local(BaseModel):
        leaf: Leaf

    class Leaf(BaseModel):
        n: int

    Local.model_rebuild()

    @tool
    def f(one: Local, more: list[Leaf]) -> str:
        return f"{one.leaf.n} {[m.n for m in more]}"

    ws.registry.register(f)
    assert (await ws.call("f", {"one": {"leaf": {"n": 1}}, "more": [{"n": 2}]})).output == "1 [2]"


# ---------------------------------------------------------------------- other things that can be called


class WordCount:
    """Count words.

    Of a text.
    """

    def __init__(self, per: int = 1) -> None:
        self.per = per

    async def __call__(self, text: str) -> str:
        return str(len(text.split()) // self.per)


class Explicit:
    id = "explicit"
    description = "Says a name"

    class parameters(BaseModel):
        name: str

    def execute(self, args: Any, ctx: ToolContext) -> ToolResult:
        return ToolResult("t", f"{args.name} for {ctx.agent}")


class Needs:
    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self) -> str:
        return self.url


@pytest.mark.anyio
async def test_classes_and_objects(ws: Workspace) -> None:
    registered = ws.registry.register(WordCount)
    assert registered.id == "word_count"
    assert registered.static is not None and registered.static.description == "Count words.\n\nOf a text."
    assert (await ws.call("word_count", {"text": "a b"})).output == "2"
    ws.registry.register(WordCount(2))
    assert (await ws.call("word_count", {"text": "a b"})).output == "1"
    ws.registry.register(Explicit())
    assert (await ws.call("explicit", {"name": "Ann"})).output == "Ann for build"
    with pytest.raises(TypeError, match=r"Needs can't be made without arguments .* tool\(Needs\(\.\.\.\)\)"):
        tool(Needs)
    ws.registry.register(Needs("u"))
    assert (await ws.call("needs")).output == "u"


@pytest.mark.anyio
async def test_partials_methods_and_wrapped_functions(ws: Workspace) -> None:
    async def scale(factor: int, value: int) -> str:
        """Scale a value."""
        return str(factor * value)

    def logged(fn: Any) -> Any:
        @functools.wraps(fn)
        async def inner(*args: Any, **kwargs: Any) -> Any:
            return await fn(*args, **kwargs) + "!"

        return inner

    half = tool("tenfold")(functools.partial(scale, 10))
    assert half.static is not None
    assert (half.static.description, list(half.static.parameters["properties"])) == ("Scale a value.", ["value"])
    ws.registry.register(half)
    ws.registry.register(logged(scale))
    ws.registry.register(WordCount().__call__)
    assert (await ws.call("tenfold", {"value": "4"})).output == "40"
    assert (await ws.call("scale", {"factor": 2, "value": 3})).output == "6!"
    assert (await ws.call("__call__", {"text": "a"})).output == "1"


@pytest.mark.anyio
async def test_a_schema_of_ones_own_gives_the_arguments_as_a_dict(ws: Workspace) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}

    @tool("raw", parameters=schema)
    def raw(arguments: dict[str, Any], ctx: ToolContext) -> str:
        return f"{arguments} {ctx.agent}"

    ws.registry.register(raw)
    assert (await ws.call("raw", {"n": 1})).output == "{'n': 1} build"


@pytest.mark.anyio
async def test_a_definition_that_depends_on_the_agent(ws: Workspace) -> None:
    async def init(ctx: InitContext) -> dict[str, Any]:
        """Says who asks."""
        assert ctx.agent is not None and ctx.workspace is ws
        return {
            "description": f"for {ctx.agent.name}",
            "parameters": Point,
            "execute": lambda args, ctx: f"{args.x} {ctx.agent}",
        }

    ws.registry.register(Tool.define("who", init))
    bounds = {agent: {b.id: b for b in await ws.registry.tools("a:b", agent)}["who"] for agent in ("build", "plan")}
    assert [b.description for b in bounds.values()] == ["for build", "for plan"]
    assert (await ws.call("who", {"x": 1}, agent="plan")).output == "1.0 plan"


@pytest.mark.anyio
async def test_its_help_is_made_for_the_agent_too(ws: Workspace) -> None:
    async def init(ctx: InitContext) -> Definition:
        """Says who asks."""
        assert ctx.agent is not None
        return Definition(f"for {ctx.agent.name}", Point, lambda args, ctx: "")

    registered = ws.registry.register(Tool.define("who", init))
    assert spec_of(registered, ws.registry).bound.description == "for build"
    assert spec_of(registered, ws.registry, "plan").bound.description == "for plan"
    assert [field.name for field in spec_of(registered, ws.registry).fields] == ["x", "y"]
    with pytest.raises(ToolError, match="no agent"):
        spec_of(registered, ws.registry, "nobody")


def test_what_defines_a_tool_is_known() -> None:
    defined = Tool.define("d", Definition("", Point, lambda a, c: ""))
    assert defined.source == __name__
    assert tool(WordCount).source == __name__
    assert tool("p")(functools.partial(WordCount(), "a")).source
