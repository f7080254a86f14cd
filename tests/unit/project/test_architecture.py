"""Which way imports go, what an import may load, how long a file may be."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Collection
from graphlib import TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "opencode_jupyter"
NAME = PACKAGE.name

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


def test_imports_go_down_only() -> None:
    """The contracts are in pyproject.toml, under ``tool.importlinter``; type-checking imports count."""
    program = str(Path(sys.executable).parent / "lint-imports")
    process = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout


def test_modules_import_each_other_without_circles() -> None:
    """Else a thread that imports one sees it half initialized while another thread imports the next."""
    order = TopologicalSorter(imports_of_package())
    order.prepare()  # raises CycleError, which names the modules


def test_type_imports_of_core_join_a_dozen_modules_at_most() -> None:
    """A call, its context, its workspace and what they are made of know each other; nothing else does."""
    imports = {name: set(below) for name, below in imports_of_package(typing=True).items() if ".core." in name}
    reached = {name: {name, *below} & imports.keys() for name, below in imports.items()}
    while (wider := {name: set().union(*map(reached.get, below)) for name, below in reached.items()}) != reached:
        reached = wider
    circles = {name: {module for module in below if name in reached[module]} for name, below in reached.items()}
    assert f"{NAME}.core.host" in circles[f"{NAME}.core.call"]
    assert [sorted(circle) for circle in circles.values() if len(circle) > 12] == []


def imports_of_package(*, typing: bool = False) -> dict[str, list[str]]:
    """The modules of the package by what each imports while it is imported itself, or with those for type checkers."""
    paths = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in PACKAGE.rglob("*.py")}
    paths = {name.removesuffix(".__init__"): path for name, path in paths.items()}
    return {name: sorted(imports_of(name, path, paths, typing)) for name, path in paths.items()}


def imports_of(name: str, path: Path, known: Collection[str], typing: bool) -> set[str]:
    package = name if path.stem == "__init__" else name.rpartition(".")[0]
    modules: set[str] = set()
    nodes: list[ast.AST] = [ast.parse(path.read_text())]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.ImportFrom):
            module = resolve_name("." * node.level + (node.module or ""), package)
            modules |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            nodes += [*node.orelse, *(node.body if typing else ())]
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            nodes += ast.iter_child_nodes(node)
    return (modules & set(known)) - {name}


def test_core_has_no_import_cycle_at_run_time() -> None:
    graph = grimp.build_graph(NAME, exclude_type_checking_imports=True, cache_dir=None)
    core = {name for name in graph.modules if name.startswith(f"{NAME}.core.")}
    imports = [
        (module, target)
        for module in core
        for target in graph.find_modules_directly_imported_by(module)
        if target in core
    ]
    assert len(imports) > 100
    assert [pair for pair in imports if graph.chain_exists(importer=pair[1], imported=pair[0])] == []


@pytest.mark.parametrize("target", [NAME, f"{NAME}.core.host", f"{NAME}.tools"])
def test_importing_loads_nothing_heavy(target: str) -> None:
    public = "Workspace, Tool, ToolContext, ToolResult, Attachment, tool" if target == NAME else "__name__"
    code = f"import sys\nfrom {target} import {public}\nprint([m for m in {HEAVY!r} if m in sys.modules])"
    process = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert process.stdout.strip() == "[]", process.stderr


def test_files_are_short() -> None:
    folders = [PACKAGE, ROOT / "tests", ROOT / "bench", ROOT / "labextension" / "src"]
    generated = ROOT / "labextension" / "src" / "card" / "contract.ts"
    files = [p for folder in folders for kind in ("*.py", "*.ts") for p in folder.rglob(kind) if p != generated]
    assert len(files) > 50
    long = {str(p.relative_to(ROOT)): n for p in files if (n := len(p.read_text().splitlines())) > LONGEST}
    assert long == {}
