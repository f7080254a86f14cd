"""What a call, a prompt or a list of tools is refused for before anything runs: ids, names, options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import ToolError, Workspace
from opencode_jupyter.core.errors import InvalidArgumentsError, UnknownSessionError
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio


@pytest.fixture
async def ws(open_workspace: OpenWorkspace, project: Path) -> Workspace:
    (project / "a.txt").write_text("a\n")
    return await open_workspace()


@pytest.mark.parametrize("session", ["ses_none", "", 5, ["ses_none"]])
async def test_an_unknown_session_is_a_tool_error_that_says_what_to_do(ws: Workspace, session: Any) -> None:
    with pytest.raises(ToolError, match=r"no session .*sessions\.create\(\)") as caught:
        await ws.call("read", {"filePath": "a.txt"}, session=session)
    assert isinstance(caught.value, UnknownSessionError)
    assert isinstance(caught.value, KeyError), "code of before catches a KeyError"
    assert not str(caught.value).startswith(("'", '"')), "not shown as a KeyError's argument"
    with pytest.raises(UnknownSessionError):
        ws.start("read", {"filePath": "a.txt"}, session=session)
    with pytest.raises(UnknownSessionError):
        ws.call_sync("read", {"filePath": "a.txt"}, session=session)


async def test_a_prompt_in_an_unknown_session(ws: Workspace) -> None:
    with pytest.raises(UnknownSessionError, match=r"no session 'ses_none'\. %sessions lists"):
        await ws.sessions.prompt("x", session="ses_none", model="scripted:none.yaml")
    with pytest.raises(UnknownSessionError, match="no session 'ses_none'"):
        await ws.sessions.delete("ses_none")


async def test_an_unknown_agent_is_refused_with_near_names(ws: Workspace) -> None:
    for refused in (ws.registry.tools("openai:gpt-5", "biuld"), ws.registry.described(["read"], "biuld")):
        with pytest.raises(ToolError, match=r"no agent 'biuld'\. Did you mean build\?"):
            await refused
    with pytest.raises(ToolError, match=r"no agent 'zzzz'\. The agents are build, "):
        await ws.registry.tools(None, "zzzz")
    with pytest.raises(ToolError, match="no agent 5"):
        await ws.call("read", {"filePath": "a.txt"}, agent=5)  # type: ignore[arg-type]
    assert [tool.id for tool in await ws.registry.tools(None, "build")]


@pytest.mark.parametrize("timeout", ["5", -1, 0, float("nan"), True, False, [5], -0.5, 1j])
async def test_a_wrong_timeout_is_refused(ws: Workspace, timeout: Any) -> None:
    with pytest.raises(InvalidArgumentsError, match="timeout must be a number of seconds above 0, or None"):
        await ws.call("read", {"filePath": "a.txt"}, timeout=timeout)
    with pytest.raises(InvalidArgumentsError, match="timeout must be a number of seconds above 0, or None"):
        await ws.map(["x"], timeout=timeout)
    with pytest.raises(InvalidArgumentsError, match="request 0: timeout must be a number"):
        await ws.map([{"tool": "read", "arguments": {"filePath": "a.txt"}, "timeout": timeout}])


@pytest.mark.parametrize("timeout", [None, 5, 0.5, float("inf")])
async def test_a_right_timeout(ws: Workspace, timeout: Any) -> None:
    assert "a" in (await ws.call("read", {"filePath": "a.txt"}, timeout=timeout)).output


@pytest.mark.parametrize("by", ["robot", "User", None, 1, ["user"], ""])
async def test_a_wrong_caller_is_refused(ws: Workspace, by: Any) -> None:
    with pytest.raises(InvalidArgumentsError, match="by must be one of 'user', 'python', 'model', not "):
        await ws.call("read", {"filePath": "a.txt"}, by=by)
    with pytest.raises(InvalidArgumentsError, match="by must be one of"):
        await ws.dry_run("read", {"filePath": "a.txt"}, by=by)


async def test_a_misspelled_caller_is_corrected(ws: Workspace) -> None:
    with pytest.raises(InvalidArgumentsError, match=r"not 'pyhton'\. Did you mean python\?"):
        await ws.call("read", {"filePath": "a.txt"}, by="pyhton")  # type: ignore[arg-type]
