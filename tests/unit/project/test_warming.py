"""What the first calls need is imported in the background; what only ``%%agent`` needs where a model is configured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import opencode_jupyter
from opencode_jupyter.tools import builtin_tools

PACKAGE = Path(opencode_jupyter.__file__).parent

SCRIPT = """
import sys, time
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "opencode_jupyter")
SLOW = ("opencode_jupyter.agent", "opencode_jupyter.core.call", "opencode_jupyter.jupyter.cards", "anyio", "asyncio")
assert not [name for name in sys.modules if name.startswith(SLOW)], "load_ext itself stays quick"
from opencode_jupyter.jupyter.extension_state import find_state

find_state(shell)._timer.join()
print("httpx2" in sys.modules, "opencode_jupyter.agent.loop" in sys.modules)
shell.run_line_magic("unload_ext", "opencode_jupyter")
"""


FIRST_CALL = """
import sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "opencode_jupyter")
from opencode_jupyter.jupyter.extension_state import find_state

warm, line = sys.argv[1:]
timer = find_state(shell)._timer
timer.join() if warm else timer.cancel()
before = set(sys.modules)
shell.run_line_magic("tool", line + " --quiet")
print("imported:", *sorted(set(sys.modules) - before))
shell.run_line_magic("unload_ext", "opencode_jupyter")
"""
NOT_NEEDED = (
    "numpy",
    "pandas",
    "mcp",
    "anywidget",
    "ipywidgets",
    "httpx2",
    "nbformat",
    "tree_sitter",
    "matplotlib",
    "difflib",
)


@pytest.mark.parametrize("line", ["read a.txt", "bash true"])
def test_the_first_call_imports_nothing_more_once_the_background_has_warmed_up(tmp_path: Path, line: str) -> None:
    ours = [name for name in first_call(tmp_path, "warm", line) if name.startswith(("opencode_jupyter", "tree_sitter"))]
    assert ours == []


NOT_OF_THE_FIRST_CALL = (
    *(f"jupyter.{name}" for name in ("panel.calls", "panel.rules", "panel.tools", "spill")),
    *(f"jupyter.{name}" for name in ("magics.agent_run", "cards.widget")),
    *(f"jupyter.tools.{name}" for name in ("python", "inspect", "describe", "capture", "interrupts")),
    *(f"core.{name}" for name in ("function_tool", "atomic", "messages", "streaming")),
    *(f"core.{name}" for name in ("question_request", "result_values", "value_tables", "schema_validation")),
    *(f"core.config.{name}" for name in ("parse", "save", "frontmatter", "restrictions")),
    *("core.project_rules", "mcp.connection"),
    *(
        f"sources.{name}"
        for name in ("tool_file_loader", "python_modules", "source_code", "plugin_loader", "plugin_input")
    ),
    *("tools.shell", "tools.web", "text.patch", "text.diff"),
)
"""Of our package: what answers pages, asks questions, undoes changes, saves rules, reads config files and tables of
values, loads plugins, reaches servers, and what other tools need."""


def test_every_module_that_a_first_call_must_not_import_exists() -> None:
    paths = [PACKAGE.joinpath(*name.split(".")) for name in NOT_OF_THE_FIRST_CALL]
    assert [path for path in paths if not path.is_dir() and not path.with_suffix(".py").exists()] == []


@pytest.mark.parametrize("line", ["read a.txt", "list ."])
def test_the_first_call_imports_only_what_it_needs(tmp_path: Path, line: str) -> None:
    imported = first_call(tmp_path, "", line)
    tool_modules = {name.removeprefix("opencode_jupyter.tools.") for name in imported}
    assert tool_modules & {*builtin_tools()} == {line.split()[0]}
    assert [name for name in imported if name.split(".")[0] in NOT_NEEDED] == []
    unneeded = tuple(f"opencode_jupyter.{name}." for name in NOT_OF_THE_FIRST_CALL)
    assert [name for name in imported if f"{name}.".startswith(unneeded)] == []


def first_call(folder: Path, *arguments: str) -> list[str]:
    """The modules that the first call of a shell imports."""
    (folder / "a.txt").write_text("x")
    process = run(folder, FIRST_CALL, *arguments)
    [line] = [line for line in process.stdout.splitlines() if line.startswith("imported:")] or [""]
    assert line, process.stdout + process.stderr
    return line.split()[1:]


def run(folder: Path, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a Python of its own."""
    folders = {name: str(folder / name) for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "IPYTHONDIR")}
    paths = os.pathsep.join([str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=folder,
        env={**os.environ, **folders, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(("config", "expected"), [({"model": "ollama/x"}, "True True"), ({}, "False False")])
def test_the_model_loop_is_loaded_where_a_model_is_named(tmp_path: Path, config: dict[str, str], expected: str) -> None:
    (tmp_path / "opencode.json").write_text(json.dumps(config))
    process = run(tmp_path, SCRIPT)
    assert process.stdout.split() == expected.split(), process.stdout + process.stderr
