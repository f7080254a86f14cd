"""MCP servers that misbehave: each fails by itself, in words, and the others live on."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.core.errors import ToolError, UnknownToolError
from opencode_jupyter.core.permission import Rule
from opencode_jupyter.mcp import McpServers, connection
from opencode_jupyter.mcp.errors import McpError

from ..support.mcp import local
from .conftest import Approver

pytestmark = pytest.mark.anyio
Opened = Callable[..., AbstractAsyncContextManager[Workspace]]


@pytest.fixture
def opened(project: Path, approver: Approver, tmp_path: Path) -> Opened:
    @asynccontextmanager
    async def open_(mcp: dict[str, Any], **more: Any) -> AsyncIterator[Workspace]:
        config = {"mcp": mcp, "permission": {"*": "allow"}, **more}
        async with Workspace(project, config, data_dir=tmp_path / "data", approve=approver) as ws:
            yield ws

    return open_


async def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        await asyncio.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z"


def processes_with(argument: str) -> list[int]:
    pids = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if argument.encode() in path.read_bytes().split(b"\0"):
                pids.append(int(path.parent.name))
    return pids


async def test_rubbish_on_stdout_is_logged_and_passed_over(opened: Opened) -> None:
    async with opened({"odd": local("odd.py", "rubbish")}) as ws:
        assert (await ws.call("odd_rubbish")).output == "after rubbish"
        log = ws.service(McpServers).logs("odd")
        assert "[stdout] starting up..." in log
        assert "[stdout] hello, I am no message" in log


async def test_prompts_that_cannot_be_listed_are_named_in_the_log(opened: Opened) -> None:
    async with opened({"odd": local("odd.py")}) as ws:
        servers = ws.service(McpServers)
        assert await servers.prompts() == {}
        assert "[client] its prompts could not be listed: Method not found" in servers.logs("odd")


async def test_a_message_that_is_too_large_ends_the_connection_which_the_next_call_opens_again(opened: Opened) -> None:
    async with opened({"odd": local("odd.py")}, experimental={"mcp_max_message_bytes": 100_000}) as ws:
        assert len((await ws.call("odd_large", {"size": 50_000})).output) >= 50_000
        other = asyncio.create_task(ws.call("odd_silent"))
        with pytest.raises(McpError, match=r"ended during the call \(it sent a message of more than the limit"):
            await ws.call("odd_large", {"size": 3_000_000})
        with pytest.raises(McpError, match="more than the limit"):
            await other
        assert (await ws.call("odd_echo", {"n": 2})).output == 'echo: {"n": 2}'


@pytest.mark.slow
async def test_a_hundred_megabytes_do_not_stall_the_loop(opened: Opened) -> None:
    async with opened({"odd": local("odd.py")}) as ws:
        await ws.call("odd_echo")
        beats: list[float] = []

        async def beat() -> None:
            while True:
                beats.append(time.monotonic())
                await asyncio.sleep(0.01)

        pulse = asyncio.create_task(beat())
        with pytest.raises(McpError, match=r"more than the limit of 16 MB"):
            await ws.call("odd_large", {"size": 100_000_000})
        pulse.cancel()
        longest = max(b - a for a, b in itertools.pairwise(beats))
        assert longest < (beats[-1] - beats[0]) / 2 + 0.2, "the loop stood still while the message came in"
        assert (await ws.call("odd_echo")).output == "echo: {}"


async def test_a_flood_of_messages_is_survived(opened: Opened) -> None:
    async with opened({"odd": local("odd.py")}) as ws:
        assert (await ws.call("odd_flood", {"size": 20_000})).output == "flooded"
        assert len(ws.service(McpServers).logs("odd")) <= 500


async def test_a_server_that_ends_in_a_call_fails_it_at_once_and_is_started_again(opened: Opened) -> None:
    async with opened({"odd": local("odd.py"), "well": local("odd.py")}) as ws:
        await asyncio.gather(ws.call("odd_echo"), ws.call("well_echo"))
        servers = ws.service(McpServers)
        first = servers.status()["odd"].pid
        waiting = asyncio.create_task(ws.call("odd_silent"))
        await asyncio.sleep(0)
        with pytest.raises(McpError, match=r"ended during the call \(exit code 3: I can't go on\)"):
            await ws.call("odd_die")
        with pytest.raises(McpError, match="ended"):
            await waiting
        assert (await ws.call("odd_echo")).output == "echo: {}"
        assert servers.status()["odd"].pid != first
        assert (await ws.call("well_echo")).output == "echo: {}"


async def test_a_killed_server_comes_back_at_the_next_listing(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "RETRY", 0.0)
    async with opened({"odd": local("odd.py")}) as ws:
        await ws.registry.ids()
        servers = ws.service(McpServers)
        first = servers.status()["odd"].pid
        os.kill(first, signal.SIGKILL)
        await until(lambda: servers.status()["odd"].state == "failed")
        assert servers.status()["odd"].error == "it ended: signal 9"
        assert "odd_echo" in await ws.registry.ids()
        assert servers.status()["odd"].pid not in (0, first)


async def test_a_server_that_ends_again_and_again_is_started_by_calls_alone(opened: Opened) -> None:
    async with opened({"odd": local("odd.py")}) as ws:
        for _ in range(3):
            with pytest.raises(McpError, match="ended during the call"):
                await ws.call("odd_die")
        servers = ws.service(McpServers)
        await until(lambda: servers.status()["odd"].state == "failed")
        assert "odd_echo" not in await ws.registry.ids()
        assert (await ws.call("odd_echo")).output == "echo: {}"


async def test_a_server_that_never_answers_is_given_up(opened: Opened) -> None:
    mcp = {"mute": local("odd.py", "mute", timeout=700), "odd": local("odd.py", timeout=20_000)}
    async with opened(mcp) as ws:
        assert "odd_echo" in await ws.registry.ids()
        status = ws.service(McpServers).status()["mute"]
        assert (status.state, status.error) == ("failed", "it did not answer within 0.7 s")
        with pytest.raises(UnknownToolError, match=r"mute_x can't be called: it did not answer within 0.7 s"):
            await ws.call("mute_x")
        assert ws.service(McpServers).needed("mute_x") == [], "tried this moment: not again at each look"


async def test_a_call_without_an_answer_times_out_and_leaves_the_session_usable(opened: Opened) -> None:
    async with opened({"odd": local("odd.py")}, experimental={"mcp_timeout": 300}) as ws:
        with pytest.raises(McpError, match=r"did not answer within 0\.3 s"):
            await ws.call("odd_silent")
        del ws.config.data["experimental"]  # a loaded machine may take longer than that for any answer
        assert (await ws.call("odd_echo")).output == "echo: {}"


async def test_why_a_server_is_not_there(opened: Opened) -> None:
    mcp = {
        "exit": local("odd.py", "exit"),
        "none": {"type": "local", "command": ["no-such-program-here"]},
        "unlisted": local("odd.py", "unlisted"),
        "off": local("odd.py", enabled=False),
    }
    async with opened(mcp) as ws:
        await ws.registry.ids()
        status = ws.service(McpServers).status()
        assert {name: entry.state for name, entry in status.items()} == {
            "exit": "failed",
            "none": "failed",
            "unlisted": "failed",
            "off": "disabled",
        }
        assert status["exit"].error == "it ended at its start (exit code 4: no config found)"
        assert "the command no-such-program-here was not found" in status["none"].error
        assert status["unlisted"].error == "Failed to get tools: no tools today"
        reasons = {entry.id: entry.reason for entry in ws.registry.unavailable()}
        assert reasons["exit_*"] == status["exit"].error
        assert "off_*" not in reasons
        with pytest.raises(UnknownToolError, match=r"no config found\) \[mcp: exit\]"):
            await ws.call("exit_anything")
        with pytest.raises(UnknownToolError, match="off is switched off; start it: %mcp connect off"):
            await ws.call("off_echo")


async def test_a_listing_that_goes_round_in_a_circle_ends(opened: Opened, caplog: pytest.LogCaptureFixture) -> None:
    async with opened({"odd": local("odd.py", "endless")}) as ws:
        ids = [id for id in await ws.registry.ids() if id.startswith("odd_")]
        assert ids == list(dict.fromkeys(ids))
        servers = ws.service(McpServers)
        assert servers.status()["odd"].tools == len(ids)
        warnings = [line for line in servers.logs("odd") if "more than once; the first counts" in line]
        assert len(warnings) == 1
        assert "echo" in warnings[0]
        assert not [log_record for log_record in caplog.records if log_record.levelname == "WARNING"]


async def test_changed_tools_are_listed_again_once_and_lose_what_was_allowed_for_the_session(
    opened: Opened, approver: Approver
) -> None:
    async with opened({"odd": local("odd.py")}, permission={"*": "ask"}) as ws:
        approver.reply = "always"
        await ws.call("odd_echo")
        await ws.call("odd_two")
        await ws.call("odd_echo")
        assert [a.permission for a in approver.asks] == ["odd_echo", "odd_two"]
        changes: list[Any] = []
        ws.bus.subscribe("mcp.tools.changed", changes.append)
        await ws.call("odd_rename")
        await until(lambda: ws.registry.get("odd_new") is not None)
        assert [event["properties"] for event in changes] == [{"server": "odd"}]
        approver.asks.clear()
        await ws.call("odd_two")
        await ws.call("odd_echo")
        assert [a.permission for a in approver.asks] == ["odd_echo"], "it describes itself otherwise now"
        assert any(isinstance(rule, Rule) for rule in ws.permissions.approved)


async def test_nothing_is_left_when_the_workspace_ends(opened: Opened) -> None:
    async with opened({f"odd{n}": local("odd.py") for n in range(3)}) as ws:
        await ws.registry.ids()
        servers = ws.service(McpServers)
        pids = [entry.pid for entry in servers.status().values()]
        assert all(pids)
        assert all(alive(pid) for pid in pids)
    await until(lambda: not any(alive(pid) for pid in pids))
    assert not any(thread.name == "opencode-mcp" for thread in threading.enumerate())


async def test_a_workspace_that_ends_does_not_wait_for_a_server_that_never_answers(
    opened: Opened, tmp_path: Path
) -> None:
    async with opened({"mute": local("odd.py", "mute", str(tmp_path)), "odd": local("odd.py")}) as ws:
        listing = asyncio.create_task(ws.registry.ids())
        servers = ws.service(McpServers)
        await until(lambda: servers.status()["odd"].state == "connected")
        waiting = asyncio.create_task(ws.call("odd_silent"))
        await until(lambda: bool(ws.calls))
        assert processes_with(str(tmp_path))
        began = time.monotonic()
    assert time.monotonic() - began < 20, "the server has 30 s to answer"
    with pytest.raises(ToolError):
        await waiting
    await asyncio.gather(listing, return_exceptions=True)
    await until(lambda: not processes_with(str(tmp_path)))


async def test_servers_end_with_a_kernel_that_is_killed(tmp_path: Path) -> None:
    entry = local("odd.py", str(tmp_path / "marker"))
    script = f"""
