"""One call through the pipeline: states, hooks, asks, doom loop, truncation, and every way it can end."""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import (
    Attachment,
    InvalidArgumentsError,
    PermissionCorrectedError,
    PermissionDeniedError,
    PermissionRejectedError,
    ToolAbortedError,
    ToolContext,
    ToolError,
    ToolResult,
    ToolTimeoutError,
    UnknownToolError,
    Workspace,
    tool,
)
from opencode_jupyter.core.call import Call
from opencode_jupyter.core.call_state import Completed, Failed
from tests.support.workspaces import OpenWorkspace


@pytest.fixture
async def ws(open_workspace: OpenWorkspace, project: Path) -> Workspace:
    (project / ".git").mkdir()
    workspace = await open_workspace({})
    workspace.registry.register(echo)
    return workspace


@tool
async def echo(text: str, times: int = 1) -> str:
    """Say it again."""
    return text * times


def states(ws: Workspace) -> list[str]:
    statuses: list[str] = []
    ws.bus.subscribe("message.part.updated", lambda e: statuses.append(e["properties"]["part"]["state"]["status"]))
    return statuses


@pytest.mark.anyio
async def test_states_of_a_call_that_succeeds(ws: Workspace) -> None:
    statuses = states(ws)
    result = await ws.call("echo", {"text": "hi", "times": "2"})
    assert result.output == "hihi"
    assert result.metadata == {"truncated": False}
    assert statuses == ["pending", "running", "completed"]
    assert not ws.calls


@pytest.mark.anyio
async def test_unknown_tool_suggests(ws: Workspace) -> None:
    with pytest.raises(UnknownToolError, match="Did you mean echo") as caught:
        await ws.call("ehco", {"text": "x"})
    assert caught.value.suggestions[0] == "echo"


@pytest.mark.anyio
@pytest.mark.parametrize("arguments", [{}, {"text": ["x"]}, {"text": "x", "times": "many"}])
async def test_invalid_arguments_end_the_part_in_error(ws: Workspace, arguments: dict[str, Any]) -> None:
    statuses = states(ws)
    with pytest.raises(InvalidArgumentsError):
        await ws.call("echo", arguments)
    assert statuses == ["pending", "error"]


@pytest.mark.anyio
async def test_arguments_that_are_no_dict(ws: Workspace) -> None:
    with pytest.raises(InvalidArgumentsError, match="dict of names and values, not list"):
        await ws.call("echo", ["x"])  # type: ignore[arg-type]


@pytest.mark.anyio
async def test_hooks_change_refuse_and_see_the_result(ws: Workspace) -> None:
    def before(hook_input: dict[str, Any], output: dict[str, Any]) -> None:
        output["args"]["text"] = output["args"]["text"].upper()

    async def after(hook_input: dict[str, Any], output: dict[str, Any]) -> None:
        output["output"] += f" ({hook_input['args']['text']})"

    undo = [ws.hooks.add("tool.execute.before", before), ws.hooks.add("tool.execute.after", after)]
    original = {"text": "a"}
    assert (await ws.call("echo", original)).output == "A (A)"
    assert original == {"text": "a"}
    for remove in undo:
        remove()

    def refuse(hook_input: dict[str, Any], output: dict[str, Any]) -> None:
        raise PermissionError("not on Sundays")

    ws.hooks.add("tool.execute.before", refuse)
    with pytest.raises(PermissionError, match="Sundays"):
        await ws.call("echo", {"text": "b"})


