"""codesearch: Exa over a loopback server that speaks its protocol, and this project without a network."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter.core.errors import InvalidArgumentsError, PermissionDeniedError, ToolAbortedError, ToolError
from opencode_jupyter.core.result import ToolResult
from opencode_jupyter.workspace import Workspace
from tests.support.workspaces import OpenWorkspace

from ..support.site import Site
from .conftest import Approver

pytestmark = pytest.mark.anyio

CODE = '''\
import os

def spill(lines, place):
    """Save rows to a file on disk."""
    with open(place, "w") as sink:
        sink.writelines(lines)


class Basket:
    """Things to buy."""

    def total(self):
        """Work out what everything costs together."""
        return sum(item.price for item in self.items)
'''


@pytest.fixture
def exa(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    content = [{"type": "text", "text": "from the web"}]
    event = "event: message\ndata: " + json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"content": content}}) + "\n\n"
    with Site() as running:
        monkeypatch.setenv("OPENCODE_EXA_URL", f"{running.url}/mcp")
        running.serve("/mcp", event, "text/event-stream")
        yield running


@pytest.fixture
async def ws(open_workspace: OpenWorkspace, project: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    for name in ("EXA_API_KEY", "OPENCODE_ENABLE_EXA", "OPENCODE_EXPERIMENTAL", "OPENCODE_EXPERIMENTAL_EXA"):
        monkeypatch.delenv(name, raising=False)
    (project / "shop.py").write_text(CODE)
    return await open_workspace({})


async def search(ws: Workspace, query: str = "write lines to disk", **arguments: Any) -> ToolResult:
    return await ws.call("codesearch", {"query": query, **arguments}, session=ws.sessions.create())


# ------------------------------------------------------------------ where to look


async def test_without_a_key_the_project_is_searched(ws: Workspace, exa: Site, project: Path) -> None:
    result = await search(ws)
    assert exa.requests == []
    assert result.title == "Code search: write lines to disk"
    assert result.output.startswith('shop.py:3-6  function spill\n```\ndef spill(lines, place):\n    """Save rows')
    assert result.metadata["source"] == "project"
    assert result.metadata["files"] == 1
    first = (result.records or [])[0]
    assert {k: first[k] for k in ("path", "line", "end_line", "symbol", "kind")} == {
        "path": str(project / "shop.py"),
        "line": 3,
        "end_line": 6,
        "symbol": "spill",
        "kind": "function",
    }
    assert first["score"] > 0
    assert first["text"].startswith("def spill")


@pytest.mark.parametrize("switch", ["EXA_API_KEY", "OPENCODE_ENABLE_EXA"])
async def test_with_a_key_or_the_switch_exa_is_asked(
    open_workspace: OpenWorkspace, project: Path, exa: Site, monkeypatch: pytest.MonkeyPatch, switch: str
) -> None:
    monkeypatch.setenv(switch, "1")
    (project / "shop.py").write_text(CODE)
    ws = await open_workspace({})
    result = await search(ws, tokensNum=2000)
    assert (result.output, result.metadata) == ("from the web", {"truncated": False})
    [request] = exa.requests
    assert json.loads(request.body)["params"] == {
        "name": "get_code_context_exa",
        "arguments": {"query": "write lines to disk", "tokensNum": 2000},
    }
    assert (await search(ws, source="project")).output.startswith("shop.py:3-6")
    assert len(exa.requests) == 1


async def test_source_web_asks_exa_without_a_key(ws: Workspace, exa: Site) -> None:
    assert (await search(ws, source="web")).output == "from the web"
    assert json.loads(exa.requests[0].body)["params"]["arguments"]["tokensNum"] == 5000


async def test_an_unreachable_exa(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("OPENCODE_EXA_URL", f"http://127.0.0.1:{closed.getsockname()[1]}/mcp")
        with pytest.raises(ToolError, match=r"Code search error: .* can't be reached"):
            await search(ws, source="web")
        monkeypatch.setenv("EXA_API_KEY", "k")
        result = await search(ws)
    assert result.output.startswith("shop.py:3-6")
    assert "Exa can't be reached, so this project was searched instead" in result.output


async def test_errors_and_nothing_found_on_the_web(ws: Workspace, exa: Site) -> None:
    exa.serve("/mcp", "no", "text/plain", status=429)
    with pytest.raises(ToolError, match=r"^Code search error \(429\): no$"):
        await search(ws, source="web")
    exa.serve("/mcp", 'data: {"jsonrpc":"2.0","id":1,"result":{"content":[]}}\n\n', "text/event-stream")
    assert (await search(ws, source="web")).output.startswith("No code snippets or documentation found.")


# ------------------------------------------------------------------ asks and arguments


async def test_the_ask(workspace: Workspace, approver: Approver, project: Path) -> None:
    await workspace.call("codesearch", {"query": "save rows", "tokensNum": 1000})
    [ask] = approver.named("codesearch")
    assert (ask.patterns, ask.always, ask.metadata) == (["save rows"], ["*"], {"query": "save rows", "tokensNum": 1000})
    assert [a.permission for a in approver.asks] == ["codesearch"]


async def test_a_denied_search_reads_nothing(open_workspace: OpenWorkspace, tmp_path: Path) -> None:
    config = {"permission": {"codesearch": "deny"}}
    ws = await open_workspace(config)
    with pytest.raises(PermissionDeniedError):
        await search(ws)
    assert not (tmp_path / "data" / "code-index").exists()


async def test_a_dry_run_makes_no_index(ws: Workspace, tmp_path: Path) -> None:
    [decision] = await ws.dry_run("codesearch", {"query": "x"})
    assert decision.permission == "codesearch"
    assert not (tmp_path / "data" / "code-index").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"query": 3},
        {"query": "x", "tokensNum": 999},
        {"query": "x", "tokensNum": 50_001},
        {"query": "x", "source": "y"},
    ],
)
async def test_bad_arguments(ws: Workspace, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentsError):
        await ws.call("codesearch", arguments)


