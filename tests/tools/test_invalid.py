"""invalid, and the mending of calls that name a tool or its arguments wrongly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencode_jupyter import InvalidArgumentsError, ToolError, UnknownToolError, Workspace, tool
from opencode_jupyter.core.repair import correct_name, repair

from .conftest import Approver


@tool
def weather(city: str, days: int = 1) -> str:
    """Weather."""
    return city * days


@tool("MyTool")
def mine() -> str:
    """Mine."""
    return "mine"


@pytest.fixture
def ws(workspace: Workspace) -> Workspace:
    workspace.registry.register(weather)
    workspace.registry.register(mine)
    return workspace


@pytest.mark.anyio
async def test_half_a_character_does_not_reach_a_model(ws: Workspace) -> None:
    result = await ws.call("invalid", {"tool": "x", "error": "\ud800 is odd"})
    assert result.output == "The arguments provided to the tool are invalid: \ufffd is odd"


@pytest.mark.anyio
async def test_says_what_was_wrong(ws: Workspace) -> None:
    result = await ws.call("invalid", {"tool": "foo", "error": "bad"})
    assert result.title == "Invalid Tool"
    assert result.output == "The arguments provided to the tool are invalid: bad"
    assert result.metadata == {"truncated": False}


@pytest.mark.anyio
@pytest.mark.parametrize("by", ["user", "python", "model"])
@pytest.mark.parametrize(("name", "expected"), [("Weather", "weather"), ("WEATHER", "weather"), ("mytool", "MyTool")])
async def test_a_wrong_case_is_put_right_for_everyone(ws: Workspace, by: Any, name: str, expected: str) -> None:
    call = ws.start(name, {"city": "x"}, by=by)
    assert (await call.run()).output
    assert call.part.tool == expected


@pytest.mark.anyio
async def test_exact_names_come_first_and_doubtful_ones_are_left(ws: Workspace) -> None:
    for name in ("Weather", "AB", "Ab"):
        ws.registry.register(tool(name)(lambda: "other"))
    assert correct_name(ws.registry, "Weather") == "Weather"
    assert correct_name(ws.registry, "WEATHER") == "weather"
    assert correct_name(ws.registry, "aB") == "aB"
    with pytest.raises(UnknownToolError):
        await ws.call("aB")


@pytest.mark.anyio
@pytest.mark.parametrize("by", ["user", "python"])
async def test_people_and_code_get_an_error_with_suggestions(ws: Workspace, by: Any) -> None:
    with pytest.raises(UnknownToolError, match="Did you mean weather"):
        await ws.call("wether", {}, by=by)
    with pytest.raises(InvalidArgumentsError):
        await ws.call("weather", {"city": 5}, by=by)
    with pytest.raises(InvalidArgumentsError, match="takes a dict"):
        await ws.call("weather", '{"city": "x"}', by=by)  # type: ignore[arg-type]
    for name in (None, 3, ["weather"]):
        with pytest.raises(ToolError, match="called by its name, a text"):
            await ws.call(name, {}, by=by)  # type: ignore[arg-type]


@pytest.mark.anyio
async def test_an_unknown_tool_of_a_model_becomes_invalid(ws: Workspace) -> None:
    call = ws.start("nosuchtool", {"a": 1}, by="model")
    result = await call.run()
    start = "Model tried to call unavailable tool 'nosuchtool'. Available tools: "
    assert call.part.tool == "invalid"
    assert call.part.state.status == "completed"
    assert call.part.state.input["tool"] == "nosuchtool"
    error = call.part.state.input["error"]
    assert error.startswith(start)
    names = error.removeprefix(start).removesuffix(".").split(", ")
    assert names == sorted(names)
    assert {"read", "weather", "invalid"} <= set(names)
    assert result.output == f"The arguments provided to the tool are invalid: {error}"


@pytest.mark.anyio
async def test_arguments_that_do_not_fit_become_invalid_for_a_model(ws: Workspace, approver: Approver) -> None:
    tools: list[str] = []
    ws.hooks.add("tool.execute.after", lambda arguments, output: tools.append(arguments["tool"]))
    call = ws.start("weather", {"days": "many"}, by="model")
    result = await call.run()
    assert call.part.tool == "invalid"
    assert call.part.state.input["tool"] == "weather"
    assert "The weather tool was called with invalid arguments" in result.output
    assert "rewrite the input" in result.output
    assert tools == ["invalid"]
    for _ in range(2):
        await ws.call("weather", {"days": "many"}, by="model")
    assert [ask.patterns for ask in approver.named("doom_loop")] == [["invalid"]]


@pytest.mark.anyio
async def test_json_text_of_a_model_is_read(ws: Workspace) -> None:
    assert (await ws.call("Weather", '{"city": "x", "days": 3}', by="model")).output == "xxx"  # type: ignore[arg-type]
    assert (await ws.call("MyTool", "", by="model")).output == "mine"  # type: ignore[arg-type]


PREFIX = "Invalid input for tool read: JSON parsing failed: Text: {}.\nError message: JSON Parse error: {}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"filePath": 5', "Expected '}'"),  # recorded of OpenCode 1.18.33
        ('{"a": [1, 2', "Expected ']'"),
        ('{"a": {"b": 1}', "Expected '}'"),
        ('{"a": ', "Unexpected EOF"),
        ('{"a": "x', "Unterminated string"),
        ('{"a": "x]}\\"', "Unterminated string"),
        ("{", "Expected '}'"),
        ("nonsense", "Expecting value at line 1 column 1"),
        ('{"a": 1} x', "Extra data at line 1 column 10"),
        ('{"a": NaN}', "NaN is not a JSON value"),
        ("[" * 100_000, "the text is nested too deeply"),
    ],
)
def test_text_that_is_no_json(tmp_path: Path, text: str, reason: str) -> None:
    with Workspace(tmp_path, data_dir=tmp_path / "data", store=False) as ws:
        name, arguments = repair(ws.registry, "Read", text)
    assert name == "invalid"
    assert arguments == {"tool": "read", "error": PREFIX.format(text, reason)}


@pytest.mark.parametrize(("text", "shown"), [("[1]", "[1]"), ("5", "5"), ("null", None), ('"x"', '"x"')])
def test_json_that_is_no_object(tmp_path: Path, text: str, shown: str | None) -> None:
    with Workspace(tmp_path, data_dir=tmp_path / "data", store=False) as ws:
        name, arguments = repair(ws.registry, "read", text)
    if shown is None:
        assert (name, arguments) == ("read", {})
    else:
        assert name == "invalid"
        assert f"Type validation failed: Value: {shown}." in arguments["error"]


class Registry:
    def get(self, id: str) -> str | None:
        return id if id in self.names() else None

    def names(self) -> list[str]:
        return ["read", "invalid", "Odd"]


def test_the_available_names_can_be_given() -> None:
    _, arguments = repair(Registry(), "x", {}, available=["z", "a"])
    assert arguments["error"].endswith("Available tools: a, z.")


@settings(deadline=None)
@given(
    st.text() | st.sampled_from(["READ", "odd", "ODD", "Read"]),
    st.text() | st.from_regex(r'[\[{"\\a:,1]{0,12}') | st.dictionaries(st.text(), st.integers()) | st.none(),
)
def test_whatever_a_model_writes_becomes_a_call(name: str, arguments: Any) -> None:
    repaired, made = repair(Registry(), name, arguments)
    assert repaired in Registry().names()
    assert isinstance(made, dict)
    if repaired == "invalid" and name.lower() != "invalid":
        assert isinstance(made["error"], str)
    elif isinstance(arguments, dict):
        assert made == arguments


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_a_cut_text_is_told_as_cut(value: Any) -> None:
    text = json.dumps({"a": value})
    for end in range(1, len(text) - 1, max(1, len(text) // 20)):
        repaired, made = repair(Registry(), "read", text[:end])
        assert repaired == "invalid"
        assert f"Text: {text[:end]}." in made["error"]