import asyncio, os, signal
from opencode_jupyter import Workspace
async def main():
    async with Workspace({str(tmp_path)!r}, {{"mcp": {{"odd": {entry!r}}}}}, data_dir={str(tmp_path / "data")!r}) as ws:
        assert (await ws.call("odd_echo")).output == "echo: {{}}"
        print("up", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "up\n"), done.stderr
    await until(lambda: not processes_with(str(tmp_path / "marker")))


async def test_a_listing_that_was_given_up_goes_on_for_the_next(opened: Opened) -> None:
    async with opened({"odd": local("odd.py", "0.5")}) as ws:
        first = asyncio.create_task(ws.registry.ids())
        await asyncio.sleep(0.2)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert (await ws.call("odd_echo")).output == "echo: {}"


async def test_servers_start_side_by_side(opened: Opened) -> None:
    slow = 1.5
    async with opened({f"odd{n}": local("odd.py", str(slow)) for n in range(6)}) as ws:
        began = time.monotonic()
        ids = await ws.registry.ids()
        took = time.monotonic() - began
        assert sum(id.endswith("_echo") for id in ids) == 6
        assert took < 6 * slow, "one after the other would take that long"


async def test_a_server_follows_the_workspace_into_another_folder(opened: Opened, project: Path) -> None:
    async with opened({"odd": local("odd.py")}) as ws:
        (project / "sub").mkdir()
        await ws.call("odd_echo")
        servers = ws.service(McpServers)
        first = servers.status()["odd"].pid
        assert Path(f"/proc/{first}/cwd").readlink() == project
        ws.change_directory(project / "sub")
        await ws.call("odd_echo")
        assert Path(f"/proc/{servers.status()['odd'].pid}/cwd").readlink() == project / "sub"
        assert not alive(first)


