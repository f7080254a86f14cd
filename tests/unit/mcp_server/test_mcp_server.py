"""The MCP server's parts that need no process: options, forms, results, parked calls, what is offered."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError, types

from opencode_jupyter import Attachment, ToolContext, ToolResult, tool
from opencode_jupyter.__main__ import parser
from opencode_jupyter.core.call_state import Completed, Failed, ToolPart
from opencode_jupyter.core.permission import PermissionRequest, Rule
from opencode_jupyter.core.question_request import Choice, Question, QuestionRequest
from opencode_jupyter.mcp_server import ServeOptions, forms, server
from opencode_jupyter.mcp_server.calls import LARGEST, METADATA, SavedOutputs, result_of
from opencode_jupyter.mcp_server.server import ToolServer
from opencode_jupyter.workspace import Workspace
from tests.support.mcp_process import GENERATIONS, Person
from tests.support.workspaces import OpenWorkspace

# ---------------------------------------------------------------------- options


def parsed(*arguments: str) -> Any:
    return parser().parse_args(["mcp", *arguments])


def test_options() -> None:
    options = parsed("--tools=read, -bash,+lsp", "--allow", "bash:git status *", "--allow", "edit", "--timeout", "2.5")
    assert options.tools == ("read", "-bash", "+lsp")
    assert options.allow == [("bash", "git status *"), ("edit", "*")]
    assert (options.timeout, options.ask, options.directory) == (2.5, "elicit", Path.cwd())


SENSELESS = (
    "--tools ,",
    "--tools=-",
    "--timeout 0",
    "--timeout nan",
    "--timeout soon",
    "--ask me",
    "--allow :x",
    "--directory /does/not/exist",
)


@pytest.mark.parametrize("line", SENSELESS)
def test_options_that_make_no_sense(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed(*line.split())
    assert ended.value.code == 2 and line.split()[0].partition("=")[0] in capsys.readouterr().err


# ---------------------------------------------------------------------- forms


def request(**more: Any) -> PermissionRequest:
    fields: dict[str, Any] = {"patterns": ["git status"], "always": ["git status *"], **more}
    return PermissionRequest("per_1", "ses_1", "bash", rule=Rule("bash", "*", "ask", "opencode.json"), **fields)


def test_a_form_hides_nothing_and_ends() -> None:
    command = "echo \u202egnp.exe\n" + "\n".join(f"line {i}" for i in range(200))
    form = forms.permission_form(request(patterns=["a\x1b[2Kb"], metadata={"command": command}), "bash")
    assert "\\u202e" in form.message and "\\x1b[2Kb" in form.message
    assert f"… {201 - forms.SHOWN_LINES} more lines" in form.message
    wide = forms.permission_form(request(metadata={"diff": "x" * 100_000}), "edit")
    assert len(wide.message) < 2000 and f"… {100_000 - forms.SHOWN_WIDTH} more characters" in wide.message
    assert "rule bash *: ask from opencode.json" in form.message
    once_only = forms.permission_form(request(always=[]), "bash")
    assert once_only.requested_schema["properties"]["answer"]["enum"] == ["once", "reject"]


@pytest.mark.parametrize(
    ("action", "content", "always", "reply"),
    [
        ("accept", {"answer": "once"}, True, "once"),
        ("accept", {"answer": "always"}, True, "always"),
        ("accept", {"answer": "always"}, False, "reject"),  # it was not among the answers
        ("accept", {"answer": "reject", "feedback": " no "}, True, ("reject", "no")),
        ("accept", {"answer": "once "}, True, "reject"),
        ("accept", {"feedback": "what?"}, True, ("reject", "what?")),
        ("accept", None, True, "reject"),
        ("decline", {"answer": "once"}, True, "reject"),
        ("cancel", {"answer": "always"}, True, "reject"),
    ],
)
def test_only_a_plain_yes_is_one(action: Any, content: Any, always: bool, reply: Any) -> None:
    result = types.ElicitResult(action=action, content=content)
    assert forms.read_reply(result, request(always=["git status *"] if always else [])) == reply


def test_who_can_ask() -> None:
    def client(elicitation: Any) -> types.ClientCapabilities:
        return types.ClientCapabilities.model_validate({"elicitation": elicitation})

    assert (
        forms.supports_forms(client({}))
        and forms.supports_forms(client({"form": {}}))
        and forms.supports_forms(client({"form": {}, "url": {}}))
    )
    assert (
        not forms.supports_forms(None)
        and not forms.supports_forms(types.ClientCapabilities())
        and not forms.supports_forms(client({"url": {}}))
    )


def test_the_forms_are_what_the_protocol_takes() -> None:
    from mcp_types._v2025_11_25 import ElicitRequestFormParams as Strict

    options = (Choice("red", "warm"), Choice("blue"))
    questions = [Question("Which?", "One", options), Question("All?", "Many", options, multiple=True), Question("Why?")]
    made = [
        forms.permission_form(request(), "bash"),
        forms.question_form(QuestionRequest("que_1", "ses_1", [*questions, Question("?", "", options, custom=False)])),
    ]
    for form in made:
        Strict.model_validate(form.model_dump(by_alias=True, exclude_none=True))


def test_answers() -> None:
    options = (Choice("red"), Choice("blue"))
    questions = [
        Question("a", "", options),
        Question("b", "", options, multiple=True),
        Question("c", "", options, custom=False),
    ]
    content: dict[str, Any] = {"q1": "red", "q1_other": "green", "q2_2": True, "q3": "green", "q3_other": "green"}
    result = types.ElicitResult(action="accept", content=content)
    assert forms.read_answers(result, QuestionRequest("que_1", "ses_1", questions)) == [["green"], ["blue"], []]
    assert forms.read_answers(types.ElicitResult(action="cancel"), QuestionRequest("que_1", "ses_1", questions)) is None


# ---------------------------------------------------------------------- results


def ended(state: Any, tool: str = "read", result: ToolResult | None = None) -> ToolPart:
    return ToolPart("prt_1", "ses_1", "msg_1", "call", tool, state, result=result)


def test_attachments() -> None:
    files = [
        Attachment.from_bytes(b"png", "image/png"),
        Attachment.from_bytes(b"wav", "audio/wav"),
        Attachment.from_bytes(b"pdf", "application/pdf", "a b.pdf"),
        Attachment.from_bytes(b"<svg/>", "image/svg+xml"),
        Attachment("image/png", "https://example.org/x.png"),
    ]
    state = Completed({}, 1, 2, "title", "text", {}, files)
    _, png, wav, pdf, svg, link = result_of(ended(state), SavedOutputs()).content
    assert isinstance(png, types.ImageContent) and base64.b64decode(png.data) == b"png"
    assert isinstance(wav, types.AudioContent) and wav.mime_type == "audio/wav"
    assert isinstance(pdf, types.EmbeddedResource) and pdf.resource.mime_type == "application/pdf"
    assert isinstance(svg, types.EmbeddedResource) and pdf.resource.uri.endswith("a%20b.pdf")
    assert isinstance(link, types.ResourceLink) and link.uri == "https://example.org/x.png"


def test_metadata_that_is_not_json_or_large_is_left_out() -> None:
    metadata = {"exit": 0, "bad": object(), "nan": float("nan"), "output": "x" * 5000, "last": [1]}
    result = result_of(ended(Completed({}, 1, 2, "t", "o", metadata)), SavedOutputs())
    assert result.meta is not None and result.meta[METADATA] == {"exit": 0, "last": [1]}
    assert result.structured_content is None and not result.is_error


def test_errors_are_results() -> None:
    failed = result_of(ended(Failed({}, 1, 2, "it broke")), SavedOutputs())
    assert failed.is_error and failed.content == [types.TextContent(text="it broke")]
    assert result_of(ended(Completed({}, 1, 2, "", "wrong", {}), tool="invalid"), SavedOutputs()).is_error


def test_saved_outputs(tmp_path: Path) -> None:
    outputs = SavedOutputs()
    small, large = tmp_path / "tool_1", tmp_path / "tool_2"
    small.write_text("whole")
    with large.open("wb") as file:
        file.truncate(LARGEST + 1)

    def link(path: Path) -> types.ResourceLink | None:
        return outputs.link(ToolResult("t", "o", {"truncated": True, "outputPath": str(path)}))

    first, second = link(small), link(large)
    assert first is not None and second is not None and link(tmp_path / "gone") is None
    assert outputs.link(ToolResult("t", "o", {"truncated": False})) is None
    assert [resource.name for resource in outputs.list()] == ["tool_2", "tool_1"]
    (contents,) = outputs.read(first.uri).contents
    assert isinstance(contents, types.TextResourceContents) and contents.text == "whole"
    with pytest.raises(MCPError, match="offset and limit"):
        outputs.read(second.uri)
    (tmp_path / "secret").write_text("s")
    for other in ((tmp_path / "secret").as_uri(), small.as_uri().replace("tool_1", "./tool_1"), str(small)):
        with pytest.raises(MCPError, match="No such resource"):
            outputs.read(other)
    small.unlink()
    with pytest.raises(MCPError, match="any more"):
        outputs.read(first.uri)


# ---------------------------------------------------------------------- in this process


@pytest.fixture
async def workspace(
    open_workspace: OpenWorkspace, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Workspace:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("OPENCODE_TEST_HOME", str(tmp_path / "home"))
    (project / ".git").mkdir(parents=True)
    return await open_workspace({}, store=False)


def text_of(result: types.CallToolResult) -> str:
    block = result.content[0]
    assert isinstance(block, types.TextContent)
    return block.text


async def names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.anyio
async def test_which_tools(workspace: Workspace) -> None:
    async def offered(*requested: str, model: str | None = None) -> set[str]:
        served = ToolServer(workspace, ServeOptions(tools=requested, model=model))
        async with Client(served.server) as client:
            return await names(client)

    usual = await offered()
    assert {"read", "bash", "edit"} <= usual and not {"lsp", "invalid", "question", "apply_patch"} & usual
    assert await offered("read", "g*") == {"read", "glob", "grep"}
    assert await offered("-bash", "-*edit") == usual - {"bash", "edit", "multiedit", "notebook_edit"}
    assert await offered("+lsp", "-read") == usual - {"read"} | {"lsp"}
    assert {"apply_patch"} == await offered(model="openai/gpt-5") - usual
    with pytest.raises(Exception, match="no agent"):
        ToolServer(workspace, ServeOptions(agent="nobody"))


@pytest.mark.anyio
@pytest.mark.parametrize("mode", GENERATIONS)
async def test_a_tool_of_ones_own(workspace: Workspace, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONFIG_INTERVAL", 0.02)

    @tool(asks=True)
    async def greet(name: str, *, ctx: ToolContext) -> str:
        """Greet somebody."""
        await ctx.ask(permission="greet", patterns=[name], always=[])
        print("this must not be taken for an answer")
        return f"hello {name}"

    changed = asyncio.Event()

    async def on_message(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            changed.set()

    person = Person({"answer": "once"})
    workspace.rules.append(Rule("greet", "*", "ask"))
    served = ToolServer(workspace)
    async with Client(served.server, mode=mode, elicitation_callback=person, message_handler=on_message) as client:
        assert "greet" not in await names(client)
        workspace.registry.register(greet)
        if mode == "legacy":
            with anyio.fail_after(20):
                await changed.wait()
        (listed,) = [tool for tool in (await client.list_tools()).tools if tool.name == "greet"]
        assert (listed.title, listed.description, listed.annotations) == ("Greet", "Greet somebody.", None)
        result = await client.call_tool("greet", {"name": "you"})
        assert result.content == [types.TextContent(text="hello you")]
        assert person.forms[0].requested_schema["properties"]["answer"]["enum"] == ["once", "reject"]


@pytest.mark.anyio
@pytest.mark.parametrize("mode", GENERATIONS)
async def test_a_client_that_cannot_ask(workspace: Workspace, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told which rule would allow the call; a rule that is written then holds, and the client hears of it."""
    monkeypatch.setattr(server, "CONFIG_INTERVAL", 0.02)
    target, call = workspace.directory / "b.txt", {"filePath": "b.txt", "content": "x\n"}
    changed = asyncio.Event()

    async def on_message(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            changed.set()

    def configure() -> None:
        rules = {"edit": {"b.txt": "allow"}, "webfetch": "deny"}
        (workspace.directory / "opencode.json").write_text(json.dumps({"permission": rules}))

    served = ToolServer(workspace)
    async with Client(served.server, mode=mode, message_handler=on_message) as client:
        assert "webfetch" in await names(client) and "question" not in await names(client)
        refused = await client.call_tool("write", call)
        assert refused.is_error and not target.exists()
        assert '{"permission": {"edit": {"b.txt": "allow"}}} into opencode.json' in text_of(refused)
        with anyio.fail_after(20):
            if mode == "legacy":
                configure()
                await changed.wait()
            else:
                async with client.listen(tools_list_changed=True) as events:
                    configure()
                    async for _ in events:
                        break
        assert "webfetch" not in await names(client)
        workspace.trust_project()  # a rule of a project that nobody trusts allows nothing
        assert not (await client.call_tool("write", call)).is_error and target.exists()


@pytest.mark.anyio
async def test_nobody_is_asked(workspace: Workspace) -> None:
    person = Person({"answer": "once"})
    options = ServeOptions(tools=("bash", "batch", "write"), ask="deny", allow=(("bash", "echo *"),))
    async with Client(ToolServer(workspace, options).server, elicitation_callback=person) as client:
        assert await names(client) == {"bash", "write", "batch"}
        assert text_of(await client.call_tool("bash", {"command": "echo a", "description": "a"})) == "a\n"
        refused = await client.call_tool("bash", {"command": "ls", "description": "a"})
        assert refused.is_error and "--ask deny" in text_of(refused) and '--allow "bash:ls *"' in text_of(refused)
        with pytest.raises(MCPError, match="Unknown tool: read"):
            await client.call_tool("read", {"filePath": "a.txt"})
        (workspace.directory / "a.txt").write_text("secret\n")
        inside = [{"tool": "read", "parameters": {"filePath": "a.txt"}}]
        batched = await client.call_tool("batch", {"tool_calls": inside})
        assert "secret" not in text_of(batched)
    assert person.forms == []


@pytest.mark.anyio
async def test_allowing_does_not_overrule_a_deny(workspace: Workspace) -> None:
    (workspace.directory / "opencode.json").write_text(json.dumps({"permission": {"bash": {"rm *": "deny"}}}))
    workspace.reload_config()
    async with Client(ToolServer(workspace, ServeOptions(allow=(("bash", "*"),))).server) as client:
        assert not (await client.call_tool("bash", {"command": "ls", "description": "a"})).is_error
        denied = await client.call_tool("bash", {"command": "rm -rf x", "description": "a"})
        assert denied.is_error and "rule which prevents you" in text_of(denied)


@pytest.mark.anyio
async def test_a_parked_call(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that waits for answers is given back once, for the same request, and ends if nobody comes back."""
    served = ToolServer(workspace)
    call = {"filePath": "a.txt", "content": "x"}
    yes = {"ask1": types.ElicitResult(action="accept", content={"answer": "once"})}

    async def send(arguments: dict[str, Any], state: str | None = None) -> Any:
        return await client.session.call_tool(
            "write",
            arguments,
            input_responses=yes if state else None,
            request_state=state,
            allow_input_required=True,
        )

    async with Client(served.server, mode=GENERATIONS[1], elicitation_callback=Person()) as client:
        first = await send(call)
        assert isinstance(first, types.InputRequiredResult) and first.request_state
        for arguments, state in ((call, "made up"), ({**call, "content": "y"}, first.request_state)):
            with pytest.raises(MCPError, match="call the tool again"):
                await send(arguments, state)
        result = await send(call, first.request_state)
        assert not result.is_error and (workspace.directory / "a.txt").read_text() == "x"
        with pytest.raises(MCPError, match="call the tool again"):
            await send(call, first.request_state)

        monkeypatch.setattr(server, "ANSWER_SECONDS", 0.2)
        left = await send({**call, "filePath": "b.txt"})
        assert len(workspace.permissions.pending()) == 1
        with anyio.fail_after(20):
            while workspace.calls:
                await anyio.sleep(0.02)
        assert workspace.permissions.pending() == []
        with pytest.raises(MCPError, match="call the tool again"):
            await send({**call, "filePath": "b.txt"}, left.request_state)
    assert not (workspace.directory / "b.txt").exists()


@pytest.mark.anyio
async def test_a_limit_of_time_leaves_out_the_person(workspace: Workspace) -> None:
    async def slowly(context: Any, params: Any) -> types.ElicitResult:
        await anyio.sleep(0.5)
        return types.ElicitResult(action="accept", content={"answer": "once"})

    served = ToolServer(workspace, ServeOptions(timeout=0.3))
    async with Client(served.server, elicitation_callback=slowly) as client:
        assert not (await client.call_tool("write", {"filePath": "a.txt", "content": "x"})).is_error
        workspace.registry.register(endless)
        late = await client.call_tool("endless", {})
        assert late.is_error and "longer than its limit of 0.3 s" in str(late.content)


@tool
async def endless() -> str:
    """Never end."""
    await asyncio.Event().wait()
    return ""
