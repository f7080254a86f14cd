"""The lsp tool against a server that speaks the real protocol and misbehaves as it is told."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.core.errors import PermissionDeniedError, ToolError
from opencode_jupyter.core.result import ToolResult
from opencode_jupyter.tools.language_servers import json_rpc
from opencode_jupyter.tools.language_servers.json_rpc import ServerFailedError
from opencode_jupyter.tools.language_servers.service import LanguageServers

pytestmark = pytest.mark.anyio

SCRIPT = Path(__file__).parents[1] / "support" / "language_server.py"
TEXT = "def one(x)\n  return two(x)\ndef two(y)\n  é🙂 one(two(y)) BUG\n"
Open = Callable[..., Any]


def entry(*, name: str = "toy", **options: Any) -> dict[str, Any]:
    """A config's entry for the server of these tests."""
    command = [sys.executable, "-S", str(SCRIPT), json.dumps(options)]
    return {name: {"command": command, "extensions": [".toy"]}}


@pytest.fixture
def opened(project: Path, tmp_path: Path) -> Open:
    """Opens a workspace whose ``.toy`` files are served by the script."""
    (project / "a.toy").write_text(TEXT)
    (tmp_path / "seen").mkdir()

    @asynccontextmanager
    async def make(lsp: Any = None, *, timeout: float = 10, **options: Any) -> AsyncIterator[Workspace]:
        config = {
            "permission": {"*": "allow"},
            "experimental": {"lsp_timeout": timeout * 1000, "sandbox": {"writable": [str(tmp_path / "seen")]}},
            "lsp": entry(log=str(tmp_path / "seen" / "log"), **options) if lsp is None else lsp,
        }
        async with Workspace(project, config, tmp_path / "data", store=False) as ws:
            yield ws

    return make


@pytest.fixture
def log(tmp_path: Path) -> Callable[[], list[dict[str, Any]]]:
    """What the server was sent."""
    return lambda: [json.loads(line) for line in (tmp_path / "seen" / "log").read_text().splitlines()]


async def ask(ws: Workspace, operation: str = "goToDefinition", line: int = 2, character: int = 10) -> ToolResult:
    where = {"filePath": "a.toy", "line": line, "character": character}
    return await ws.call("lsp", {"operation": operation, **where})


def span(line: int, start: int, end: int) -> dict[str, Any]:
    return {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}


def alive(text: str) -> list[int]:
    """Processes with a text in their command."""
    pids = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path("/proc", name, "cmdline").read_bytes()
        except OSError:
            continue
        if text.encode() in words.replace(b"\0", b" "):
            pids.append(int(name))
    return pids


async def has_ended(text: str, seconds: float = 2) -> bool:
    limit = time.monotonic() + seconds
    while alive(text) and time.monotonic() < limit:
        await anyio.sleep(0.02)
    return not alive(text)


async def test_a_server_that_counts_characters_in_its_own_way_is_refused(opened: Open) -> None:
    async with opened(encoding="utf-8") as ws:
        with pytest.raises(ToolError, match="counts characters in utf-8, which it was not offered"):
            await ask(ws, "hover", 4, 7)


@pytest.mark.parametrize("options", [{}, {"push": True}, {"dynamic": True}, {"noise": True}])
async def test_every_operation(opened: Open, project: Path, options: dict[str, Any]) -> None:
    uri = (project / "a.toy").as_uri()
    first, second = span(0, 4, 7), span(2, 4, 7)
    async with opened(**options) as ws:

        async def result(operation: str, line: int, character: int) -> Any:
            return (await ask(ws, operation, line, character)).metadata["result"]

        # é is one unit, 🙂 two: "one" stands at 6 in the fourth line
        assert await result("goToDefinition", 4, 7) == [{"uri": uri, "range": first}]
        assert await result("goToImplementation", 4, 11) == [{"uri": uri, "range": second}]
        assert await result("findReferences", 1, 5) == [{"uri": uri, "range": r} for r in (first, span(3, 6, 9))]
        assert (await result("hover", 4, 11))[0]["contents"][0] == "`two`"
        assert await result("hover", 4, 1) == [None]
        symbols = await result("documentSymbol", 1, 1)
        assert [(s["name"], s["selectionRange"]) for s in symbols] == [("one", first), ("two", second)]
        assert symbols[1]["range"]["end"] == {"line": 4, "character": 0}
        assert [s["name"] for s in await result("workspaceSymbol", 1, 1)] == ["one", "two"]  # kind 26 is omitted
        assert [i["name"] for i in await result("prepareCallHierarchy", 4, 7)] == ["one"]
        assert [(c["from"]["name"], c["fromRanges"]) for c in await result("incomingCalls", 4, 7)] == [("one", [first])]
        assert [c["to"]["name"] for c in await result("outgoingCalls", 4, 7)] == ["one"]
        assert await result("incomingCalls", 3, 1) == []