async def test_an_empty_query(ws: Workspace) -> None:
    with pytest.raises(ToolError, match="describe what the code does"):
        await search(ws, "  ")


# ------------------------------------------------------------------ what is shown


async def test_nothing_found(ws: Workspace) -> None:
    result = await search(ws, "zzzz")
    assert result.output.startswith("No code found in this project's 1 files.")
    assert result.records == []


async def test_files_that_may_not_be_read_are_not_shown(open_workspace: OpenWorkspace, project: Path) -> None:
    for name in ("open.py", "secret/a.py", "asked/a.py"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("def zebra():\n    pass\n")
    rules = {"permission": {"read": {"*": "allow", "secret/*": "deny", "asked/*": "ask"}}}
    ws = await open_workspace(rules)
    result = await search(ws, "zebra")
    assert [os.path.relpath(r["path"], project) for r in result.records or [] if r["symbol"]] == ["open.py"]
    assert "secret" not in result.output and "asked/" not in result.output
    assert "are not shown" in result.output


async def test_the_budget_of_tokens(ws: Workspace, project: Path) -> None:
    for i in range(30):
        body = "".join(f"    zebra_{n} = {n}  # {'-' * 60}\n" for n in range(100))
        (project / f"m{i}.py").write_text(f'def zebra{i}():\n    """A zebra."""\n{body}')
    small = await search(ws, "zebra", tokensNum=1000)
    assert 1500 < len(small.output) <= 4000
    assert "more lines)" in small.output and "a larger tokensNum shows them" in small.output
    large = await search(ws, "zebra", tokensNum=10_000)
    assert len(small.output) < len(large.output) <= 40_000
    assert large.output.count("\n```") == 2 * large.output.count("  function zebra")


async def test_code_is_shown_as_it_is_now(ws: Workspace, project: Path) -> None:
    assert "writelines" in (await search(ws)).output
    (project / "shop.py").write_text("# new\n# lines\n" + CODE.replace("writelines(lines)", "write(''.join(lines))"))
    result = await search(ws)
    assert result.output.startswith("shop.py:5-8")
    assert "writelines" not in result.output and "write(''.join(lines))" in result.output


async def test_paths_are_those_of_the_sessions_folder(open_workspace: OpenWorkspace, project: Path) -> None:
    (project / "shop.py").write_text(CODE)
    (project / "sub").mkdir()
    ws = await open_workspace({}, directory=project / "sub")
    result = await search(ws)
    assert result.output.startswith("../shop.py:3-6")
    name = result.output.split(":")[0]
    assert "def spill" in (await ws.call("read", {"filePath": name})).output


async def test_a_notebooks_cell_is_shown_as_code(ws: Workspace, project: Path) -> None:
    source = ["# Load the measurements\n", "frame = pandas.read_csv('m.csv')\n", 'print("zebra\\n")']
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": source}
    (project / "a.ipynb").write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    result = await search(ws, "zebra measurements")
    assert result.output.startswith("a.ipynb:1-1  cell cell 1\n```\n# Load the measurements\nframe = ")


async def test_progress_is_told(ws: Workspace, project: Path) -> None:
    for i in range(100):
        (project / f"m{i}.py").write_text(f"def handler{i}(): pass\n")
    reports: list[Any] = []

    def note(part: Any) -> None:
        metadata = getattr(part.state, "metadata", None)
        if metadata and "progress" in metadata:
            reports.append(metadata["progress"])

    await ws.call("codesearch", {"query": "handler"}, on_update=note)
    assert reports
    assert reports[0]["total"] == 101
    assert "files" in reports[0]["message"]


async def test_a_stopped_search_can_be_made_again(ws: Workspace, project: Path) -> None:
    for i in range(800):
        (project / f"m{i}.py").write_text(f"def handler{i}(): pass\n" * 20)
    call = ws.start("codesearch", {"query": "handler799"})
    call.on_update = lambda part: call.abort() if "progress" in (getattr(part.state, "metadata", None) or {}) else None
    with pytest.raises(ToolAbortedError):
        await call.run()
    assert (await search(ws, "handler799")).output.startswith("m799.py:")
