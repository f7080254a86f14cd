"""Asks models of loopback servers, for the tests of `agent.models`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from opencode_jupyter import Workspace
from opencode_jupyter.agent import events
from opencode_jupyter.agent.events import Event
from opencode_jupyter.agent.model import Model, Request, ToolSpec
from opencode_jupyter.agent.models import resolve
from opencode_jupyter.agent.turns import TextPiece, Turn
from tests.support.model_servers import anthropic, google, openai
from tests.support.model_servers.server import Server

FORMATS: dict[str, tuple[type[Server], str]] = {
    "openai": (openai.ScriptedServer, "@ai-sdk/openai-compatible"),
    "anthropic": (anthropic.ScriptedServer, "@ai-sdk/anthropic"),
    "google": (google.ScriptedServer, "@ai-sdk/google"),
}
KEY = "sk-very-secret-key-0123456789"
READ = ToolSpec(
    "read",
    "Reads a file.",
    {"type": "object", "properties": {"filePath": {"type": "string"}}, "required": ["filePath"]},
)
GREP = ToolSpec("grep", "Finds.", {"type": "object", "properties": {"pattern": {"type": "string"}}})


def server(format: str, turns: Any, **options: Any) -> Server:
    """A server that speaks a format."""
    return FORMATS[format][0](turns, **options)


def entry(format: str, url: str, **more: Any) -> dict[str, Any]:
    """A provider's entry of the configuration."""
    options = {"baseURL": url, "apiKey": KEY, **more.pop("options", {})}
    return {"npm": FORMATS[format][1], "options": options, **more}


@asynccontextmanager
async def model(folder: Path, format: str, url: str, name: str = "m", **more: Any) -> AsyncIterator[Model]:
    """A model of a configured provider called ``fake``."""
    config = {"provider": {"fake": entry(format, url, **more)}}
    async with Workspace(folder, config=config, data_dir=folder / "data", store=False) as workspace:
        yield await resolve(workspace, f"fake:{name}")


def user(text: str = "go") -> Turn:
    """A user's turn."""
    return Turn("user", (TextPiece(text),))


def request(*turns: Turn, tools: Sequence[ToolSpec] = (READ, GREP), **more: Any) -> Request:
    """A request with two tools."""
    return Request(system=["Be short."], turns=turns or (user(),), tools=tools, **more)


async def collect(adapter: Model, what: Request | None = None) -> list[Event]:
    """All events of an answer."""
    return [event async for event in adapter.stream(what or request())]


async def ask(folder: Path, format: str, turn: dict[str, Any], what: Request | None = None) -> list[Event]:
    """The events of one scripted answer."""
    with server(format, [turn]) as running:
        async with model(folder, format, running.url) as adapter:
            return await collect(adapter, what)


def text(stream: Sequence[Event]) -> str:
    """The words of an answer."""
    return "".join(event.text for event in stream if isinstance(event, events.TextDelta))


def calls(stream: Sequence[Event]) -> list[tuple[str, str]]:
    """Name and arguments of its calls."""
    return [(event.name, event.arguments) for event in stream if isinstance(event, events.CallEnd)]


def shape(stream: Sequence[Event]) -> list[str]:
    """The kinds of its events, in order, deltas of one kind in a row as one."""
    out: list[str] = []
    for event in stream:
        name = type(event).__name__
        if not (name.endswith("Delta") and out and out[-1] == name):
            out.append(name)
    return out


def whole(stream: Sequence[Event]) -> None:
    """Check what holds for every answer: each part begins once, ends once, and its deltas stand between."""
    started: dict[int, str] = {}
    ended: set[int] = set()
    arguments: dict[int, str] = {}
    for event in stream:
        name = type(event).__name__
        if isinstance(event, events.Finish):
            assert event is stream[-1]
            continue
        kind = name.removesuffix("Start").removesuffix("Delta").removesuffix("End")
        if name.endswith("Start"):
            assert event.index not in started
            started[event.index] = kind
        else:
            assert started[event.index] == kind
            assert event.index not in ended
        if isinstance(event, events.CallDelta):
            arguments[event.index] = arguments.get(event.index, "") + event.text
        if name.endswith("End"):
            ended.add(event.index)
        if isinstance(event, events.CallEnd):
            assert arguments.get(event.index, "") == event.arguments
    assert isinstance(stream[-1], events.Finish)
    assert ended == started.keys()
    ids = [event.id for event in stream if isinstance(event, events.CallStart)]
    assert len(ids) == len(set(ids))
    assert all(ids)