async def test_the_answers_text_title_metadata_and_table(opened: Open, project: Path) -> None:
    async with opened() as ws:
        answer = await ask(ws, "findReferences", 1, 5)
        nothing = await ask(ws, "goToDefinition", 3, 1)
        symbols = await ask(ws, "documentSymbol", 1, 1)
    assert answer.output == json.dumps(answer.metadata["result"], indent=2)
    assert answer.title == "findReferences a.toy:1:5"
    assert nothing.output == "No results found for goToDefinition"
    assert nothing.metadata["result"] == []
    path = str(project / "a.toy")
    assert answer.records == [{"path": path, "line": 1, "character": 5}, {"path": path, "line": 4, "character": 7}]
    row = {"path": path, "line": 1, "character": 5, "name": "one", "kind": "function", "container": None}
    assert symbols.records is not None
    assert symbols.records[0] == row


async def test_asks_and_refusals(project: Path, tmp_path: Path) -> None:
    asks: list[Any] = []

    def approve(request: Any) -> str:
        asks.append((request.permission, request.patterns, request.always, request.metadata))
        return "once"

    outside = tmp_path / "other" / "b.toy"
    outside.parent.mkdir()
    outside.write_text(TEXT)
    config = {"permission": {"*": "ask"}, "lsp": entry()}
    where = {"operation": "hover", "filePath": str(outside), "line": 1, "character": 5}
    async with Workspace(project, config, tmp_path / "data", approve, store=False) as ws:
        result = await ws.call("lsp", where)
    assert [a[0] for a in asks] == ["external_directory", "lsp"]
    assert asks[1][1:] == (["*"], ["*"], {})
    assert result.metadata["result"][0]["contents"][0] == "`one`"
    config = {"permission": {"lsp": "deny"}, "lsp": entry()}
    async with Workspace(project, config, tmp_path / "data", store=False) as ws:
        with pytest.raises(PermissionDeniedError):
            await ws.call("lsp", {**where, "filePath": "a.toy"})


@pytest.mark.parametrize(
    ("name", "line", "lsp", "message"),
    [
        ("gone.toy", 1, None, "File not found: "),
        ("a.toy", 9, None, "Line 9 is past the end of "),
        (".", 1, None, "Path is a directory"),
        ("plain.txt", 1, None, 'for this file type. .*"extensions": .".txt"'),
        ("x.ipynb", 1, None, "source files"),
        ("x.zig", 1, None, "zls"),
        ("a.toy", 1, False, '"lsp": false'),
        ("a.toy", 1, {"toy": {"command": "toy", "extensions": [".toy"]}}, "should be a list of texts"),
        (
            "a.toy",
            1,
            {"toy": {"command": ["no-such"], "extensions": [".toy"]}},
            "whose program no-such is not installed",
        ),
    ],
)
async def test_what_cannot_be_asked_says_why(
    opened: Open, project: Path, name: str, line: int, lsp: Any, message: str
) -> None:
    for other in ("plain.txt", "x.ipynb", "x.zig"):
        (project / other).write_text("x\n")
    async with opened(lsp) as ws:
        with pytest.raises(ToolError, match=message):
            await ws.call("lsp", {"operation": "hover", "filePath": name, "line": line, "character": 1})


async def test_a_server_that_dies_is_an_error_and_is_started_again(opened: Open, project: Path) -> None:
    async with opened(die="textDocument/references") as ws:
        assert (await ask(ws)).metadata["result"]
        with pytest.raises(ServerFailedError, match=r"toy ended unexpectedly.*the last words.*restarted"):
            await ask(ws, "findReferences")
        assert (await ask(ws)).metadata["result"]
        service = ws.service(LanguageServers)
        [client] = service.clients.values()
        os.kill(client.pid, 9)
        while client.alive:
            await anyio.sleep(0.01)
        assert (await ask(ws)).metadata["result"]  # killed between two calls: nobody notices


async def test_a_server_that_hangs_is_stopped_and_started_again(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_rpc, "CANCEL", 0.2)
    async with opened(hang="textDocument/references", timeout=0.4) as ws:
        with pytest.raises(ServerFailedError, match=r"did not answer textDocument/references within 0\.4 s"):
            await ask(ws, "findReferences")
        assert (await ask(ws)).metadata["result"]


