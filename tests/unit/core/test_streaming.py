"""Tools that give their output piece by piece: what is shown, what is the result, how they end."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencode_jupyter import Attachment, Tool, ToolContext, ToolResult, Workspace, tool
from opencode_jupyter.core.call_state import Completed, Failed, Running
from opencode_jupyter.core.context import AbortSignal
from opencode_jupyter.core.errors import ToolAbortedError
from opencode_jupyter.core.streaming import join
from opencode_jupyter.core.truncation import Truncation
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio


@pytest.fixture
async def ws(open_workspace: OpenWorkspace) -> Workspace:
    return await open_workspace({}, store=False)


class Watch:
    """What a call's part showed while it ran."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.titles: list[str | None] = []
        self.metadata: list[dict[str, Any]] = []
        self._changed = asyncio.Event()

    def __call__(self, part: Any) -> None:
        state = part.state
        if isinstance(state, (Running, Failed)) and state.metadata:
            self.metadata.append(state.metadata)
            self.titles.append(getattr(state, "title", None))
            self.shown.append(state.metadata.get("output", ""))
            self._changed.set()

    async def until(self, text: str) -> None:
        async with asyncio.timeout(10):
            while not any(text in output for output in self.shown):
                self._changed.clear()
                await self._changed.wait()


@pytest.mark.parametrize("colour", ["sync", "async"])
async def test_pieces_are_shown_as_they_come_and_are_the_result(ws: Workspace, colour: str) -> None:
    proceed, async_proceed = threading.Event(), asyncio.Event()

    if colour == "sync":

        @tool
        def count(upto: int) -> Iterator[str]:
            for n in range(upto):
                yield f"{n}\n"
            proceed.wait(10)
            yield "end"

    else:

        @tool
        async def count(upto: int) -> AsyncIterator[str]:
            for n in range(upto):
                yield f"{n}\n"
            await async_proceed.wait()
            yield "end"

    ws.registry.register(count)
    watch = Watch()
    call = asyncio.create_task(ws.call("count", {"upto": 3}, on_update=watch))
    await watch.until("0\n1\n2\n")  # the last piece is shown though no other one follows
    proceed.set()
    async_proceed.set()
    result = await call
    assert result.output == "0\n1\n2\nend"
    assert result.metadata == {"truncated": False}


async def test_what_a_generator_returns_or_yields_last_says_more(ws: Workspace) -> None:
    @tool
    def returns() -> Iterator[str]:
        yield "text"
        return ToolResult("a title", attachments=[Attachment.from_bytes(b"x", "image/png")])

    @tool
    async def yields() -> AsyncIterator[Any]:
        yield "text"
        yield {"title": "a title", "metadata": {"rows": 3}}

    @tool
    def overrides() -> Iterator[Any]:
        yield "shown only while it runs"
        yield ToolResult("done", "what counts", {"k": 1})

    @tool
    def plain() -> Iterator[str]:
        yield "a"
        return "b"

    for function in (returns, yields, overrides, plain):
        ws.registry.register(function)
    result = await ws.call("returns")
    assert (result.title, result.output, result.attachments[0].data) == ("a title", "text", b"x")
    result = await ws.call("yields")
    assert (result.title, result.output, result.metadata) == ("a title", "text", {"rows": 3, "truncated": False})
    result = await ws.call("overrides")
    assert (result.output, result.metadata) == ("what counts", {"k": 1, "truncated": False})
    assert (await ws.call("plain")).output == "ab"


@pytest.mark.parametrize("wrong", [3, None, ["a"], {"progress": 1}])
async def test_other_pieces_are_refused_with_their_kind(ws: Workspace, wrong: Any) -> None:
    closed: list[bool] = []

    @tool
    def bad() -> Iterator[Any]:
        try:
            yield "before"
            yield wrong
        finally:
            closed.append(True)

    ws.registry.register(bad)
    with pytest.raises(TypeError, match=r"yielded a (value of type (int|NoneType|list)|dict with the key progress)\."):
        await ws.call("bad")
    assert closed == [True]


async def test_what_a_tool_reports_itself_is_kept_beside_the_text(ws: Workspace) -> None:
    was_shown = asyncio.Event()

    @tool
    async def work(ctx: ToolContext) -> AsyncIterator[str]:
        ctx.metadata(title="half way", metadata={"progress": {"value": 1, "total": 2}})
        yield "a line"
        await was_shown.wait()

    ws.registry.register(work)
    watch = Watch()
    call = asyncio.create_task(ws.call("work", on_update=watch))
    await watch.until("a line")
    was_shown.set()
    await call
    assert watch.titles[-1] == "half way"
    assert watch.metadata[-1] == {"output": "a line", "progress": {"value": 1, "total": 2}}


