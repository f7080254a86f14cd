"""Five hundred tools: what Tab, ``%load_ext`` and the list for a model take then.

In a process of its own with a home of its own: once the tools are registered by a cell, once they stand in files of the
user's config folder, beside a project that configures an MCP server.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from ._measure import Options, Row

COUNT = 500
TAB_MS, LOAD_MS, TOOLS_MS = 50, 150, 100

_TOOL = '''
@tool
async def many_{number}(path: str, count_{number}: int = 1, names: list[str] | None = None) -> str:
    """Tool {number}.

    Args:
        path: Which file.
    """
    return path
'''

_SHARED = """
import asyncio, json, statistics, sys, time
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()

def spent(work):
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000

def tab(line):
    with provisionalcompleter():
        return [completion.text for completion in shell.Completer.completions(line, len(line))]

load = spent(lambda: shell.run_line_magic("load_ext", "opencode_jupyter"))
from opencode_jupyter.jupyter.extension_state import find_state
notebook = find_state(shell).notebook
"""

_REGISTERED = """
shell.run_cell("from opencode_jupyter import tool\\n" + open({tools!r}).read())
assert "many_7" in tab("%tool ")
tabs = [spent(lambda: tab("%tool ")) for _ in range(15)]
arguments = [spent(lambda: tab("%tool many_7 ")) for _ in range(15)]
assert "count_7=" in tab("%tool many_7 ")

def model_tools():
    work = notebook.workspace.registry.tools("anthropic:claude-sonnet-4-5", "build")
    return [tool.parameters for tool in notebook.engine.submit(work).result()]

assert len(model_tools()) > {count}
models = [spent(model_tools) for _ in range(15)]
from pydantic import TypeAdapter
kinds = [entry.static.definition.parameters for entry in notebook.workspace.registry.offered()
         if entry.static is not None and entry.id.startswith("many_")]
peer = min(spent(lambda: [kind.model_json_schema() for kind in kinds]) for _ in range(3))
print("@" + json.dumps([min(tabs), min(arguments), min(models), peer]))
"""

_FILES = """
time.sleep(1)  # a person writes that line after the cell has run; until then the background loads modules
assert not any(name.startswith("many_") for name in notebook.workspace.registry.names()), "no file was loaded yet"
first = spent(lambda: tab("%tool "))
start = time.perf_counter()
while "many_7" not in notebook.workspace.registry.names():
    time.sleep(0.01)
    assert time.perf_counter() - start < 120
assert "many_7" in tab("%tool ")
tabs = [spent(lambda: tab("%tool ")) for _ in range(15)]
print("@" + json.dumps([load, first, min(tabs)]))
"""


def run(options: Options) -> list[Row]:
    """Registered ones, then those of files."""
    registered = options.folder / "registered"
    tools = options.folder / "tools.py"
    tools.write_text("".join(_TOOL.format(number=number) for number in range(COUNT)))
    code = _SHARED + _REGISTERED.format(tools=str(tools), count=COUNT)
    tab, arguments, models, peer = _in_process(code, registered)
    files = options.folder / "files"
    folder = files / "home" / ".config" / "opencode" / "tool"
    folder.mkdir(parents=True)
    for number in range(COUNT):
        name = f"many_{number}"
        (folder / f"{name}.py").write_text("from opencode_jupyter import tool\n" + _TOOL.format(number=number))
    project = files / "project"
    project.mkdir()
    server = {"type": "local", "command": [sys.executable, "-c", "import time; time.sleep(600)"]}
    (project / "opencode.json").write_text(json.dumps({"mcp": {"slow": server}}))
    load, first, later = map(min, zip(*(_in_process(_SHARED + _FILES, files) for _ in range(3)), strict=True))
    return [
        _row(f"%tool <Tab>, {COUNT} registered tools", tab, TAB_MS),
        _row(f"%tool NAME <Tab>, {COUNT} registered tools", arguments, TAB_MS),
        Row(
            f"{COUNT} tools with schemas for a model",
            f"{models:.0f} ms",
            f"pydantic's schemas alone, made anew: {peer:.0f} ms",
            models / peer,
            f"<= {TOOLS_MS} ms",
            models <= TOOLS_MS,
        ),
        _row(f"%load_ext beside {COUNT} tool files and an MCP server", load, LOAD_MS),
        _row(f"the first %tool <Tab> beside {COUNT} tool files, a second after %load_ext", first, TAB_MS),
        _row(f"%tool <Tab>, {COUNT} tool files loaded", later, TAB_MS),
    ]


def _row(what: str, ms: float, limit: float) -> Row:
    return Row(what, f"{ms:.0f} ms", "", None, f"<= {limit:.0f} ms", ms <= limit)


def _in_process(code: str, folder: Path) -> list[float]:
    home, project = folder / "home", folder / "project"
    for directory in (home, project):
        directory.mkdir(parents=True, exist_ok=True)
    apart = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "XDG_DATA_HOME": str(home / ".data")}
    package = str(Path(__file__).parents[1])
    process = subprocess.run(
        [sys.executable, "-c", code],
        cwd=project,
        check=False,
        env={**os.environ, **apart, "IPYTHONDIR": str(home / ".ipython"), "PYTHONPATH": package},
        capture_output=True,
        text=True,
    )
    results = [line for line in process.stdout.splitlines() if line.startswith("@")]
    if not results:
        raise RuntimeError(process.stderr[-2000:])
    numbers: list[float] = json.loads(results[0][1:])
    return numbers