async def test_a_slow_server_that_hears_a_cancel_is_kept(opened: Open) -> None:
    async with opened(late="textDocument/references", timeout=0.3) as ws:
        await ask(ws)
        [client] = ws.service(LanguageServers).clients.values()
        with pytest.raises(ServerFailedError, match="lsp_timeout"):
            await ask(ws, "findReferences")
        await ask(ws)
        assert [client] == [*ws.service(LanguageServers).clients.values()]


@pytest.mark.parametrize("method", ["initialize", "initialized", "textDocument/didOpen"])
async def test_a_server_that_does_not_come_up(opened: Open, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_rpc, "CANCEL", 0.1)
    for trouble in ("die", "hang"):
        async with opened(timeout=0.3, **{trouble: method}) as ws:
            with pytest.raises(ServerFailedError, match="toy"):
                await ask(ws)


async def test_an_error_of_the_server_counts_as_no_result_and_is_told(opened: Open) -> None:
    async with opened(fail="textDocument/hover") as ws:
        result = await ask(ws, "hover")
    assert result.output == (
        "No results found for hover\n\nThe language server toy answered with an error: it went wrong"
    )


async def test_what_a_server_cannot_do_is_told(opened: Open) -> None:
    async with opened(capabilities={"callHierarchyProvider": False, "implementationProvider": None}) as ws:
        for operation in ("incomingCalls", "outgoingCalls", "prepareCallHierarchy", "goToImplementation"):
            lacking = await ask(ws, operation, 3, 5)
            assert lacking.output.startswith(f"No results found for {operation}\n\n")
            assert f"toy does not offer {operation}" in lacking.output


async def test_two_servers_of_a_file_answer_together(opened: Open, tmp_path: Path) -> None:
    servers = {**entry(), **entry(name="other", padding=3), **entry(name="dead", die="initialize")}
    async with opened(servers) as ws:
        result = await ask(ws, "hover", 1, 5)
    assert [len(hover["contents"][1]["value"]) for hover in result.metadata["result"]] == [1, 3]
    assert "dead ended unexpectedly" in result.metadata["notes"][0]


async def test_files_changed_on_the_disk_are_shown_anew(opened: Open, project: Path, log: Any) -> None:
    async with opened(dynamic=True) as ws:
        await ask(ws, "documentSymbol")
        (project / "a.toy").write_text("\n" + TEXT)
        assert (await ask(ws, "goToDefinition", 3, 10)).records[0]["line"] == 4
        await ask(ws, "goToDefinition", 3, 10)
        (project / "b.toy").write_text("def three()\n")
        names = [s["name"] for s in (await ask(ws, "workspaceSymbol")).metadata["result"]]
        assert names == ["one", "two", "three"]
    methods = [m.get("method") for m in log()]
    assert methods.count("textDocument/didOpen") == 1
    assert methods.count("textDocument/didChange") == 1
    assert methods[-2:] == ["shutdown", "exit"]


async def test_a_change_whose_time_was_set_back_is_seen(opened: Open, project: Path) -> None:
    path = project / "a.toy"
    async with opened() as ws:
        await ask(ws)
        was = path.stat()
        path.write_text(TEXT.replace("two", "owt", 1).replace("def two", "def owt"))
        os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
        assert path.stat().st_size == was.st_size
        assert [s["name"] for s in (await ask(ws, "documentSymbol")).metadata["result"]] == ["one", "owt"]


@pytest.mark.parametrize("end", ["\r\n", "\r"])
async def test_lines_end_as_the_protocol_says(opened: Open, project: Path, end: str) -> None:
    (project / "a.toy").write_bytes(TEXT.replace("\n", end).encode())
    async with opened() as ws:
        if end == "\r\n":  # the script itself knows no lone CR
            assert (await ask(ws)).records[0]["line"] == 3
        with pytest.raises(ToolError, match=r"Line 6 is past the end of .*, which has 5 lines\."):
            await ask(ws, line=6)


async def test_odd_names(opened: Open, project: Path) -> None:
    name = "sp ace #1 %20 日本 🙂?.toy"
    (project / name).write_text(TEXT)
    async with opened() as ws:
        where = {"operation": "goToDefinition", "filePath": name, "line": 2, "character": 10}
        result = await ws.call("lsp", where)
    assert result.records == [{"path": str(project / name), "line": 3, "character": 5}]
    assert result.title == f"goToDefinition {name}:2:10"


