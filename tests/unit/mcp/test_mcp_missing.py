"""Without the MCP SDK: each use of MCP names the line that installs it, and everything else works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

INSTALL = 'pip install "opencode-jupyter[mcp]"'
WITHOUT_SDK = """
import sys
from importlib.abc import MetaPathFinder

class Missing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("mcp", "mcp_types"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    paths = [str(Path(__file__).parents[3]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_SDK + code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "XDG_DATA_HOME": str(folder / "data")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_configured_server_is_unavailable_and_other_calls_work(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    code = """
import asyncio
from opencode_jupyter import Workspace
from opencode_jupyter.mcp.manager import McpServers
async def main():
    config = {"mcp": {"clock": {"type": "local", "command": ["clock"]}}}
    async with Workspace(".", config) as ws:
        print("hello" in (await ws.call("read", {"filePath": "a.txt"})).output)
        await ws.registry.tools()
        print(ws.service(McpServers).status()["clock"].error)
        for use in (lambda: ws.call("clock_now", {}), lambda: ws.service(McpServers).connect("clock"),
                    lambda: ws.service(McpServers).add("time", {"type": "local", "command": ["time"]})):
            try:
                await use()
            except Exception as error:
                print(type(error).__name__, error)
asyncio.run(main())
"""
    result = run(code, tmp_path)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "True"
    assert INSTALL in lines[1]
    assert result.stdout.count(INSTALL) >= 4, result.stdout


def test_the_magic_names_the_line(tmp_path: Path) -> None:
    code = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "opencode_jupyter")
try:
    shell.run_line_magic("mcp", "add time -- uvx mcp-server-time")
except BaseException as error:
    print(error)
"""
    result = run(code, tmp_path)
    assert INSTALL in result.stdout + result.stderr, result.stdout + result.stderr
    assert "ModuleNotFoundError" not in result.stdout + result.stderr


def test_our_server_names_the_line(tmp_path: Path) -> None:
    result = run("from opencode_jupyter.__main__ import main; sys.exit(main(['mcp']))", tmp_path)
    assert result.returncode == 2
    assert result.stderr.strip() == (
        f"opencode_jupyter mcp: MCP needs the MCP SDK 2, which is not installed: {INSTALL}"
    )