@pytest.mark.anyio
@pytest.mark.parametrize("fails", [True, False])
async def test_a_clock_that_is_set_back_gives_no_negative_time(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    @tool
    def set_back() -> str:
        """Set the clock back by an hour."""
        earlier = time.time_ns() - 3_600_000_000_000
        monkeypatch.setattr(time, "time_ns", lambda: earlier)
        if fails:
            raise ValueError("late")
        return "done"

    ws.registry.register(set_back)
    call = ws.start("set_back", {})
    with contextlib.suppress(ToolError, ValueError):
        await call.run()
    state = call.part.state
    assert isinstance(state, Failed if fails else Completed)
    assert state.end == state.start


@pytest.mark.anyio
async def test_a_tools_own_error_passes_through(ws: Workspace) -> None:
    @tool
    def broken() -> str:
        raise ZeroDivisionError("by zero")

    ws.registry.register(broken)
    call = ws.start("broken")
    with pytest.raises(ZeroDivisionError):
        await call.run()
    assert call.part.outcome == "failed"
    assert call.part.state.to_wire()["error"] == "ZeroDivisionError: by zero"


@pytest.mark.anyio
async def test_a_tool_that_exits_does_not_take_the_process_along(ws: Workspace) -> None:
    @tool
    async def leave() -> str:
        raise SystemExit(3)

    ws.registry.register(leave)
    with pytest.raises(ToolError, match="tried to end the process"):
        await ws.call("leave")


@pytest.mark.anyio
@pytest.mark.parametrize("value", [object(), len, ToolResult(output=42)])  # type: ignore[arg-type]
async def test_a_result_of_the_wrong_type(ws: Workspace, value: Any) -> None:
    @tool
    def odd() -> Any:
        return value

    ws.registry.register(odd)
    with pytest.raises(TypeError, match="The odd tool"):
        await ws.call("odd")


@pytest.mark.anyio
async def test_long_output_is_cut_and_kept_whole_in_a_file(ws: Workspace) -> None:
    @tool
    def many() -> str:
        return "\n".join(f"line {i}" for i in range(5000))

    ws.registry.register(many)
    result = await ws.call("many")
    assert result.truncated and result.output_path is not None
    assert "...3000 lines truncated..." in result.output
    assert Path(result.output_path).read_text().endswith("line 4999")


@pytest.mark.anyio
async def test_a_tool_that_sets_truncated_is_left_alone(ws: Workspace) -> None:
    @tool
    def own() -> ToolResult:
        return ToolResult(output="x\n" * 5000, metadata={"truncated": False})

    ws.registry.register(own)
    assert (await ws.call("own")).output == "x\n" * 5000


@pytest.mark.anyio
async def test_attachments_get_their_ids(ws: Workspace) -> None:
    @tool
    def image() -> ToolResult:
        return ToolResult(attachments=[Attachment.from_bytes(b"abc", "image/png")])

    ws.registry.register(image)
    call = ws.start("image")
    attachment = (await call.run()).attachments[0]
    assert attachment.id.startswith("prt_") and attachment.data == b"abc"
    assert (attachment.session_id, attachment.message_id) == (call.part.session_id, call.part.message_id)


# ---------------------------------------------------------------------- permission


@tool(asks=True)
async def careful(pattern: str, *, ctx: ToolContext) -> str:
    """Asks before it does anything."""
    await ctx.ask("careful", [pattern], ["*"], {"why": "test"})
    return "done"


def asking(tmp_path: Path, approve: Any = None, **config: Any) -> Workspace:
    (tmp_path / ".git").mkdir(exist_ok=True)
    workspace = Workspace(
        tmp_path, {"permission": {"careful": "ask"}, **config}, data_dir=tmp_path / "data", approve=approve
    )
    workspace.registry.register(careful)
    workspace.registry.register(echo)
    return workspace


@pytest.mark.anyio
async def test_approve_once_and_always(tmp_path: Path) -> None:
    replies = iter(["once", "always"])
    patterns: list[list[str]] = []

    async def approve(request: Any) -> str:
        patterns.append(request.patterns)
        return next(replies)

    async with asking(tmp_path, approve) as ws:
        for pattern in ("a", "b", "c"):
            await ws.call("careful", {"pattern": pattern})
    assert patterns == [["a"], ["b"]]


@pytest.mark.anyio
async def test_refused_with_and_without_a_word(tmp_path: Path) -> None:
    replies = iter(["reject", ("reject", "use b")])
    async with asking(tmp_path, lambda request: next(replies)) as ws:
        with pytest.raises(PermissionRejectedError):
            await ws.call("careful", {"pattern": "a"})
        call = ws.start("careful", {"pattern": "a"})
        with pytest.raises(PermissionCorrectedError) as caught:
            await call.run()
        assert caught.value.feedback == "use b"
        assert call.part.outcome == "denied by you"
        assert [d.action for d in call.part.decisions] == ["deny"]


@pytest.mark.anyio
async def test_denied_by_a_rule(open_workspace: OpenWorkspace, project: Path) -> None:
    (project / ".git").mkdir()
    ws = await open_workspace({"permission": {"careful": "deny"}})
    ws.registry.register(careful)
    with pytest.raises(PermissionDeniedError) as caught:
        await ws.call("careful", {"pattern": "a"})
    assert caught.value.rules[-1].action == "deny"


@pytest.mark.anyio
async def test_answered_from_elsewhere_and_waiting_does_not_count_as_running(tmp_path: Path) -> None:
    async with asking(tmp_path) as ws:
        task = asyncio.create_task(ws.call("careful", {"pattern": "a"}, timeout=0.2))
        await asyncio.sleep(0.4)
        [request] = ws.permissions.pending()
        assert ws.permissions.reply(request.id, "once")
        assert (await task).output == "done"
        assert not ws.permissions.reply(request.id, "once")


@pytest.mark.anyio
async def test_dry_run_says_what_would_be_asked_and_does_nothing(ws: Workspace) -> None:
    target = ws.directory / "new.txt"
    decisions = await ws.dry_run("write", {"filePath": "new.txt", "content": "x"})
    assert [(d.permission, d.patterns, d.action) for d in decisions] == [("edit", ["new.txt"], "allow")]
    assert not target.exists()
    [decision] = await ws.dry_run("read", {"filePath": ".env"})
    assert (decision.permission, decision.action) == ("read", "ask")
    assert decision.rules[0].origin
    [custom] = await ws.dry_run("echo", {"text": "x"})  # what its code would ask is not known: its name stands for it
    assert (custom.permission, custom.patterns, custom.action) == ("echo", ["*"], "allow")


@pytest.mark.anyio
async def test_a_context_belongs_to_no_call_once_that_is_over(ws: Workspace) -> None:
    contexts: list[ToolContext] = []

    @tool
    async def keeps(ctx: ToolContext) -> str:
        """Keep the context."""
        contexts.append(ctx)
        return "done"

    ws.registry.register(keeps)
    await ws.call("keeps")
    (ctx,) = contexts
    ctx.metadata("late", {})  # nothing to show it in, and no error
    with pytest.raises(RuntimeError, match="one that has ended"):
        await ctx.ask("bash", ["ls"])
    with pytest.raises(RuntimeError, match="one that has ended"):
        await ctx.question([{"question": "Q?", "header": "Q", "options": []}])
    with pytest.raises(RuntimeError, match="one that has ended"):
        ctx.child("keeps", {})
    assert ctx.call_id and ctx.directory == ws.directory


# ---------------------------------------------------------------------- endings


@tool
async def hang(*, ctx: ToolContext) -> str:
    """Never ends."""
    ctx.metadata(metadata={"output": "so far"})
    await asyncio.sleep(600)
    return ""


@tool
def hang_in_thread(*, ctx: ToolContext) -> str:
    """Looks whether it should end."""
    while not ctx.abort.wait(0.01):
        pass
    return "ended"


@pytest.mark.anyio
@pytest.mark.parametrize("tool_", [hang, hang_in_thread])
async def test_timeout(ws: Workspace, tool_: Any) -> None:
    ws.registry.register(tool_)
    call = ws.start(tool_.id, timeout=0.1)
    with pytest.raises(ToolTimeoutError, match=r"limit of 0\.1 s"):
        await call.run()
    assert call.part.outcome == "timed out"


async def output_shown(call: Call) -> None:
    """Wait until the call's part has the output of `hang`."""
    async with asyncio.timeout(30):
        while call.part.state.to_wire().get("metadata") != {"output": "so far"}:
            await asyncio.sleep(0.005)


@pytest.mark.anyio
async def test_stop_keeps_what_was_shown(ws: Workspace) -> None:
    ws.registry.register(hang)
    call = ws.start("hang")
    task = asyncio.create_task(call.run())
    await output_shown(call)
    assert ws.abort(call.part.call_id)
    with pytest.raises(ToolAbortedError):
        await task
    assert call.part.outcome == "stopped"
    assert call.part.state.to_wire()["metadata"] == {"output": "so far", "errorCode": "OJ-tool-aborted"}
    assert not ws.abort(call.part.call_id)


@pytest.mark.anyio
async def test_a_cancelled_caller_leaves_an_ended_part(ws: Workspace) -> None:
    ws.registry.register(hang)
    call = ws.start("hang")
    task = asyncio.create_task(call.run())
    await output_shown(call)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert call.part.state.to_wire()["error"] == "Tool execution aborted"
    assert call.part.outcome == "interrupted"


@pytest.mark.anyio
async def test_closing_the_workspace_ends_its_calls(tmp_path: Path) -> None:
    async with asking(tmp_path) as ws:
        ws.registry.register(hang)
        tasks = [asyncio.create_task(ws.call("hang")), asyncio.create_task(ws.call("careful", {"pattern": "x"}))]
        await asyncio.sleep(0.05)
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(o, ToolError) for o in outcomes), outcomes
    with pytest.raises(ToolError, match="closed"):
        await ws.call("echo", {"text": "x"})


