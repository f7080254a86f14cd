"""Every tool has its entry in the list, its help, its completion, a place in the guide, a card in the gallery."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.agent.tools import agent_tools
from opencode_jupyter.core.config.models import PERMISSIONS
from opencode_jupyter.core.permission.modes import MODES
from opencode_jupyter.core.registry import ORDER
from opencode_jupyter.jupyter.magics.help import ToolHelp, tool_list
from opencode_jupyter.jupyter.magics.parameters import Spec
from opencode_jupyter.jupyter.magics.tool_line import parse
from opencode_jupyter.tools import builtin_tools
from tests.support.shells import Shell, shell

ROOT = Path(__file__).parents[3]
GALLERY = ROOT / "notebooks" / "06-gallery.ipynb"
TOOLS = (*builtin_tools(), *agent_tools())
IN_THE_NOTEBOOK = ("python", "inspect")
NEEDS_A_NETWORK = {"websearch"}
MAKES_OTHER_CALLS = ("batch", "task")
REQUESTS_NOTHING = ("batch",)
NEEDS_AN_AGENT = {"task", "plan_enter", "plan_exit"}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace(tmp_path_factory.mktemp("project"), store=False, data_dir=tmp_path_factory.mktemp("data")) as ws:
        yield ws


@pytest.fixture(scope="module")
def ip(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with shell(tmp_path_factory.mktemp("shell")) as instance:
        yield instance


def test_opencodes_tools_are_there(workspace: Workspace) -> None:
    assert set(ORDER) <= set(workspace.registry.names())


@pytest.mark.parametrize("name", TOOLS)
def test_list_and_help(workspace: Workspace, name: str) -> None:
    rows = [row for row in tool_list(workspace).records if row["tool"] == name]
    if name == "invalid":  # it answers malformed calls of a model; nobody calls it
        assert rows == []
    else:
        assert rows[0]["now"] == ("deny" if name == "plan_exit" else "allow")  # the build agent has no plan to leave
        assert rows[0]["description"] and rows[0]["group"] in ("files", "search", "run", "web", "agent", "notebook")
    tool = workspace.registry.get(name)
    assert tool is not None
    text = repr(ToolHelp(Spec(tool)))
    assert f"%tool {name} [options]" in text
    for field in Spec(tool).fields:
        assert field.description, f"{name}.{field.name} says nothing of itself"
        assert field.name in text


@pytest.mark.parametrize("name", [*TOOLS, *IN_THE_NOTEBOOK])
def test_completion(ip: Shell, name: str) -> None:
    assert f"%tool {name}" in ip.complete(f"%tool {name[:2]}")


@pytest.mark.parametrize("name", [*TOOLS, *IN_THE_NOTEBOOK])
def test_it_declares_what_a_call_does(ip: Shell, name: str) -> None:
    tool = ip.notebook.workspace.registry.get(name)
    assert tool is not None
    assert tool.manifest.effect
    assert tool.permission in {name, *PERMISSIONS} or name in REQUESTS_NOTHING
    if tool.manifest.effect in ("writes", "acts") and name not in MAKES_OTHER_CALLS:
        assert (tool.permission, "deny") in MODES["plan"].entries
    if tool.manifest.example:
        parse(tool.manifest.example.removeprefix("%tool"), None, ip.notebook.workspace.registry, {})


@pytest.mark.parametrize("name", [*TOOLS, *IN_THE_NOTEBOOK])
def test_the_guide_and_the_gallery_show_it(name: str) -> None:
    pages = (*ROOT.glob("docs/*.md"), *ROOT.glob("docs/how-to/*.md"))
    guide = "".join(path.read_text() for path in pages if not path.name.startswith("architecture"))
    assert re.search(rf"\b{name}\b", guide)
    if name in NEEDS_A_NETWORK | NEEDS_AN_AGENT:
        return
    cells = json.loads(GALLERY.read_text())["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert any(re.search(rf"%tool (?:-\S+ (?:\d+ )?)*{name}\b", source) for source in sources)