@pytest.mark.parametrize("colour", ["sync", "async"])
async def test_long_output_goes_to_a_file_and_few_updates_are_sent(ws: Workspace, colour: str) -> None:
    line = "x" * 99 + "\n"

    if colour == "sync":

        @tool
        def flood() -> Iterator[str]:
            for _ in range(50_000):
                yield line

    else:

        @tool
        async def flood() -> AsyncIterator[str]:
            for _ in range(50_000):
                yield line

    ws.registry.register(flood)
    watch = Watch()
    began = time.monotonic()
    result = await ws.call("flood", on_update=watch)
    took = time.monotonic() - began
    assert result.truncated and result.metadata["bytes"] == 5_000_000 and result.metadata["lines"] == 50_000
    assert result.output_path is not None and Path(result.output_path).stat().st_size == 5_000_000
    assert len(result.output) < 60_000
    assert max(map(len, watch.shown), default=0) < 31_000
    assert len(watch.shown) <= took / 0.05 + 3


async def test_a_result_of_its_own_leaves_no_file_behind(ws: Workspace) -> None:
    @tool
    def flood() -> Iterator[Any]:
        yield "x" * 200_000
        yield ToolResult(output="short")

    ws.registry.register(flood)
    assert (await ws.call("flood")).output == "short"
    assert list(ws.truncation.directory.glob("*")) == []


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), max_size=30), st.booleans())
@settings(deadline=None)
def test_any_cutting_gives_the_same_text(pieces: list[str], final: bool) -> None:
    def cut() -> Iterator[str]:
        yield from pieces
        return "end" if final else None

    workspace = SimpleNamespace(truncation=Truncation("/nonexistent"), agents={})
    context: Any = SimpleNamespace(workspace=workspace, agent="", abort=AbortSignal(), _loop=None, _call=None)
    result = join(cut(), context)
    assert result.output == "".join(pieces) + ("end" if final else "")
    assert result.metadata == {"truncated": False}


async def test_text_that_has_no_utf8(ws: Workspace) -> None:
    @tool
    def odd() -> Iterator[str]:
        yield "a\ud800b"
        yield "é"

    ws.registry.register(odd)
    assert (await ws.call("odd")).output == "a\ufffdbé"


async def test_an_error_passes_through_and_what_came_stays(ws: Workspace) -> None:
    @tool
    def breaks() -> Iterator[str]:
        yield "so far"
        raise LookupError("gone")

    ws.registry.register(breaks)
    watch = Watch()
    with pytest.raises(LookupError, match="gone"):
        await ws.call("breaks", on_update=watch)
    assert watch.shown[-1] == "so far"


async def test_stopping_a_generator_that_never_waits(ws: Workspace) -> None:
    closed = asyncio.Event()

    @tool
    async def endless() -> AsyncIterator[str]:
        try:
            while True:
                yield "again\n"
        finally:
            await asyncio.sleep(0)
            closed.set()

    ws.registry.register(endless)
    watch = await aborted_call(ws, "endless")
    assert closed.is_set()
    assert "again" in watch.shown[-1]


async def aborted_call(ws: Workspace, tool_id: str) -> Watch:
    """What a call showed that is aborted once it shows ``again``."""
    watch = Watch()
    call = ws.start(tool_id, on_update=watch)
    task = asyncio.create_task(call.run())
    await watch.until("again")
    call.abort()
    with pytest.raises(ToolAbortedError):
        await task
    return watch


async def test_stopping_a_generator_in_a_thread(ws: Workspace) -> None:
    closed = threading.Event()

    @tool
    def endless() -> Iterator[str]:
        try:
            while True:
                time.sleep(0.001)
                yield "again\n"
        finally:
            closed.set()

    ws.registry.register(endless)
    await aborted_call(ws, "endless")
    assert await asyncio.to_thread(closed.wait, 10)


async def test_definitions_and_iterators_stream_too(ws: Workspace) -> None:
    def pieces(arguments: dict[str, Any], ctx: ToolContext) -> Iterator[str]:
        yield from ("a", ctx.agent)

    async def async_pieces(arguments: dict[str, Any], ctx: ToolContext) -> AsyncIterator[str]:
        yield "b"

    @tool
    def returned() -> Iterator[str]:
        return iter(["c", "d"])

    @tool
    async def awaited() -> AsyncIterator[str]:
        async def inner() -> AsyncIterator[str]:
            yield "e"

        return inner()

    @tool
    def handed() -> AsyncIterator[str]:
        async def inner() -> AsyncIterator[str]:
            yield "f"

        return inner()

    for name, execute in (("one", pieces), ("two", async_pieces)):
        definition = {"description": "", "parameters": {"type": "object"}, "execute": execute}
        ws.registry.register(Tool.define(name, definition))
    for function in (returned, awaited, handed):
        ws.registry.register(function)
    outputs = [(await ws.call(name)).output for name in ("one", "two", "returned", "awaited", "handed")]
    assert outputs == ["abuild", "b", "cd", "e", "f"]


async def test_several_streams_at_once_do_not_mix(ws: Workspace) -> None:
    @tool
    async def letters(of: str) -> AsyncIterator[str]:
        for _ in range(100):
            yield of
            await asyncio.sleep(0)

    ws.registry.register(letters)
    results = await asyncio.gather(*(ws.call("letters", {"of": letter}) for letter in "abc"))
    assert [r.output for r in results] == ["a" * 100, "b" * 100, "c" * 100]
    assert all(isinstance(c.part.state, Completed) for c in ws.calls.values())
