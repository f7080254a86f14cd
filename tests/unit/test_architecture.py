"""The layers of the package hold: who may import whom, what an import may load, how long a file may be."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "opencode_jupyter"
NAME = PACKAGE.name

ALLOWED: dict[str, tuple[str, ...]] = {
    "core": ("core",),
    "text": ("text", "core.errors", "core.atomic", "core.atomic_many"),
    "runtime": ("runtime", "core"),
    "tools": ("tools", "core", "text", "runtime"),
    "agent": ("agent", "core", "tools", "text"),
    "batch": ("batch", "agent", "core", "tools", "text"),
    "mcp": ("mcp", "core", "tools", "text", "runtime"),
    "javascript": ("javascript", "core", "tools", "runtime"),
    "mcp_server": ("mcp_server", "core", "text", "mcp.configuration", "mcp.errors", "__version__"),
    "adapters": ("adapters", "core", "mcp"),
    "sources": ("sources", "core", "mcp", "javascript"),
    "jupyter": ("jupyter", "core", "tools", "text", "agent", "mcp", "runtime", "sources"),
}
"""What each layer may import of ours."""
LAZY = {
    ("core.workspace", "tools"),
    ("core.workspace", "sources"),
    ("core.workspace", "adapters"),
    ("core.workspace", "agent"),
    ("core.workspace", "batch"),
    ("agent.many", "batch"),
    ("core.registry", "adapters"),
    ("core.sessions", "agent"),
    ("core.trust", "agent"),
    ("mcp.sampling", "agent"),
}
"""Allowed inside a function only: which tools there are, and places that give some, when a workspace opens;
other libraries' tools, when one is given or wanted; the model loop, when a model is prompted, and its models, when one
is lent to an MCP server."""
HEAVY = (
    "IPython",
    "ipywidgets",
    "anywidget",
    "ipykernel",
    "pandas",
    "numpy",
    "langchain_core",
    "pydantic_ai",
    "mcp",
    "openai",
    "anthropic",
    "httpx2",
    "distributed",
    "dask",
    "cloudpickle",
    "matplotlib",
)
"""What importing the package must not load."""
LONGEST = 500
"""Lines a file may have."""


def imports(tree: ast.Module, module: str, is_package: bool) -> Iterator[tuple[str, int, bool]]:
    """Every module of ours that is imported: its dotted name below the package, line, whether at the top level."""
    checking = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and ast.unparse(branch.test).endswith("TYPE_CHECKING")
        for statement in branch.body
        for node in ast.walk(statement)
    }
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for node in ast.walk(function)
    }
    here = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(tree):
        if id(node) in checking:
            continue  # names for the type checker alone are no dependency
        targets: list[str] = []
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = [NAME, *here][: len(here) + 2 - node.level] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            targets = [f"{source}.{alias.name}" for alias in node.names]
        for target in targets:
            if target == NAME or target.startswith(NAME + "."):
                yield target[len(NAME) + 1 :], node.lineno, id(node) not in inside


def violations(source: str, module: str, is_package: bool = False) -> list[str]:
    """The imports of `module` that its layer does not allow."""
    layer = module.split(".")[0]
    if layer not in ALLOWED:
        return []
    found = []
    for target, line, top in imports(ast.parse(source), module, is_package):
        if any(target == name or target.startswith(name + ".") for name in ALLOWED[layer]):
            continue
        if not top and (module, target.split(".")[0]) in LAZY:
            continue
        found.append(f"{module}:{line} imports {target or 'the package itself'}")
    return found


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def test_one_direction() -> None:
    wrong = []
    for path in modules():
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        wrong += violations(path.read_text(), ".".join(parts[:-1] if is_package else parts), is_package)
    assert wrong == []


def test_every_folder_has_a_layer() -> None:
    folders = {p.parent.name for p in PACKAGE.glob("*/__init__.py")}
    assert folders <= set(ALLOWED), "say in ALLOWED what the new folder may import"


@pytest.mark.parametrize(
    ("module", "source", "count"),
    [
        ("core.call", "from ..tools import bash", 1),
        ("core.call", "from .. import jupyter", 1),
        ("core.call", "import opencode_jupyter.jupyter.card", 1),
        ("core.call", "def f():\n    from ..tools import builtin_tools", 1),
        ("core.call", "from .state import ToolPart\nfrom . import ids\nimport json", 0),
        ("core.workspace", "def f():\n    from ..tools import builtin_tools", 0),
        ("core.workspace", "from ..tools import builtin_tools", 1),
        ("core.config.load", "from ..errors import ConfigError\nfrom ...text import diff", 1),
        ("text.diff", "from ..core.errors import ToolError", 0),
        ("text.diff", "from ..core.tool import Tool", 1),
        ("tools.bash", "from ..core import ids\nfrom ..text.diff import x\nfrom ._paths import y", 0),
        ("tools.shell.parse", "from ...jupyter import card", 1),
        ("agent.loop", "from opencode_jupyter.jupyter import card", 1),
        ("agent.loop", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..jupyter import card", 0),
    ],
)
def test_the_walk_sees_what_it_should(module: str, source: str, count: int) -> None:
    assert len(violations(source, module)) == count


@pytest.mark.parametrize("target", [NAME, f"{NAME}.core.workspace", f"{NAME}.tools"])
def test_importing_loads_nothing_heavy(target: str) -> None:
    public = "Workspace, Tool, ToolContext, ToolResult, Attachment, tool" if target == NAME else "__name__"
    code = f"import sys\nfrom {target} import {public}\nprint([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr


def test_files_are_short() -> None:
    folders = [PACKAGE, ROOT / "tests", ROOT / "bench", ROOT / "labextension" / "src"]
    files = [p for folder in folders for kind in ("*.py", "*.ts") for p in folder.rglob(kind)]
    assert len(files) > 50
    long = {str(p.relative_to(ROOT)): n for p in files if (n := len(p.read_text().splitlines())) > LONGEST}
    assert long == {}
