"""Servers that others wrote, from PyPI and npm: both generations of the protocol, Python and Node.js."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.core.question_request import QuestionRequest
from opencode_jupyter.mcp import McpServers
from opencode_jupyter.mcp.errors import McpError
from tests.support.workspaces import OpenWorkspace

from ..support.mcp import module, npm
from .conftest import Approver

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
async def servers(
    open_workspace: OpenWorkspace, project: Path, approver: Approver
) -> AsyncIterator[tuple[Workspace, McpServers]]:
    (project / "notes.txt").write_text("one\ntwo\n")
    mcp = {
        "time": module("mcp_server_time", "--local-timezone", "UTC"),
        "git": module("mcp_server_git", "--repository", str(project)),
        "fetch": module("mcp_server_fetch"),
        "everything": npm("mcp-server-everything"),
        "files": npm("mcp-server-filesystem", str(project)),
    }

    def answer(request: QuestionRequest) -> Any:
        return [[] if "optional" in question.question else ["Ada"] for question in request.questions]

    config = {"mcp": mcp, "permission": {"*": "allow"}}
    ws = await open_workspace(config, approve=approver, answer=answer)
    return (ws, ws.service(McpServers))


async def test_servers_of_both_languages_and_generations(servers: tuple[Workspace, McpServers], project: Path) -> None:
    ws, manager = servers
    ids = await ws.registry.ids()
    status = manager.status()
    assert {name: entry.state for name, entry in status.items()} == dict.fromkeys(status, "connected"), status
    assert {"time_convert_time", "git_git_status", "fetch_fetch", "files_read_text_file", "everything_echo"} <= set(ids)

    time = json.loads((await ws.call("time_get_current_time", {"timezone": "Europe/Paris"})).output)
    assert time["timezone"] == "Europe/Paris"

    git = await ws.call("git_git_status", {"repo_path": str(project)})
    assert "notes.txt" in git.output
    subprocess.run(["git", "-C", str(project), "add", "notes.txt"], check=True)
    assert "new file" in (await ws.call("git_git_status", {"repo_path": str(project)})).output

    assert (await ws.call("files_read_text_file", {"path": str(project / "notes.txt")})).output == "one\ntwo\n"
    with pytest.raises(McpError, match="outside allowed directories"):
        await ws.call("files_read_text_file", {"path": "/etc/passwd"})

    assert (await ws.call("everything_echo", {"message": "hi"})).output == "Echo: hi"
    image = await ws.call("everything_get-tiny-image")
    assert [a.mime for a in image.attachments] == ["image/png"]
    assert image.attachments[0].data.startswith(b"\x89PNG")
    structured = await ws.call("everything_get-structured-content", {"location": "Chicago"})
    assert "temperature" in structured.metadata["structuredContent"]

    reports: list[Any] = []

    def note(part: Any) -> None:
        reports.append((getattr(part.state, "metadata", None) or {}).get("progress"))

    await ws.call("everything_trigger-long-running-operation", {"duration": 0.5, "steps": 5}, on_update=note)
    assert any(report and report["total"] == 5 for report in reports)

    roots = await ws.call("everything_get-roots-list")
    assert project.as_uri() in roots.output
    result = await ws.call("everything_trigger-elicitation-request")
    assert "Ada" in result.output

    prompts = await manager.prompts()
    assert any(name.startswith("everything:") for name in prompts)
    resources = [resource for resource in (await manager.resources()).values() if resource.server == "everything"]
    assert (await manager.read_resource("everything", resources[0].uri)).output
