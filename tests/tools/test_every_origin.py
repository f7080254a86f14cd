"""Wherever a tool comes from: the same line, completion, help, card, ask, cut output and row of the history."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from opencode_jupyter import InvalidArgumentsError, PermissionDeniedError
from tests.support.shells import Shell, shell

PYTHON = '''
async def say(text: str, times: int = 1, *, ctx: ToolContext) -> str:
    """Says a text.

    Args:
        text: what to say
        times: how often
    """
    await ctx.ask("saying", [text], ["*"])
    return "\\n".join([text] * times)
'''
CELL = "from opencode_jupyter import ToolContext, tool\n\n@tool('cell_say')" + PYTHON
FILE = "from opencode_jupyter import ToolContext, tool\n\n\n@tool" + PYTHON
PLUGIN = (
    "from opencode_jupyter import ToolContext\nfrom opencode_jupyter.sources import PluginInput\n\n"
    + PYTHON
    + "\n\ndef house(given: PluginInput):\n    return {'tool': {'plugin_say': say}}\n"
)
SCRIPT = """
import { tool } from "@opencode-ai/plugin"
export const say = tool({
  description: "Says a text.",
  args: {
    text: tool.schema.string().describe("what to say"),
    times: tool.schema.number().int().default(1).describe("how often"),
  },
  async execute({ text, times }, ctx) {
    await ctx.ask({ permission: "saying", patterns: [text], always: ["*"], metadata: {} })
    return Array(times).fill(text).join("\\n")
  },
})
"""
SERVER = '''
from typing import Annotated

from mcp.server import MCPServer
from pydantic import Field

server = MCPServer("server")


@server.tool()
def say(text: Annotated[str, Field(description="what to say")],
        times: Annotated[int, Field(description="how often")] = 1) -> str:
    """Says a text."""
    return "\\n".join([text] * times)


server.run()
'''
ORIGINS = {
    "cell_say": "saying",
    "file_say": "saying",
    "plugin_say": "saying",
    "script_say": "saying",
    "server_say": "server_say",
}
"""Each tool's id, and the permission it asks for."""


@pytest.fixture(scope="module")
def ip(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A shell with one tool of each origin; all but the cell's are the user's own, so none waits for trust."""
    folder = tmp_path_factory.mktemp("origins")
    own = folder / "config_home" / "opencode"
    for name, text in {"tool/file.py": FILE, "plugin/house.py": PLUGIN, "tool/script.ts": SCRIPT}.items():
        path = own / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    server = folder / "server.py"
    server.write_text(SERVER)
    config = {"mcp": {"server": {"type": "local", "command": [sys.executable, str(server)]}}}
    (own / "opencode.json").write_text(json.dumps(config))
    with shell(folder) as made:
        made.run(CELL)
        for id in ORIGINS:
            made.run(f"%tool -q {id} ready")
        yield made


@pytest.mark.parametrize("id", ORIGINS)
def test_is_called_listed_completed_and_described(ip: Shell, id: str) -> None:
    ip.run(f"r = %tool {id} 'well, well' times=2")
    assert ip["r"].output == "well, well\nwell, well"
    (card,) = ip.shown
    assert id in card["text/plain"]
    assert "well, well" in card["text/html"]
    assert f"%tool {id}" in ip.complete(f"%tool {id[:-1]}")
    assert f"%tool {id} hello times=" in ip.complete(f"%tool {id} hello ti")
    assert id in str(ip.run("%tool"))
    described = str(ip.run(f"%tool {id}?"))
    for word in ("Says a text.", "what to say", "how often", "times"):
        assert word in described


@pytest.mark.parametrize("id", ORIGINS)
def test_bad_arguments_are_told_before_it_runs(ip: Shell, id: str) -> None:
    with pytest.raises(InvalidArgumentsError, match="times must be"):
        ip.run(f"%tool {id} hello times=often")
    with pytest.raises(InvalidArgumentsError, match="text"):
        ip.run(f"%tool {id} times=2")


@pytest.mark.parametrize("id", ORIGINS)
def test_long_output_is_cut_and_kept_whole(ip: Shell, id: str) -> None:
    ip.run(f"r = %tool {id} line times=5000")
    metadata = ip["r"].metadata
    assert metadata["truncated"] is True
    assert len(ip["r"].output.splitlines()) < 2100
    assert Path(metadata["outputPath"]).read_text().count("line") == 5000


@pytest.mark.parametrize(("id", "permission"), ORIGINS.items())
def test_rules_and_the_history_know_it(ip: Shell, id: str, permission: str) -> None:
    ip.run(f"%permissions deny {permission}")
    try:
        with pytest.raises(PermissionDeniedError):
            ip.run(f"%tool {id} hello")
    finally:
        ip.run(f"%permissions revoke {permission}")
    ip.run(f"%tool {id} again")
    rows = [row for row in ip.run("%tools history").records if row["tool"] == id]
    assert [row["outcome"] for row in rows[-2:]] == ["denied by a rule", "completed"]