async def test_a_grant_does_not_outlive_the_description_it_was_given_for(
    opened: Opened, approver: Approver, tmp_path: Path
) -> None:
    description = tmp_path / "said"
    description.write_text("as it was")
    async with opened({"odd": local("odd.py", f"says={description}")}, permission={"*": "ask"}) as ws:
        approver.reply = "always"
        await ws.call("odd_echo")
        await ws.call("odd_echo")
        assert len(approver.named("odd_echo")) == 1
        description.write_text("another thing altogether")
        servers = ws.service(McpServers)
        os.kill(servers.status()["odd"].pid, signal.SIGKILL)
        await until(lambda: servers.status()["odd"].state == "failed")
        await ws.call("odd_echo")
        assert len(approver.named("odd_echo")) == 2


async def test_servers_come_and_go_at_run_time(opened: Opened) -> None:
    async with opened({}) as ws:
        servers = ws.service(McpServers)
        status = await servers.add("odd", local("odd.py"))
        assert (status.state, status.tools) == ("connected", 14)
        assert (await ws.call("odd_echo")).output == "echo: {}"
        assert (await servers.disconnect("odd")).state == "disabled"
        assert "odd_echo" not in ws.registry.names()
        with pytest.raises(ToolError):
            await ws.call("odd_echo")
        assert (await servers.connect("odd")).state == "connected"
        assert (await ws.call("odd_echo")).output == "echo: {}"
        with pytest.raises(McpError, match="command must be a list"):
            await servers.add("bad", {"type": "local", "command": 3})


async def test_no_secret_reaches_the_log_or_the_status(opened: Opened) -> None:
    entry = local("odd.py", "--token=sesame-open", "rubbish", environment={"MY_TOKEN": "sesame-open"})
    entry["command"].append("exit")
    async with opened({"odd": entry}) as ws:
        await ws.registry.ids()
        servers = ws.service(McpServers)
        assert "sesame-open" not in repr(servers.status())
        assert "--token=***" in servers.status()["odd"].target
        assert "sesame-open" not in "\n".join(servers.logs("odd"))
