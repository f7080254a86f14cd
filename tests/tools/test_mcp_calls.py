"""Tools of MCP servers: how they are listed, named, called, and what comes back."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import ToolResult, Workspace
from opencode_jupyter.core.errors import PermissionRejectedError, ToolAbortedError
from opencode_jupyter.mcp import McpServers
from opencode_jupyter.mcp.errors import McpError
from tests.support.workspaces import OpenWorkspace

from ..support.mcp import local
from .conftest import Approver

pytestmark = pytest.mark.anyio
Demo = tuple[Workspace, Approver]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Workspace, Approver]]:
    """A workspace with a server of the official SDK; starting one for each test would take most of the time."""
    folder, approver = tmp_path_factory.mktemp("demo"), Approver()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HOME", "OPENCODE_TEST_HOME"):
            patch.setenv(name, str(folder))
        (folder / "project").mkdir()
        config = {"mcp": {"demo": local("demo.py"), "o d": local("odd.py")}, "permission": {"*": "ask"}}
        with Workspace(folder / "project", config, data_dir=folder / "data", approve=approver) as ws:
            yield ws, approver


async def test_a_tool_is_called_and_asks_under_its_own_name(demo: Demo) -> None:
    ws, approver = demo
    result: ToolResult = await ws.call("demo_add", {"a": 40, "b": 2})
    assert result.output == "42"
    ask = approver.asks[-1]
    assert (ask.permission, ask.patterns, ask.always) == ("demo_add", ["*"], ["*"])
    tool = ws.registry.get("demo_add")
    assert tool is not None
    assert tool.external
    assert tool.source == "mcp: demo"
    bound = await tool.init()
    assert bound.description == "Add two numbers."
    assert bound.parameters["additionalProperties"] is False
    assert set(bound.parameters["properties"]) == {"a", "b"}

    approver.reply = "reject"
    with pytest.raises(PermissionRejectedError):
        await ws.call("demo_add", {"a": 1, "b": 2})
    approver.reply = "once"


async def test_results_become_text_attachments_and_rows(demo: Demo) -> None:
    ws, _ = demo
    table = await ws.call("demo_rows")
    assert table.records == [{"name": "a", "size": 1}, {"name": "b", "size": 2}]
    media = await ws.call("demo_media")
    assert media.output == "first\n\nlink: file:///y.txt\n\nlast"
    assert [a.mime for a in media.attachments] == ["image/png", "audio/wav", "application/zip"]
    assert [a.data for a in media.attachments] == [b"\x89PNG", b"bytes", b"bytes"]
    assert media.attachments[2].filename == "file:///x.bin"
    with pytest.raises(McpError, match="no luck"):
        await ws.call("demo_fail", {"why": "no luck"})
    with pytest.raises(McpError, match="count"):
        await ws.call("demo_steps", {})  # the server checks its own arguments


async def test_progress_is_shown_and_a_stopped_call_leaves_the_session_usable(demo: Demo) -> None:
    ws, _ = demo
    reports: list[Any] = []

    def note(part: Any) -> None:
        metadata = getattr(part.state, "metadata", None) or {}
        if "progress" in metadata:
            reports.append(metadata["progress"])

    await ws.call("demo_steps", {"count": 3, "pause": 0.1}, on_update=note)
    assert {"value": 2, "total": 3, "message": "step 2"} in reports

    running = ws.start("demo_wait", {"seconds": 60})
    task = asyncio.create_task(running.run())
    while running.part.state.status != "running":
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    running.abort()
    with pytest.raises(ToolAbortedError):
        await task
    assert (await ws.call("demo_add", {"a": 1})).output == "2"


async def test_progress_winds_the_clock_up_again(demo: Demo) -> None:
    ws, _ = demo
    assert (await ws.call("demo_add", {"a": 1})).output == "2"
    ws.config.data["experimental"] = {"mcp_timeout": 1500}
    try:
        assert (await ws.call("demo_steps", {"count": 4, "pause": 0.5})).output == "done"
        with pytest.raises(McpError, match=r"within 1\.5 s; it had come to 1 of 1 \(step 1\)"):
            await ws.call("demo_steps", {"count": 1, "pause": 5})
    finally:
        del ws.config.data["experimental"]


async def test_fifty_calls_at_once(demo: Demo) -> None:
    ws, _ = demo
    results = await asyncio.gather(*(ws.call("demo_add", {"a": n, "b": n}) for n in range(50)))
    assert [r.output for r in results] == [str(2 * n) for n in range(50)]


async def test_nothing_is_started_for_a_built_in_tool(
    open_workspace: OpenWorkspace, project: Path, approver: Approver
) -> None:
    (project / "a.txt").write_text("hello")
    config = {"mcp": {"odd": local("odd.py")}}
    ws = await open_workspace(config, approve=approver)
    servers = ws.service(McpServers)
    assert not ws.registry.is_fresh("odd_echo")
    assert servers.needed("read") == []
    await ws.call("read", {"filePath": str(project / "a.txt")})
    assert servers.status()["odd"].state == "disabled"
    assert "odd_echo" in await ws.registry.ids()
    assert servers.status()["odd"].state == "connected"
    assert servers.needed(None) == []


async def test_prompts_and_resources(demo: Demo) -> None:
    ws, _ = demo
    servers = ws.service(McpServers)
    prompts = await servers.prompts()
    assert list(prompts) == ["demo:greet"]
    assert prompts["demo:greet"].arguments == [{"name": "name", "description": "", "required": True}]
    assert await servers.prompt("demo", "greet", {"name": "Ada"}) == [{"role": "user", "text": "Say hello to Ada."}]
    resources = await servers.resources()
    assert [r.uri for r in resources.values()] == ["demo://motto"]
    assert (await servers.read_resource("demo", "demo://motto")).output == "Slow and steady."
    with pytest.raises(McpError):
        await servers.read_resource("demo", "demo://nothing")
    with pytest.raises(McpError, match="there are: demo, o d"):
        await servers.read_resource("other", "demo://nothing")


async def test_names_are_made_unique_after_replacement(demo: Demo) -> None:
    ws, _ = demo
    assert (await ws.call("o_d_a_b", {})).output == "a.b: {}"
    assert (await ws.call("o_d_a_b_2", {})).output == "a b: {}"


async def test_importing_the_package_does_not_load_the_sdk() -> None:
    code = "import sys, opencode_jupyter.mcp; print([m for m in ('mcp', 'mcp_types', 'httpx2') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr
