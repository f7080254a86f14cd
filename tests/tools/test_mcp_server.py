"""The MCP server as other agents meet it: a process, the official client, both generations of the protocol.

Most tests share one process for each generation, since a start takes seconds; they use different files and commands.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError, types

from tests.support.workspaces import OpenWorkspace

from ..support.mcp_process import GENERATIONS, Person, Place

pytestmark = pytest.mark.anyio
ONCE, ALWAYS = {"answer": "once"}, {"answer": "always"}
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@dataclass
class Served:
    """A running server and the person behind its client."""

    client: Client
    layout: Place
    person: Person

    async def call(self, name: str, arguments: dict[str, Any], **more: Any) -> types.CallToolResult:
        return await self.client.call_tool(name, arguments, **more)

    async def shell(self, command: str, **more: Any) -> types.CallToolResult:
        return await self.call("bash", {"command": command, "description": "test"}, **more)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module", params=GENERATIONS)
async def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    layout = Place.make(tmp_path_factory.mktemp("served"))
    person = Person()
    async with layout.client(request.param, person=person) as client:
        yield Served(client, layout, person)


@pytest.fixture
def served(running: Served) -> Served:
    running.person.forms.clear()
    running.person.reply = ONCE
    return running


@pytest.fixture
def layout(tmp_path: Path) -> Place:
    return Place.make(tmp_path)


def text(result: types.CallToolResult) -> str:
    block = result.content[0]
    assert isinstance(block, types.TextContent)
    return block.text


async def test_what_is_listed_is_what_a_model_is_offered(
    open_workspace: OpenWorkspace, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = {tool.name: tool for tool in (await served.client.list_tools()).tools}
    monkeypatch.setenv("OPENCODE_TEST_HOME", str(served.layout.home))
    ws = await open_workspace({}, directory=served.layout.project, store=False)
    offered = {tool.id: tool for tool in await ws.registry.tools(None, "build")}
    del offered["invalid"]
    assert list(listed) == list(offered)
    for name, tool in listed.items():
        assert tool.input_schema == offered[name].parameters
        assert tool.description == offered[name].description and tool.title
    assert listed["read"].annotations == types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
    bash = listed["bash"].annotations
    assert bash is not None and bash.destructive_hint and bash.open_world_hint and not bash.read_only_hint


async def test_calls(served: Served) -> None:
    folder, person = served.layout.project, served.person
    (folder / "a.txt").write_text("hello\n")
    (folder / "p.png").write_bytes(PNG)
    read = await served.call("read", {"filePath": "a.txt"})
    assert not read.is_error and "hello" in text(read) and person.forms == []
    assert read.structured_content is None and read.meta is not None and read.meta["opencode/title"] == "a.txt"

    wrote = await served.call("write", {"filePath": "b.txt", "content": "new\n"})
    assert not wrote.is_error and (folder / "b.txt").read_text() == "new\n"
    (form,) = person.forms
    assert "+new" in form.message and "b.txt" in form.message
    assert form.requested_schema["properties"]["answer"]["enum"] == ["once", "always", "reject"]

    assert text(await served.shell("echo $((20 + 3))")) == "23\n"

    picture = await served.call("read", {"filePath": "p.png"})
    (image,) = [content for content in picture.content if isinstance(content, types.ImageContent)]
    assert (image.mime_type, base64.b64decode(image.data)) == ("image/png", PNG)


async def test_calls_that_fail(served: Served) -> None:
    wrong = await served.call("read", {"file": "a.txt"})
    assert wrong.is_error and "filePath" in text(wrong)
    missing = await served.call("read", {"filePath": "none.txt"})
    assert missing.is_error and "none.txt" in text(missing)
    with pytest.raises(MCPError) as unknown:
        await served.call("nope", {})
    assert unknown.value.code == types.INVALID_PARAMS and "read" in unknown.value.message


async def test_answers_to_asks(served: Served) -> None:
    person = served.person
    person.reply = ALWAYS
    assert text(await served.shell("printf one")) == "one"
    assert text(await served.shell("printf two")) == "two"
    assert len(person.forms) == 1  # the second was covered by the first answer
    target = served.layout.project / "refused.txt"
    call = {"filePath": "refused.txt", "content": "x"}
    person.reply = {"answer": "reject", "feedback": "write c.txt instead"}
    corrected = await served.call("write", call)
    assert corrected.is_error and "write c.txt instead" in text(corrected)
    for reply in (None, {}, {"answer": "maybe"}):  # declined, and accepted without a plain yes
        person.reply = reply
        refused = await served.call("write", {**call, "content": f"{reply}"})
        assert refused.is_error and "rejected permission" in text(refused)
    assert not target.exists()


async def test_a_call_that_asks_twice(served: Served) -> None:
    outside = served.layout.home / "outside.txt"
    result = await served.call("write", {"filePath": str(outside), "content": "x\n"})
    assert not result.is_error and outside.read_text() == "x\n"
    assert ["external_directory" in form.message for form in served.person.forms] == [True, False]


async def test_questions(served: Served) -> None:
    options = [{"label": "red", "description": "warm"}, {"label": "blue", "description": "cold"}]
    questions = [
        {"question": "Which colour?", "header": "Colour", "options": options},
        {"question": "Which ones?", "header": "Ones", "options": options, "multiple": True},
    ]
    served.person.reply = {"q1": "blue", "q2_1": True, "q2_2": False, "q2_other": "green"}
    result = await served.call("question", {"questions": questions})
    assert '"Which colour?"="blue"' in text(result) and '"Which ones?"="red, green"' in text(result)
    served.person.reply = None
    dismissed = await served.call("question", {"questions": questions})
    assert dismissed.is_error and "dismissed" in text(dismissed)


async def test_cancelling_ends_the_command(served: Served) -> None:
    command = f"sleep 300.{os.getpid()}"  # a process id of its own means nothing outside a sandbox

    def runs() -> bool:
        return subprocess.run(["pgrep", "-xf", command], stdout=subprocess.DEVNULL, check=False).returncode == 0

    async with anyio.create_task_group() as group:
        group.start_soon(served.shell, f"exec {command}")
        with anyio.fail_after(30):
            while not runs():
                await anyio.sleep(0.02)
        group.cancel_scope.cancel()
    with anyio.fail_after(10):
        while runs():
            await anyio.sleep(0.02)
    assert text(await served.shell("echo still here")) == "still here\n"


async def test_progress(served: Served) -> None:
    reports: list[tuple[float, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        reports.append((done, message))

    async def call() -> None:
        await served.shell("echo first; until [ -e go ]; do sleep 0.05; done", progress_callback=progress)

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        with anyio.fail_after(30):
            while "first" not in [message for _, message in reports]:
                await anyio.sleep(0.02)
        (served.layout.project / "go").touch()
    steps = [done for done, _ in reports]
    assert steps == sorted(set(steps))


async def test_many_calls_at_once(served: Served) -> None:
    for i in range(50):
        (served.layout.project / f"f{i}.txt").write_text(f"content of {i}\n")
    results: dict[int, str] = {}

    async def read(i: int) -> None:
        results[i] = text(await served.call("read", {"filePath": f"f{i}.txt"}))

    async with anyio.create_task_group() as group:
        for i in range(50):
            group.start_soon(read, i)
    assert all(f"content of {i}\n" in results[i] for i in range(50))


async def test_calls_that_wait_side_by_side(served: Served) -> None:
    """Each one that asks is answered by itself; none holds another up."""
    outcomes: list[str] = []
    for i in range(5):
        (served.layout.project / f"side{i}").mkdir()

    async def make(i: int) -> None:
        outcomes.append(text(await served.call("write", {"filePath": f"side{i}/x", "content": f"{i}"})))

    async with anyio.create_task_group() as group:
        for i in range(5):
            group.start_soon(make, i)
    assert outcomes == ["Wrote file successfully."] * 5 and len(served.person.forms) == 5


async def test_the_whole_of_a_cut_output(served: Served) -> None:
    result = await served.shell("seq 1 20000")
    (link,) = [content for content in result.content if isinstance(content, types.ResourceLink)]
    assert [content.uri for content in (await served.client.list_resources()).resources] == [link.uri]
    (whole,) = (await served.client.read_resource(link.uri)).contents
    assert isinstance(whole, types.TextResourceContents)
    assert whole.text == "".join(f"{i}\n" for i in range(1, 20001))
    for other in (served.layout.project.as_uri(), link.uri + "/../x", "file:///etc/passwd"):
        with pytest.raises(MCPError):
            await served.client.read_resource(other)


TOOL_FILE = '''
"""A tool that talks too much."""
import os
from opencode_jupyter import tool
print("printed while loading")
os.write(1, b"written while loading\\n")

@tool
async def chatter(word: str) -> str:
    """Say a word back."""
    print("printed while running")
    os.system("echo from a child")
    return f"said {word}"
'''


async def test_a_projects_own_tool_runs_once_it_is_trusted(layout: Place) -> None:
    folder = layout.project / ".opencode" / "tool"
    folder.mkdir(parents=True)
    (folder / "chatter.py").write_text(TOOL_FILE)
    person = Person(None)
    async with layout.client("auto", person=person) as client:
        assert "chatter" not in {tool.name for tool in (await client.list_tools()).tools}
        refused = await client.call_tool("chatter", {"word": "a"})
        assert refused.is_error and "trust" in person.forms[0].message and "chatter.py" in person.forms[0].message
        assert "os.system" in person.forms[0].message  # what is trusted is shown
        person.reply = ONCE
        assert text(await client.call_tool("chatter", {"word": "b"})) == "said b"
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert listed["chatter"].description == "Say a word back." and listed["chatter"].annotations is None


WRAPPER = """#!/bin/sh
echo start >> {count}
test "$(wc -l < {count})" -gt 3 && exit 1
exec {python} "$@"
"""


async def test_a_project_that_names_this_server_among_its_own(layout: Place, tmp_path: Path) -> None:
    """It starts once, not again and again."""
    count, wrapper = layout.project / "count", tmp_path / "wrapper"
    wrapper.write_text(WRAPPER.format(count=count, python=sys.executable))
    wrapper.chmod(0o700)
    entry = {"command": str(wrapper), "args": layout.arguments()}
    (layout.project / ".mcp.json").write_text(json.dumps({"mcpServers": {"self": entry}}))
    (layout.project / "a.txt").write_text("hello\n")
    async with layout.client("auto", person=Person(ONCE)) as client:
        assert "hello" in text(await client.call_tool("self_read", {"filePath": "a.txt"}))
        names = {tool.name for tool in (await client.list_tools()).tools}
    assert "self_read" in names and not [name for name in names if name.startswith("self_self")]
    assert count.read_text() == "start\n"