async def test_the_servers_requests_are_answered(opened: Open, project: Path, log: Any) -> None:
    lsp = entry(asks=True, log=str(project.parent / "seen" / "log"))
    lsp["toy"]["initialization"] = {"mine": {"inner": 5}}
    async with opened(lsp) as ws:
        await ask(ws)
    sent = log()
    answers = {m["id"]: m for m in sent if "method" not in m}
    assert answers["s0"]["result"] == [5, {"mine": {"inner": 5}}]
    assert answers["s1"]["error"]["code"] == -32601
    assert answers["s2"]["result"][0]["uri"] == project.as_uri()
    assert answers["s3"] == {"jsonrpc": "2.0", "id": "s3", "result": None}
    assert sent[0]["params"]["initializationOptions"] == {"mine": {"inner": 5}}


async def test_a_big_answer_and_secrets(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    async with opened(padding=5_000_000) as ws:
        result = await ask(ws, "hover", 1, 5)
        [client] = ws.service(LanguageServers).clients.values()
        environment = Path("/proc", str(client.pid), "environ").read_bytes()
    assert len(result.metadata["result"][0]["contents"][1]["value"]) == 5_000_000
    assert b"OPENAI_API_KEY" not in environment
    assert b"PATH=" in environment


async def test_a_stopped_call_cancels_the_request(opened: Open, log: Any) -> None:
    async with opened(late="textDocument/references") as ws:
        await ask(ws)
        call = ws.start("lsp", {"operation": "findReferences", "filePath": "a.toy", "line": 1, "character": 5})
        running = asyncio.ensure_future(call.run())
        while not any(m.get("method") == "textDocument/references" for m in log()):
            await anyio.sleep(0.01)
        call.abort()
        with pytest.raises(ToolError):
            await running
        await ask(ws)
    assert any(m.get("method") == "$/cancelRequest" for m in log())


async def test_one_server_for_calls_at_once_and_from_any_loop(opened: Open, log: Any) -> None:
    async with opened() as ws:
        await asyncio.gather(*(ask(ws) for _ in range(8)))
        await anyio.to_thread.run_sync(lambda: asyncio.run(ask(ws)))
    assert [m.get("method") for m in log()].count("initialize") == 1


def test_calls_without_a_loop_share_a_server(project: Path, tmp_path: Path) -> None:
    (project / "a.toy").write_text(TEXT)
    (tmp_path / "seen").mkdir()
    experimental = {"sandbox": {"writable": [str(tmp_path / "seen")]}}
    config = {
        "permission": {"*": "allow"},
        "lsp": entry(log=str(tmp_path / "seen" / "log")),
        "experimental": experimental,
    }
    with Workspace(project, config, tmp_path / "data", store=False) as ws:
        for _ in range(3):
            ws.call_sync("lsp", {"operation": "hover", "filePath": "a.toy", "line": 1, "character": 5})
    methods = [json.loads(line).get("method") for line in (tmp_path / "seen" / "log").read_text().splitlines()]
    assert methods.count("initialize") == 1
    assert methods[-1] == "exit"


async def test_a_closed_workspace_leaves_nothing(opened: Open) -> None:
    marker = f"77.{os.getpid()}"
    async with opened(child=marker) as ws:
        await ask(ws)
        assert alive(f"sleep {marker}")
    assert await has_ended(f"sleep {marker}", 1)
    assert await has_ended(marker, 1)


KERNEL = """
import asyncio, json, sys
from opencode_jupyter import Workspace

async def main():
    folder, data, lsp = sys.argv[1:]
    ws = Workspace(folder, {"permission": {"*": "allow"}, "lsp": json.loads(lsp)}, data, store=False)
    await ws.call("lsp", {"operation": "hover", "filePath": "a.toy", "line": 1, "character": 5})
    print("ready", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


async def test_nothing_outlives_the_kernel(project: Path, tmp_path: Path) -> None:
    (project / "a.toy").write_text(TEXT)
    marker = f"88.{os.getpid()}"
    words = [str(project), str(tmp_path / "data"), json.dumps(entry(child=marker, hang="shutdown"))]
    kernel = subprocess.Popen([sys.executable, "-c", KERNEL, *words], stdout=subprocess.PIPE)
    assert kernel.stdout is not None
    assert kernel.stdout.readline() == b"ready\n"
    kernel.stdout.close()
    assert alive(f"sleep {marker}")
    kernel.kill()
    kernel.wait()
    assert await has_ended(marker)
