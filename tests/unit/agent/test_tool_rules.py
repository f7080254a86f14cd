"""Rules on a tool's own id, whoever calls it, and requests that nobody can answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Tool, ToolContext, Workspace, tool
from opencode_jupyter.agent.scripted import ScriptedModel, call
from opencode_jupyter.core.errors import (
    InvalidDefinitionError,
    PermissionDeniedError,
    PermissionHookError,
    PermissionRejectedError,
)
from opencode_jupyter.core.permission import Rule
from opencode_jupyter.core.sessions import Session
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio


@tool
def mine(text: str = "x") -> str:
    """Return the text."""
    return text


async def test_a_rule_that_denies_an_own_tool_holds_for_calls_and_in_a_batch(open_workspace: OpenWorkspace) -> None:
    ws = await open_workspace({"permission": {"mine": "deny"}})
    ws.registry.register(mine)
    assert [d.action for d in await ws.dry_run("mine")] == ["deny"]
    with pytest.raises(PermissionDeniedError):
        await ws.call("mine")
    batch = await ws.call("batch", {"tool_calls": [{"tool": "mine", "parameters": {}}]})
    assert batch.metadata["failed"] == 1


async def test_a_rule_that_asks_for_an_own_tool_asks_once(open_workspace: OpenWorkspace) -> None:
    requests: list[tuple[str, list[str]]] = []

    def approve(request: Any) -> str:
        requests.append((request.permission, request.patterns))
        return "once"

    ws = await open_workspace({"permission": {"mine": "ask"}}, approve=approve)
    ws.registry.register(mine)
    assert (await ws.call("mine")).output == "x"
    assert requests == [("mine", ["*"])]


@tool
def silent(text: str = "x", *, ctx: ToolContext) -> str:
    """Take the context and never ask."""
    return text


@tool(asks=True)
async def careful(text: str = "x", *, ctx: ToolContext) -> str:
    """Ask under its own id."""
    await ctx.ask("careful", [text], ["*"])
    return text


def confirm(ctx: ToolContext, permission: str) -> None:
    """Ask where the tool's own code does not show it."""
    ctx.ask_sync(permission, ["x"], ["*"])


@tool
def hidden(text: str = "x", *, ctx: ToolContext) -> str:
    """Ask under its own id, in another function."""
    confirm(ctx, "hidden")
    return text


@tool
async def sometimes(text: str = "x", *, ctx: ToolContext) -> str:
    """Ask under its own id for one text only."""
    if text == "y":
        await ctx.ask("sometimes", [text], ["*"])
    return text


async def _ask_itself(args: dict[str, Any], ctx: ToolContext) -> str:
    await ctx.ask("declared", ["x"])
    return "x"


defined = Tool.define("defined", {"description": "d", "parameters": {}, "execute": lambda args, ctx: "x"})
declared = Tool.define("declared", {"description": "d", "parameters": {}, "execute": _ask_itself, "asks": True})
ALL = (silent, careful, hidden, sometimes, defined, declared)


@pytest.mark.parametrize("made", ALL, ids=lambda made: made.id)
async def test_a_rule_that_asks_for_a_tool_that_gets_a_context_asks_once(
    open_workspace: OpenWorkspace, made: Tool
) -> None:
    replies = ["once", "reject"]
    config = {"permission": {made.id: "ask"}}
    ws = await open_workspace(config, approve=lambda request: replies.pop(0))
    ws.registry.register(made)
    assert [d.action for d in await ws.dry_run(made.id)] == ["ask"]
    assert (await ws.call(made.id)).output == "x"
    assert replies == ["reject"]
    with pytest.raises(PermissionRejectedError):
        await ws.call(made.id)


@pytest.mark.parametrize("text", ["x", "y"])
async def test_a_rule_holds_on_every_path_of_a_tool_that_asks_on_one(open_workspace: OpenWorkspace, text: str) -> None:
    config = {"permission": {"sometimes": "ask"}}
    ws = await open_workspace(config, approve=lambda request: "reject")
    ws.registry.register(sometimes)
    with pytest.raises(PermissionRejectedError):
        await ws.call("sometimes", {"text": text})


async def test_one_approval_covers_what_the_tool_asks_under_its_id_and_no_deny(open_workspace: OpenWorkspace) -> None:
    requests: list[list[str]] = []

    def approve(request: Any) -> str:
        requests.append(request.patterns)
        return "once"

    config = {"permission": {"*": "allow", "sometimes": {"*": "ask", "y": "ask"}}}
    ws = await open_workspace(config, approve=approve)
    ws.registry.register(sometimes)
    await ws.call("sometimes", {"text": "y"})
    assert requests == [["*"]]
    ws.rules.append(Rule("sometimes", "y", "deny"))
    with pytest.raises(PermissionDeniedError):
        await ws.call("sometimes", {"text": "y"})


async def test_a_hook_may_refuse_what_the_tool_asks_after_the_call_was_approved(open_workspace: OpenWorkspace) -> None:
    def judge(request: dict[str, Any], output: dict[str, Any]) -> None:
        output["status"] = "deny" if request["patterns"] == ["y"] else "ask"

    config = {"permission": {"sometimes": "ask"}}
    ws = await open_workspace(config, approve=lambda request: "once")
    ws.registry.register(sometimes)
    ws.hooks.add("permission.ask", judge)
    assert (await ws.call("sometimes")).output == "x"
    with pytest.raises(PermissionHookError):
        await ws.call("sometimes", {"text": "y"})


