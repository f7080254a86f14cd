"""LangChain's tools as ours, and ours as LangChain's, with LangChain itself."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import (
    BaseTool,
    BaseToolkit,
    InjectedToolArg,
    InjectedToolCallId,
    StructuredTool,
    Tool,
    ToolException,
)
from langchain_core.tools import tool as langchain_tool
from pydantic import BaseModel, Field

from opencode_jupyter import Attachment, InvalidArgumentsError, ToolError, ToolResult, Workspace, tool
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio
PNG = b"\x89PNG\r\n\x1a\nrest"


@pytest.fixture
async def ws(open_workspace: OpenWorkspace) -> Workspace:
    return await open_workspace({}, store=False)


@langchain_tool
def add(a: int, b: Annotated[int, Field(ge=0)] = 1) -> int:
    """Add numbers."""
    return a + b


@langchain_tool
async def greet(name: str) -> str:
    """Greet someone."""
    return f"Hello {name}"


async def test_sync_and_async_tools(ws: Workspace) -> None:
    for entry in (add, greet):
        ws.registry.register(entry)
    registered = ws.registry.get("add")
    assert registered is not None and registered.static is not None
    assert registered.source == "langchain"
    assert registered.static.description == "Add numbers."
    properties = registered.static.parameters["properties"]
    assert properties == {"a": {"type": "integer"}, "b": {"type": "integer", "minimum": 0, "default": 1}}
    assert (await ws.call("add", {"a": "2"})).output == "3"
    assert (await ws.call("greet", {"name": "Ann"})).output == "Hello Ann"
    with pytest.raises(InvalidArgumentsError, match='"b"'):
        await ws.call("add", {"a": 1, "b": -1})


async def test_the_rules_are_asked_by_its_id(open_workspace: OpenWorkspace) -> None:
    requests: list[Any] = []

    def approve(request: Any) -> str:
        requests.append((request.permission, request.patterns, request.always))
        return "reject"

    config = {"permission": {"web_search": "ask"}}
    ws = await open_workspace(config, approve=approve, store=False)
    registered = ws.registry.register(
        StructuredTool.from_function(lambda q: q, name="web search", description="Search the web.")
    )
    assert registered.id == "web_search"
    with pytest.raises(ToolError, match="rejected"):
        await ws.call("web_search", {"q": "x"})
    assert requests == [("web_search", ["*"], ["*"])]


async def test_a_schema_as_a_dict_is_checked(ws: Workspace) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    ws.registry.register(
        StructuredTool.from_function(lambda n: str(n + 1), name="next", description="One more.", args_schema=schema)
    )
    assert (await ws.call("next", {"n": 1})).output == "2"
    with pytest.raises(InvalidArgumentsError, match="expected number, received undefined"):
        await ws.call("next", {})
    with pytest.raises(InvalidArgumentsError, match="expected number, received string"):
        await ws.call("next", {"n": "x"})


async def test_a_tool_of_one_text(ws: Workspace) -> None:
    ws.registry.register(Tool("shout", str.upper, "Shout."))
    registered = ws.registry.get("shout")
    assert registered is not None and registered.static is not None
    [name] = registered.static.parameters["properties"]
    assert (await ws.call("shout", {name: "abc"})).output == "ABC"


async def test_content_and_artifact(ws: Workspace) -> None:
    @langchain_tool(response_format="content_and_artifact")
    def look(of: str) -> tuple[Any, Any]:
        """Look."""
        data = base64.b64encode(PNG).decode()
        blocks = {
            "text": f"seen {of}",
            "old": [
                {"type": "text", "text": "a"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,x"}},
            ],
            "new": [{"type": "image", "base64": data, "mime_type": "image/png"}],
            "odd": [
                {"type": "file", "source_type": "text", "text": "abc", "mime_type": "text/plain"},
                {"type": "text"},
            ],
        }
        return blocks[of], [{"row": 1}, {"row": 2}]

    @langchain_tool(response_format="content_and_artifact")
    def retrieve() -> tuple[str, list[Document]]:
        """Retrieve."""
        return "two", [Document("first", metadata={"page": 1}), Document("second", metadata={"page": 2})]

    ws.registry.register([look, retrieve])
    result = await ws.call("look", {"of": "text"})
    assert (result.output, result.records) == ("seen text", [{"row": 1}, {"row": 2}])
    assert result.metadata["artifact"] == [{"row": 1}, {"row": 2}]
    result = await ws.call("look", {"of": "old"})
    assert (result.output, result.attachments[0].mime) == ("a", "image/png")
    assert (await ws.call("look", {"of": "new"})).attachments[0].data == PNG
    assert "abc" in (await ws.call("look", {"of": "odd"})).output  # a form that LangChain does not read
    result = await ws.call("retrieve")
    assert list(result.df["page_content"]) == ["first", "second"] and list(result.df["page"]) == [1, 2]


async def test_errors_of_the_tool(ws: Workspace) -> None:
    def fails(kind: str) -> str:
        raise ToolException("sorry") if kind == "own" else LookupError("gone")

    ws.registry.register(StructuredTool.from_function(fails, name="fails", description="Fails."))
    ws.registry.register(
        StructuredTool.from_function(fails, name="handled", description="Fails.", handle_tool_error="try later")
    )
    with pytest.raises(ToolException, match="sorry"):
        await ws.call("fails", {"kind": "own"})
    with pytest.raises(LookupError, match="gone"):
        await ws.call("fails", {"kind": "other"})
    with pytest.raises(ToolError, match="try later"):
        await ws.call("handled", {"kind": "own"})


async def test_what_a_graph_would_inject(ws: Workspace) -> None:
    @langchain_tool
    def whose(n: int, call: Annotated[str, InjectedToolCallId]) -> str:
        """Whose."""
        return f"{n} {call}"

    @langchain_tool
    def wants(n: int, state: Annotated[dict, InjectedToolArg]) -> str:  # type: ignore[type-arg]
        """Wants."""
        return str(n)

    ws.registry.register(whose)
    assert (await ws.call("whose", {"n": 1}, call_id="call_7")).output == "1 call_7"
    with pytest.raises(TypeError, match=r"wants wants state .* injected by a graph"):
        ws.registry.register(wants)


async def test_classes_and_toolkits(ws: Workspace) -> None:
    class Args(BaseModel):
        text: str

    class Reverse(BaseTool):
        name: str = "reverse"
        description: str = "Reverse a text."
        args_schema: Any = Args

        def _run(self, text: str) -> str:
            return text[::-1]

    class Kit(BaseToolkit):
        def get_tools(self) -> list[BaseTool]:
            return [Reverse(), add]

    registered = ws.registry.register(Kit())
    assert [entry.id for entry in registered] == ["reverse", "add"]
    assert (await ws.call("reverse", {"text": "abc"})).output == "cba"
    with pytest.raises(TypeError, match="takes no deps= for a LangChain tool"):
        ws.registry.register(add, deps=1)


# ---------------------------------------------------------------------- ours as LangChain's


@tool
def weather(city: str, config: str = "metric") -> ToolResult:
    """The weather of a city."""
    if city == "nowhere":
        raise LookupError("no such city")
    return ToolResult("Weather", f"{city}: 20 ({config})", attachments=[Attachment.from_bytes(PNG, "image/png")])


@tool
def double(n: int) -> str:
    """Double a number."""
    return str(2 * n)


async def test_live_tools_have_our_schema_and_run_in_the_pipeline(ws: Workspace) -> None:
    ws.registry.register(weather)
    ws.registry.register(double)
    exported = {entry.name: entry for entry in ws.tools.for_langchain(names=["weather", "double"])}
    assert exported["weather"].description == "The weather of a city."
    updates: list[Any] = []
    ws.bus.subscribe("message.part.updated", lambda event: updates.append(event))
    message = await exported["double"].ainvoke({"type": "tool_call", "id": "c1", "name": "double", "args": {"n": "4"}})
    assert isinstance(message, ToolMessage) and message.content == "8" and message.status == "success"
    assert isinstance(message.artifact, ToolResult)
    assert updates, "the call had a part"
    message = await exported["weather"].ainvoke(
        {"type": "tool_call", "id": "c", "name": "weather", "args": {"city": "Bonn"}}
    )
    assert message.content[0] == {"type": "text", "text": "Bonn: 20 (metric)"}
    assert base64.b64decode(message.content[1]["base64"]) == PNG
    message = await exported["weather"].ainvoke(
        {"type": "tool_call", "id": "c", "name": "weather", "args": {"city": "nowhere"}}
    )
    assert message.status == "error" and "no such city" in message.content


async def test_live_tools_in_a_chain_with_a_model(ws: Workspace) -> None:
    ws.registry.register(double)
    [live] = ws.tools.for_langchain(names=["double"])
    calls = [{"name": "double", "args": {"n": 3}, "id": "1"}, {"name": "double", "args": {"n": "x"}, "id": "2"}]
    model = FakeMessagesListChatModel(responses=[AIMessage("", tool_calls=calls), AIMessage("done")])
    messages: list[Any] = [HumanMessage("double 3")]
    answer = await model.ainvoke(messages)
    assert isinstance(answer, AIMessage)
    messages += [answer, *[await live.ainvoke(call) for call in answer.tool_calls]]
    assert messages[2].content == "6"
    assert "invalid arguments" in messages[3].content
    assert (await model.ainvoke(messages)).content == "done"


def test_live_tools_without_a_loop(tmp_path: Path) -> None:
    with Workspace(tmp_path, data_dir=tmp_path / "d", store=False) as ws:
        ws.registry.register(double)
        [live] = ws.tools.for_langchain(names=["double"])
        assert live.invoke({"n": 21}) == "42"
        assert json.dumps(live.args)


async def test_a_round_trip_keeps_names_defaults_and_rules(open_workspace: OpenWorkspace, ws: Workspace) -> None:
    ws.registry.register(add)
    [live] = ws.tools.for_langchain(names=["add"])
    second = await open_workspace({}, directory=ws.directory, data_dir=ws.data_dir / "other", store=False)
    second.registry.register(live)
    assert (await second.call("add", {"a": 1})).output == "2"
    with pytest.raises(InvalidArgumentsError):
        await second.call("add", {"b": 1})