@pytest.mark.anyio
async def test_updates_are_coalesced_and_the_last_one_is_sent(ws: Workspace) -> None:
    @tool
    async def chatty(*, ctx: ToolContext) -> str:
        for i in range(2000):
            ctx.metadata(metadata={"n": i})
            if i % 100 == 0:
                await asyncio.sleep(0.005)
        await asyncio.sleep(0.12)
        return "x"

    ws.registry.register(chatty)
    updates: list[int] = []

    def note(part: Any) -> None:
        metadata = getattr(part.state, "metadata", None) or {}
        if "n" in metadata:
            updates.append(metadata["n"])

    began = time.monotonic()
    await ws.start("chatty", on_update=note).run()
    assert updates[-1] == 1999
    assert len(updates) <= (time.monotonic() - began) * 20 + 2


# ---------------------------------------------------------------------- from code that can't await


def test_call_sync_without_a_loop(tmp_path: Path) -> None:
    with asking(tmp_path) as ws:
        assert ws.call_sync("echo", {"text": "a"}).output == "a"


@pytest.mark.anyio
async def test_call_sync_from_a_worker_thread_and_from_the_loop(ws: Workspace) -> None:
    assert (await asyncio.to_thread(ws.call_sync, "echo", {"text": "a"})).output == "a"
    assert ws.call_sync("echo", {"text": "b"}).output == "b"


@pytest.mark.anyio
async def test_sync_tool_asks_from_its_thread(tmp_path: Path) -> None:
    @tool
    def ask_sync(*, ctx: ToolContext) -> str:
        return ctx.ask_sync("careful", ["x"]).reply or "rule"

    async with asking(tmp_path, lambda request: "once") as ws:
        ws.registry.register(ask_sync)
        assert (await ws.call("ask_sync")).output == "once"


@pytest.mark.anyio
async def test_python_names_are_recorded_in_opencodes_spelling(ws: Workspace) -> None:
    (ws.directory / "a.txt").write_text("x\n")
    call = ws.start("read", {"file_path": "a.txt"})
    await call.run()
    assert call.part.state.input == {"filePath": "a.txt"}


@pytest.mark.anyio
async def test_a_persons_decisions_are_kept(tmp_path: Path) -> None:
    async with asking(tmp_path, lambda request: ("reject", "no")) as ws:
        with pytest.raises(PermissionCorrectedError):
            await ws.call("careful", {"pattern": "a"})
        await ws.call("echo", {"text": "x"})
        assert ws.store is not None
        await ws.store.flush()
        [row] = await ws.store.decisions()
        assert (row["permission"], row["action"], row["message"]) == ("careful", "deny", "no")
