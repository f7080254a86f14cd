"""The site's reference has every public name, magic, tool, event, setting and error; ``make docs`` builds it."""

from __future__ import annotations

import importlib
import operator
import pkgutil
import pydoc
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import opencode_jupyter
from opencode_jupyter import ToolError, Workspace
from opencode_jupyter.agent.tools import agent_tools
from opencode_jupyter.core.config.models import PERMISSIONS
from opencode_jupyter.core.events import EVENTS
from opencode_jupyter.jupyter.magics import commands
from opencode_jupyter.tools import builtin_tools

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
ANSWERS_MALFORMED_CALLS = "invalid"


@pytest.fixture(scope="module")
def generated() -> dict[str, str]:
    """What the site has in place of each comment ``generated: NAME``."""
    sys.path.insert(0, str(ROOT))
    try:
        pages = importlib.import_module("docs.generate").PAGES
    finally:
        sys.path.remove(str(ROOT))
    names = re.findall(r"<!-- generated: (\w+) -->", "".join(page.read_text() for page in DOCS.glob("reference/*.md")))
    assert sorted(names) == sorted(pages)
    return {name: make() for name, make in pages.items()}


def headings(text: str) -> list[str]:
    return re.findall(r"^##+ (.+)$", text, re.MULTILINE)


def test_every_tool_has_its_parameters(generated: dict[str, str]) -> None:
    callable_tools = {*builtin_tools(), *agent_tools(), "python", "inspect"} - {ANSWERS_MALFORMED_CALLS}
    assert set(headings(generated["tools"])) >= callable_tools
    assert "`filePath`" in generated["tools"]


def test_every_subcommand_and_option_of_a_magic(generated: dict[str, str]) -> None:
    for magic in (commands.TOOLS, commands.PERMISSIONS, commands.SESSIONS, commands.MCP):
        for name in magic.by_name:
            line = magic.magic if name == commands.LIST else f"{magic.magic} {name}"
            assert f"| `{line}" in generated["magics"]
    for option in (*commands.TOOL_OPTIONS.all, *commands.AGENT_OPTIONS.all):
        assert f"| `{option.usage}` |" in generated["magics"]


def test_every_public_name_has_a_docstring(generated: dict[str, str]) -> None:
    names = [name for name in opencode_jupyter.__all__ if name != "__version__"]
    assert headings(generated["python"]) == names
    missing = [name for name in names if name != "Reply" and not getattr(opencode_jupyter, name).__doc__]
    assert missing == []


def test_every_name_below_the_package_has_a_docstring(generated: dict[str, str]) -> None:
    lines = re.findall(r"^\.\. auto\w+:: (\S+)$", generated["services"] + generated["modules"], re.MULTILINE)
    assert len(lines) > 60
    assert [name for name in lines if not pydoc.resolve(name)[0].__doc__] == []


def test_every_row_says_something(generated: dict[str, str]) -> None:
    rows = [row for text in generated.values() for row in re.findall(r"^\|.*\|$", text, re.MULTILINE)]
    assert [row for row in rows if re.search(r"\|\s*\|$", row)] == []


@pytest.mark.anyio
async def test_what_pages_read_of_a_workspace_is_there(workspace: Workspace) -> None:
    pages = [*DOCS.glob("*.md"), *DOCS.glob("how-to/*.md"), *DOCS.glob("reference/*.md"), ROOT / "CHANGELOG.md"]
    names = {name for page in pages for name in re.findall(r"\bws\.([a-z_]+(?:\.[a-z_]+)*)", page.read_text())}
    assert len(names) > 25
    missing = []
    for name in sorted(names):
        try:
            operator.attrgetter(name)(workspace)
        except AttributeError:
            missing.append(name)
    assert missing == []


def test_settings_go_down_into_objects(generated: dict[str, str]) -> None:
    keys = re.findall(r"^\| `([^`]+)`", generated["settings"], re.MULTILINE)
    assert {f"permission.{name}" for name in PERMISSIONS} <= set(keys)
    assert "`experimental.sandbox.limits.memory`" in generated["settings"]


def test_every_event() -> None:
    cells = re.findall(r"^\| (.+?) \|", (DOCS / "reference" / "events.md").read_text(), re.MULTILINE)
    names = {name for cell in cells for name in re.findall(r"`(.+?)`", cell)}
    assert names == set(EVENTS)


def test_every_error_has_a_code_and_a_section() -> None:
    for module in pkgutil.walk_packages(opencode_jupyter.__path__, "opencode_jupyter."):
        if not re.search(r"__main__|\.demos\.|\.javascript\.host", module.name):
            importlib.import_module(module.name)
    text = (DOCS / "errors.md").read_text()
    sections = dict(re.findall(r"^### (OJ-[a-z-]+)\n\n`(\w+)`", text, re.MULTILINE))
    assert len(sections) == len(re.findall(r"^### ", text, re.MULTILINE))
    assert sections == {kind.code: kind.__name__ for kind in (ToolError, *subclasses(ToolError))}


def subclasses(kind: type[ToolError]) -> Iterator[type[ToolError]]:
    for subclass in kind.__subclasses__():
        yield from subclasses(subclass)
        if subclass.__module__.startswith("opencode_jupyter.") and not subclass.__name__.startswith("_"):
            yield subclass


def test_an_error_of_somebody_else_has_the_code_of_its_base() -> None:
    class OwnError(ToolError):
        pass

    assert OwnError.code == "OJ-tool"


def test_every_page_is_in_the_contents() -> None:
    contents = (DOCS / "index.md").read_text()
    pages = [path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.glob("**/*.md")]
    assert len(pages) > 30
    assert [page for page in pages if page != "index" and not re.search(rf"^{page}$", contents, re.MULTILINE)] == []


def test_the_readme_names_the_two_commands() -> None:
    lines = (DOCS.parent / "README.md").read_text().splitlines()
    assert {"make lab", "make test"} <= {line.partition("#")[0].strip() for line in lines}