async def test_a_rule_holds_for_a_tool_that_was_replaced_since_a_model_was_offered_it(
    open_workspace: OpenWorkspace,
) -> None:
    config = {"permission": {"mine": "deny"}}
    ws = await open_workspace(config)
    ws.registry.register(tool("mine")(lambda text="x": text))
    with pytest.raises(PermissionDeniedError):
        await ws.start("mine", {}, tool=mine).run()


@tool(asks=True)
async def forgetful(text: str = "x", *, ctx: ToolContext) -> str:
    """Declare that it asks, and forget it."""
    return text


@pytest.mark.parametrize(
    ("rules", "denied"),
    [
        ({"forgetful": "deny"}, True),
        ({"*": "deny"}, True),
        ({"forgetful": {"*": "deny", "x": "deny"}}, True),
        ({"forgetful": {"x": "allow", "*": "deny"}}, True),
        ({"forgetful": {"*": "deny", "x": "allow"}}, False),
        ({"forgetful": {"*": "deny", "x": "ask"}}, False),
    ],
)
async def test_a_deny_holds_for_a_tool_that_declares_to_ask(
    open_workspace: OpenWorkspace, rules: Any, denied: bool
) -> None:
    ws = await open_workspace({"permission": rules})
    ws.registry.register(forgetful)
    ws.permissions.remember(Rule("forgetful", "z", "allow"))  # undoes no deny
    if not denied:
        assert (await ws.call("forgetful")).output == "x"
        return
    with pytest.raises(PermissionDeniedError):
        await ws.call("forgetful")


def test_asks_is_true_or_false() -> None:
    with pytest.raises(InvalidDefinitionError, match="asks of the tool d must be True or False, not 'yes'"):
        Tool.define("d", {"description": "d", "parameters": {}, "execute": _ask_itself, "asks": "yes"})


async def test_a_tool_that_asks_itself_shows_its_own_patterns(open_workspace: OpenWorkspace) -> None:
    requests: list[Any] = []

    def approve(request: Any) -> str:
        requests.append(request.patterns)
        return "once"

    ws = await open_workspace({"permission": {"careful": "ask"}}, approve=approve)
    ws.registry.register(careful)
    await ws.call("careful", {"text": "a"})
    assert requests == [["a"]]


async def test_a_tool_that_asks_with_patterns_is_judged_by_them(open_workspace: OpenWorkspace) -> None:
    rules = {"careful": {"*": "deny", "good": "allow"}}
    ws = await open_workspace({"permission": rules})
    ws.registry.register(careful)
    assert (await ws.call("careful", {"text": "good"})).output == "good"
    with pytest.raises(PermissionDeniedError):
        await ws.call("careful", {"text": "bad"})


async def test_a_model_reaches_no_switched_off_tool_by_batch_or_subagent(
    open_workspace: OpenWorkspace, project: Path
) -> None:
    def bash(name: str) -> dict[str, Any]:
        return {"tool": "bash", "parameters": {"command": f"touch '{name}'", "description": "d"}}

    batches: list[Any] = []

    def script(prompt: Any) -> Any:
        if prompt.text == "Touch it":
            batches.extend((yield call("batch", tool_calls=[bash("by subagent")])))
        else:
            batches.extend((yield call("batch", tool_calls=[bash("by batch")])))
            yield call("task", description="Touch a file", prompt="Touch it", subagent_type="general")
        yield "The end."

    config = {"permission": "allow", "experimental": {"batch_tool": True}}
    ws = await open_workspace(config)
    answer = await ws.sessions.prompt("Go", tools={"bash": False}, model=ScriptedModel(script, speed=0))
    assert answer.text == "The end."
    assert {result.tool for result in batches} == {"batch", "bash"}
    for result in batches:  # the batch's, and that of the call in it
        assert result.output.startswith(("Executed 0/1", "The user has specified a rule which prevents"))
    assert not list(project.glob("by*"))


async def test_the_tools_of_a_prompt_hold_in_a_batch_and_in_subagents(workspace: Workspace, project: Path) -> None:
    caller = workspace.sessions.create("caller")
    caller.tool_rules = [Rule("bash", "*", "deny", "the prompt's tools")]
    child = workspace.sessions.create("child", parent_id=caller.id)
    command = {"command": "touch made", "description": "d"}
    for session in (caller, child):
        batch = await workspace.call(
            "batch", {"tool_calls": [{"tool": "bash", "parameters": command}]}, session=session
        )
        assert batch.metadata["failed"] == 1
        with pytest.raises(PermissionDeniedError):
            await workspace.call("bash", command, session=session)
    assert not (project / "made").exists()


async def test_a_loop_that_nobody_can_be_asked_about_fails_at_once(open_workspace: OpenWorkspace) -> None:
    ws = await open_workspace({})
    ws.registry.register(mine)
    await ws.call("mine")
    await ws.call("mine")
    with pytest.raises(PermissionRejectedError, match='"doom_loop": "allow"') as caught:
        await ws.call("mine", timeout=1)
    assert caught.value.decision is not None and caught.value.decision.permission == "doom_loop"


async def test_a_rule_for_everything_asks_for_own_tools_too(open_workspace: OpenWorkspace) -> None:
    ws = await open_workspace({"permission": "ask"}, approve=lambda request: "reject")
    for made in (mine, silent, careful):
        ws.registry.register(made)
    for name in ("mine", "silent", "careful"):
        assert [decision.action for decision in await ws.dry_run(name)] == ["ask"]
        with pytest.raises(PermissionRejectedError):
            await ws.call(name)


def test_a_stored_session_keeps_its_times_and_has_no_tool_rules() -> None:
    session = Session.from_wire(Session("ses_a", "title", "/", created=1, updated=2).to_wire())
    assert (session.created, session.updated, session.tool_rules) == (1, 2, [])
