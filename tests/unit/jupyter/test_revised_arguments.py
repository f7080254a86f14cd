"""A person changes a call's arguments before approval: it begins again with them, and that counts as approval."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import ToolContext, Workspace, tool
from opencode_jupyter.core.call_state import Completed
from opencode_jupyter.core.errors import InvalidArgumentsError, ToolError
from opencode_jupyter.core.permission import PermissionRequest
from opencode_jupyter.jupyter.cards.approval_json import RequestView, digest_of
from opencode_jupyter.jupyter.cards.call_json import Extras, card_part
from opencode_jupyter.jupyter.cards.labels import label_of
from opencode_jupyter.jupyter.cards.wording import decision_words
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio
RULES = {"permission": {"bash": {"*": "ask", "rm *": "deny"}, "greet": "ask"}}


@tool(asks=True)
async def greet(name: str, times: int = 1, *, ctx: ToolContext) -> str:
    """Greet somebody."""
    await ctx.ask(permission="greet", patterns=[name], always=["*"])
    return " ".join([f"hello {name}"] * times)


async def pending_requests(ws: Workspace, count: int = 1) -> list[PermissionRequest]:
    """The asks that wait, as soon as there are so many."""
    async with asyncio.timeout(10):
        while len(ws.permissions.pending()) < count:
            await asyncio.sleep(0.005)
    return ws.permissions.pending()


async def revise(ws: Workspace, request: PermissionRequest, arguments: dict[str, Any]) -> bool:
    assert request.tool is not None
    return await ws.calls[request.tool["callID"]].revise(request.id, arguments, by="control")


async def test_the_call_runs_with_the_new_arguments(open_workspace: OpenWorkspace) -> None:
    ws = await open_workspace(RULES)
    ws.registry.register(greet)
    call = ws.start("greet", {"name": "Ada"})
    running = asyncio.ensure_future(call.run())
    [first] = await pending_requests(ws)
    assert await revise(ws, first, {"name": "Grace", "times": 2})
    assert (await running).output == "hello Grace hello Grace"
    assert call.part.state.input == {"name": "Grace", "times": 2}
    decisions = [(d.action, d.reply, d.patterns) for d in call.part.decisions]
    assert decisions == [("deny", "reject", ["Ada"]), ("allow", "once", ["Grace"])]
    assert decision_words(card_part(call.part)) == ["arguments changed by you", "allowed once by you"]
    assert list(ws.permissions.history) == call.part.decisions
    assert not await call.revise(first.id, {"name": "x"})  # decided long ago


async def test_the_wait_before_the_change_is_part_of_the_call(open_workspace: OpenWorkspace) -> None:
    ws = await open_workspace(RULES)
    ws.registry.register(greet)
    call = ws.start("greet", {"name": "Ada"})
    running = asyncio.ensure_future(call.run())
    [first] = await pending_requests(ws)
    await asyncio.sleep(0.05)
    await revise(ws, first, {"name": "Grace"})
    await running
    state = call.part.state
    assert isinstance(state, Completed)
    assert call.part.waited >= 0.05
    assert state.end - state.start > call.part.waited * 1000 - 1  # both times are whole milliseconds, cut


async def test_another_rule_asks_about_the_new_arguments(open_workspace: OpenWorkspace, tmp_path: Path) -> None:
    rules = {"permission": {"bash": {"*": "ask", "git *": "ask"}, "external_directory": "ask"}}
    (tmp_path / "a.txt").write_text("one\n")
    ws = await open_workspace(rules)
    for command, permission in (("git --version", "bash"), (f"cat {tmp_path}/a.txt", "external_directory")):
        running = asyncio.ensure_future(ws.call("bash", {"command": "echo one", "description": "d"}))
        [first] = await pending_requests(ws)
        await revise(ws, first, {"command": command, "description": "d"})
        async with asyncio.timeout(10):
            while ws.permissions.pending()[:1] in ([], [first]):
                await asyncio.sleep(0.005)
        [second] = ws.permissions.pending()
        assert second.permission == permission
        ws.permissions.reply(second.id, "once")
        await running


async def test_what_was_approved_before_the_change_is_not_asked_again(
    open_workspace: OpenWorkspace, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    rules = {"permission": {"bash": "ask", "external_directory": "ask"}}
    ws = await open_workspace(rules)
    running = asyncio.ensure_future(ws.call("bash", {"command": f"cat {tmp_path}/a.txt", "description": "d"}))
    [outside] = await pending_requests(ws)
    assert outside.permission == "external_directory"
    ws.permissions.reply(outside.id, "once")
    async with asyncio.timeout(10):
        while not ws.permissions.pending():
            await asyncio.sleep(0.005)
    [first] = ws.permissions.pending()
    await revise(ws, first, {"command": f"cat -n {tmp_path}/a.txt", "description": "d"})
    assert "1\tone" in (await running).output


async def test_hooks_judge_the_new_arguments(open_workspace: OpenWorkspace) -> None:
    def judge(request: dict[str, Any], output: dict[str, Any]) -> None:
        output["status"] = "deny" if request["patterns"] == ["Grace"] else "ask"

    ws = await open_workspace(RULES)
    ws.registry.register(greet)
    ws.hooks.add("permission.ask", judge)
    running = asyncio.ensure_future(ws.call("greet", {"name": "Ada"}))
    [first] = await pending_requests(ws)
    await revise(ws, first, {"name": "Grace"})
    with pytest.raises(ToolError):
        await running


async def test_a_refusal_in_the_same_words_is_a_refusal(open_workspace: OpenWorkspace) -> None:
    ws = await open_workspace(RULES)
    ws.registry.register(greet)
    call = ws.start("greet", {"name": "Ada"})
    running = asyncio.ensure_future(call.run())
    [request] = await pending_requests(ws)
    ws.permissions.reply(request.id, "reject", "requested again with other arguments", by="card")
    with pytest.raises(ToolError):
        await running
    assert decision_words(card_part(call.part))[0].startswith("denied by you")


async def test_a_model_hears_what_its_call_ran_with(open_workspace: OpenWorkspace) -> None:
    ws = await open_workspace(RULES)
    call = ws.start("bash", {"command": "echo one", "description": "d"}, by="model")
    running = asyncio.ensure_future(call.run())
    [first] = await pending_requests(ws)
    await revise(ws, first, {"command": "echo two", "description": "d"})
    output = (await running).output
    assert output.startswith("two\n")
    assert 'changed the arguments of this call before it ran; it ran with {"command": "echo two"' in output


async def test_what_a_rule_denies_is_denied_after_a_change_too(open_workspace: OpenWorkspace) -> None:
    ws = await open_workspace(RULES)
    running = asyncio.ensure_future(ws.call("bash", {"command": "echo one", "description": "d"}))
    [first] = await pending_requests(ws)
    await revise(ws, first, {"command": "rm -rf x", "description": "d"})
    with pytest.raises(ToolError, match="rule which prevents"):
        await running


async def test_arguments_that_do_not_fit_leave_the_ask_as_it_is(open_workspace: OpenWorkspace) -> None:
    ws = await open_workspace(RULES)
    ws.registry.register(greet)
    running = asyncio.ensure_future(ws.call("greet", {"name": "Ada"}))
    [first] = await pending_requests(ws)
    with pytest.raises(InvalidArgumentsError, match="times"):
        await revise(ws, first, {"name": "Ada", "times": "often"})
    assert ws.permissions.pending() == [first]
    ws.permissions.reply(first.id, "once")
    assert (await running).output == "hello Ada"


async def test_other_asks_of_the_session_go_on_waiting(open_workspace: OpenWorkspace) -> None:
    ws = await open_workspace(RULES)
    ws.registry.register(greet)
    greetings = asyncio.gather(*(ws.call("greet", {"name": name}) for name in ("Ada", "Grace")))
    first, second = await pending_requests(ws, 2)
    await revise(ws, first, {"name": "Edsger"})
    await asyncio.sleep(0.05)
    assert ws.permissions.pending() == [second]
    ws.permissions.reply(second.id, "once")
    assert [r.output for r in await greetings] == ["hello Edsger", "hello Grace"]


async def test_long_arguments_go_to_the_card_whole_so_that_they_can_be_changed(open_workspace: OpenWorkspace) -> None:
    ws = await open_workspace({"permission": {"edit": "ask"}})
    for size, is_editable in ((10, False), (50_000, True), (200_000, None)):
        arguments = {"filePath": "a.txt", "content": "x" * size}
        running = asyncio.ensure_future(ws.call("write", arguments))
        [request] = await pending_requests(ws)
        assert request.tool is not None
        part = ws.calls[request.tool["callID"]].part
        card = card_part(part, Extras(request=RequestView(request, digest_of(request))), live=True)
        view = card["ui"]["ask"]
        assert view.get("editable", False) == (is_editable is not None)
        assert view.get("input") == (arguments if is_editable else None)
        ws.permissions.reply(request.id, "once")
        await running


@pytest.mark.parametrize("by", ["user", "model"])
async def test_the_title_describes_what_ran(open_workspace: OpenWorkspace, by: Any) -> None:
    ws = await open_workspace(RULES)
    call = ws.start("bash", {"command": "echo one", "description": "echo one"}, by=by)
    running = asyncio.ensure_future(call.run())
    [first] = await pending_requests(ws)
    await revise(ws, first, {"command": "echo one two", "description": "echo one"})
    while not running.done():
        for request in ws.permissions.pending():
            ws.permissions.reply(request.id, "once")
        await asyncio.sleep(0.005)
    assert (await running).title == label_of(call.part) == "echo one two"
    assert call.part.state.input["description"] == "echo one two"
    assert call.part.state.to_wire()["metadata"]["description"] == "echo one two"


async def test_the_title_describes_what_a_hook_made_of_the_call(workspace: Workspace) -> None:
    workspace.hooks.add("tool.execute.before", lambda hook_input, output: output["args"].update(command="echo two"))
    call = workspace.start("bash", {"command": "echo one", "description": "Print one"})
    assert (await call.run()).title == label_of(call.part) == "echo two"
    unchanged = workspace.start("bash", {"command": "echo two", "description": "Print two"})
    assert (await unchanged.run()).title == "Print two"
