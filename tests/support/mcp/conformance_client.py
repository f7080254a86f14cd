"""A client for the official conformance suite: our MCP side, used as a script uses it, for one scenario.

The suite starts it with the address of its server; the scenario's name and what it wants done stand in the environment.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))

from opencode_jupyter import Workspace
from opencode_jupyter.core.permission import PermissionRequest
from opencode_jupyter.core.question_request import QuestionRequest
from opencode_jupyter.mcp import McpServers
from opencode_jupyter.mcp.errors import AuthError
from opencode_jupyter.mcp.logins import Logins
from tests.support.auth_server import browse

NAME = "suite"
LOGINS = 3
"""Logins that are tried: a server that wants more rights each time must not get them without end."""
ARGUMENTS = {"add_numbers": {"a": 5, "b": 3}}
"""Of tools that the suite tells nothing about."""


def entry(url: str, context: dict[str, Any]) -> dict[str, Any]:
    """The server as a configuration names it."""
    oauth = {"clientId": context.get("client_id"), "clientSecret": context.get("client_secret")}
    options = {key: value for key, value in oauth.items() if value}
    return {"type": "remote", "url": url, **({"oauth": options} if options else {})}


async def log_in(workspace: Workspace) -> None:
    """What a person with a browser does at ``needs_auth``."""
    servers = workspace.service(McpServers)
    login = await workspace.service(Logins).begin(servers.specs()[NAME], lambda: servers.connect(NAME))
    url = await login.wait_for_url()
    if url:
        await asyncio.to_thread(browse, url)
    print(await login.wait())


async def connected(workspace: Workspace) -> None:
    """Connect, with as many logins as that takes.

    Raises:
        RuntimeError: the server can't be used.
    """
    servers = workspace.service(McpServers)
    for _ in range(LOGINS):
        await workspace.registry.prepare()
        status = servers.status()[NAME]
        print(status)
        if status.state == "connected":
            return
        if status.state != "needs_auth":
            raise RuntimeError(status.error)
        await log_in(workspace)
    raise RuntimeError("the server is never satisfied")


async def call(workspace: Workspace, tool: str, arguments: dict[str, Any]) -> None:
    """Call a tool; if it takes more rights, log in for them and call again."""
    for _ in range(LOGINS):
        try:
            print(tool, (await workspace.call(f"{NAME}_{tool}", arguments)).output[:200])
        except Exception as error:
            print(tool, type(error).__name__, error)
            if f"%mcp auth {NAME}" not in str(error):
                return
            try:
                await log_in(workspace)
            except AuthError as refused:
                print(refused)
                return
        else:
            return


async def main(url: str) -> None:
    """One scenario."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"
    with tempfile.TemporaryDirectory() as folder:
        async with Workspace(
            folder,
            {"mcp": {NAME: entry(url, context)}},
            Path(folder) / "data",
            approve=allow,
            answer=leave_as_it_is,
            store=False,
        ) as workspace:
            await connected(workspace)
            offered = [tool for tool in await workspace.registry.tools() if tool.id.startswith(f"{NAME}_")]
            print([tool.id for tool in offered])
            schemas = {tool.id.removeprefix(f"{NAME}_"): tool.parameters for tool in offered}
            calls = context.get("toolCalls") or [
                {"name": name, "arguments": ARGUMENTS.get(name, {})} for name in schemas
            ]
            focal = schemas.get("json_schema_2020_12_tool")
            if focal is not None:
                calls = [{"name": "json_schema_echo", "arguments": {"schema": focal}}]
            for tool in calls:
                await call(workspace, tool["name"], tool["arguments"])
            await look_around(workspace)


async def look_around(workspace: Workspace) -> None:
    """What else a server offers."""
    servers = workspace.service(McpServers)
    for prompt in (await servers.prompts()).values():
        print(
            prompt.name,
            await servers.prompt(NAME, prompt.name, dict.fromkeys((a["name"] for a in prompt.arguments), "x")),
        )
    for resource in (await servers.resources()).values():
        print(resource.uri, (await servers.read_resource(NAME, resource.uri)).output[:200])


def allow(request: PermissionRequest) -> str:
    """A person who allows everything."""
    return "once"


def leave_as_it_is(request: QuestionRequest) -> list[list[str]]:
    """A person who fills in nothing, so that what is usual counts; a question without a field is agreed to."""
    return [
        ["Accept"] if {option.label for option in question.options} == {"Accept", "Decline"} else []
        for question in request.questions
    ]


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
