"""Known secrets are masked wherever text is shown, kept or sent; ordinary text stays as it is."""

from __future__ import annotations

import itertools
import json
import logging
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter import ToolContext, ToolError, ToolResult, Workspace, tool
from opencode_jupyter.agent.exchange import export_file, export_jsonl, export_otlp
from opencode_jupyter.agent.turns import TextPiece
from opencode_jupyter.core import secrets
from opencode_jupyter.core.audit import audit_log
from opencode_jupyter.core.secrets import Masker, is_common, is_secret_name, secrets_in
from opencode_jupyter.core.spill import Spill
from opencode_jupyter.core.truncation import Truncation
from opencode_jupyter.jupyter.cards.call_json import card_part
from opencode_jupyter.jupyter.tables import Table
from tests.support.agents import project
from tests.support.fake_model import FakeModel
from tests.support.workspaces import OpenWorkspace

SECRET = "tok-8Fj2kQ9xLm4Rz7Vb1Nc6Wd3Ys5Hg0PtA"
NAME = "[secret MY_SERVICE_TOKEN]"
PIECES = "abAB12-é"
VALUES = st.text(PIECES, min_size=8, max_size=40).filter(lambda value: not is_common(value))


@pytest.fixture(autouse=True)
def _only_these(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process knows this secret; those of other tests are forgotten (`tests/conftest.py`)."""
    monkeypatch.setenv("MY_SERVICE_TOKEN", SECRET)


def as_text(value: Any) -> str:
    """All that is in a value, as text."""
    return json.dumps(value, ensure_ascii=False, default=str)


def stored_bytes(folder: Path) -> bytes:
    """All bytes of the data folder, the database's write-ahead log too."""
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


# ---------------------------------------------------------------------- which values


@pytest.mark.parametrize("name", ["GITHUB_TOKEN", "apiKey", "x-api-key", "Set-Cookie", "accessToken", "db.password"])
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["monkey", "keyboard", "tokenizer", "PATH", "x-request-id", "passenger"])
def test_names_of_other_values(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("name", "value", "names"),
    [
        ("OPENAI_API_KEY", SECRET, [SECRET]),
        ("GITHUB_TOKEN", SECRET, [SECRET]),
        ("PGPASSWORD", "hunter2-hunter", ["hunter2-hunter"]),
        ("SMTP_PASS", "correct horse battery staple", ["correct horse battery staple"]),
        ("AWS_SECRET_ACCESS_KEY", "/8f3kK9x+AbC3", ["/8f3kK9x+AbC3"]),
        ("JWT", SECRET, [SECRET]),
        ("DATABASE_URL", "postgres://jo:pa55-w0rd@db:5432/x", ["pa55-w0rd"]),
        ("ANYTHING", "redis://:p%40ss-w0rd@db", ["p%40ss-w0rd", "p@ss-w0rd"]),
        ("MSSQL", "Server=db;Password=s3cret-pw;Database=x", ["s3cret-pw"]),
        ("SENTRY_DSN", "https://0123abcd4567@o1.ingest.sentry.io/2", ["0123abcd4567"]),
        ("TOKEN_URL", "https://example.com/oauth/token", []),
        ("HOMEPAGE", SECRET, []),
        ("KEYBOARD", SECRET, []),
        ("API_KEY", "true", []),
        ("API_KEY", "password", []),
        ("API_KEY", "your-api-key", []),
        ("API_KEY", "12345678", []),
        ("API_KEY", "xxxxxxxxxxxxxxxxxxxxxxxx", []),
        ("SSH_KEY", "/usr/bin", []),
        ("SSH_KEY", "~/.ssh/my_deploy_key_for_the_server", []),
        ("DB_PASSWORD", "short1!", []),
    ],
)
def test_which_values_are_secrets(name: str, value: str, names: list[str]) -> None:
    assert secrets_in(name, value) == names


def test_the_configuration_and_stored_logins_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    (tmp_path / "share" / "opencode").mkdir(parents=True)
    (tmp_path / "share" / "opencode" / "auth.json").write_text(
        json.dumps({"x": {"type": "oauth", "access": "xAb1-" * 6}})
    )
    (tmp_path / "data").mkdir()
    entry = {"tokens": {"access_token": "xCd2-" * 6, "token_type": "Bearer"}, "client": {"client_secret": "xEf3-" * 6}}
    (tmp_path / "data" / "mcp-auth.json").write_text(json.dumps({"tracker": {"https://x.y/": entry}}))
    config = {
        "provider": {"mine": {"options": {"apiKey": "xGh4-" * 6, "headers": {"X-Who": "xIj5-" * 6}}}},
        "mcp": {
            "m": {"type": "local", "command": ["x"], "environment": {"A_TOKEN": "xKl6-" * 6, "LEVEL": "xMn7-" * 6}}
        },
    }
    with Workspace(tmp_path, config, tmp_path / "data", store=False) as ws:
        masked = {value: ws.masked(value * 6) for value in ("xAb1-", "xCd2-", "xEf3-", "xGh4-", "xIj5-", "xKl6-")}
        assert masked == {
            "xAb1-": "[secret auth.x.access]",
            "xCd2-": "[secret mcp-auth.tracker.tokens.access_token]",
            "xEf3-": "[secret mcp-auth.tracker.client.client_secret]",
            "xGh4-": "[secret provider.mine.options.apiKey]",
            "xIj5-": "[secret provider.mine.options.headers.X-Who]",
            "xKl6-": "[secret mcp.m.environment.A_TOKEN]",
        }
        assert ws.masked("Bearer " + "xMn7-" * 6) == "Bearer " + "xMn7-" * 6


def test_a_variable_that_is_set_later_is_known_too(monkeypatch: pytest.MonkeyPatch) -> None:
    before = secrets.known.masker()
    assert secrets.known.masker() is before, "nothing is made again while nothing changes"
    monkeypatch.setenv("LATER_TOKEN", "zz-0123-late9r")
    assert secrets.mask("a zz-0123-late9r") == "a [secret LATER_TOKEN]"
    monkeypatch.delenv("LATER_TOKEN")
    assert secrets.mask("a zz-0123-late9r") == "a zz-0123-late9r"


# ---------------------------------------------------------------------- how they are replaced


@given(st.lists(VALUES, min_size=1, max_size=4, unique=True), st.data())
def test_no_secret_survives_wherever_it_stands_and_however_it_comes(values: list[str], data: st.DataObject) -> None:
    masker = Masker({value: f"N{i}" for i, value in enumerate(values)})
    some = st.sampled_from(values)
    piece = st.one_of(
        some, st.text(PIECES, max_size=5), st.builds(lambda value, n: value[:n], some, st.integers(1, 40))
    )
    text = "".join(data.draw(st.lists(piece, max_size=8)))
    result = masker.value({"a": [text, (text,)], text: text})
    for value in values:
        assert value not in as_text(result)
    raw, out, held, last = text.encode(), b"", b"", 0
    for cut in [*sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6))), len(raw)]:
        ready, held = masker.chunk(held + raw[last:cut])
        out, last = out + ready, cut
    out += masker.last(held)
    for value in values:
        assert value.encode() not in out


@given(
    st.text(), st.binary(), st.recursive(st.none() | st.text() | st.integers(), lambda x: st.lists(x) | st.tuples(x))
)
def test_ordinary_values_are_the_same_objects(text: str, data: bytes, value: Any) -> None:
    masker = Masker({SECRET: "X"})
    assert masker.text(text) is text
    values = {"text": text, "data": data, "value": value, "path": Path("x")}
    assert masker.value(values) is values
    ready, held = masker.chunk(data)
    assert ready + held == data
    assert len(held) < len(SECRET)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ('with "quotes" and 1 line', json.dumps({"a": 'with "quotes" and 1 line'})),
        ("a+b/c=d&1234", "https://x.y/?q=a%2Bb%2Fc%3Dd%261234"),
        (
            "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA7bq0\nMIIEpAIBAAKCAQEA7bq1\n-----END KEY-----",
            "00002| MIIEpAIBAAKCAQEA7bq1",
        ),
        (SECRET, f"its beginning, cut: {SECRET[:25]}..."),
    ],
)
def test_other_spellings_and_cut_ones(value: str, text: str) -> None:
    masked = Masker({value: "IT"}).text(text)
    assert "[secret IT]" in masked
    assert value[-4:] not in masked
    assert masked.startswith(text[:5])


def test_values_that_are_too_deep_or_go_in_a_circle_end() -> None:
    circle: list[Any] = [SECRET]
    circle.append(circle)
    assert SECRET not in str(Masker({SECRET: "X"}).value(circle))[:100_000]


# ---------------------------------------------------------------------- where


@tool
async def leak(ctx: ToolContext, text: str) -> ToolResult:
    """Show a secret in every field."""
    ctx.metadata(f"live {text}", {"output": f"live {text}"})
    metadata = {"output": text, "nested": [{text: (text, Path(text))}], "diff": f"+{text}"}
    return ToolResult(f"title {text}", f"output {text}\n" * 3, metadata, records=[{"line": text}])


@pytest.mark.anyio
async def test_a_call_keeps_and_shows_no_secret(tmp_path: Path) -> None:
    events: list[str] = []
    async with Workspace(tmp_path, {"permission": {"*": "allow"}}, tmp_path / "data") as ws:
        ws.registry.register(leak)
        ws.bus.subscribe("*", lambda event: events.append(as_text(event)))
        cards: list[str] = []
        result = await ws.call(
            "leak", {"text": SECRET}, on_update=lambda p: cards.append(as_text(card_part(p, live=True)))
        )
        assert result.output == f"output {NAME}\n" * 3
        assert result.records == [{"line": NAME}]
        assert len(events) >= 3
        assert len(cards) >= 3
        everything = as_text([result.title, result.metadata, events, cards])
        assert NAME in everything
        assert SECRET not in everything
        rows = sqlite3.connect(tmp_path / "data" / "opencode.db").execute("SELECT * FROM parts").fetchall()
        assert NAME in as_text(rows)
    assert SECRET.encode() not in stored_bytes(tmp_path / "data")


@pytest.mark.anyio
@pytest.mark.parametrize("long", [False, True])
async def test_a_command_gets_the_secret_and_its_output_is_masked(tmp_path: Path, long: bool) -> None:
    more = "; seq 1 40000" if long else ""
    head, tail = SECRET[:13], SECRET[13:]
    command = (
        f"printf %s {SECRET} | wc -c; printf %s {head}; sleep 0.2; printf '%s\\n' {tail}{more}; echo $MY_SERVICE_TOKEN"
    )
    async with Workspace(tmp_path, {"permission": {"*": "allow"}}, tmp_path / "data") as ws:
        updates: list[str] = []
        result = await ws.call(
            "bash",
            {"command": command, "description": "x"},
            by="user",
            on_update=lambda p: updates.append(as_text(p.to_wire())),
        )
        assert result.output.split()[0] == str(len(SECRET)), "the command itself is not changed"
        assert result.output.count(NAME) == 2, "in two pieces, and as a variable"
        assert result.truncated is long
        if result.output_path:
            assert Path(result.output_path).read_bytes().count(NAME.encode()) == 2
        assert SECRET not in as_text(updates)
    assert SECRET.encode() not in stored_bytes(tmp_path / "data")


@given(st.integers(0, 3000), st.lists(st.integers(0, 4000), max_size=5), st.booleans())
def test_a_spill_has_no_secret_wherever_chunks_end(
    tmp_path_factory: Any, at: int, cuts: list[int], small: bool
) -> None:
    folder = tmp_path_factory.getbasetemp() / "spills"
    text = ("0123456789abcdef\n" * 200)[:3000]
    data = (text[:at] + SECRET + text[at:]).encode()
    limits = Truncation(folder, {"max_bytes": 500} if small else None)
    sink = Spill(limits)
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    for start, end in itertools.pairwise(edges):
        sink.feed(data[start:end])
        assert SECRET not in sink.live(10_000)
    output = sink.finish()
    assert SECRET not in output.text
    expected = data.replace(SECRET.encode(), NAME.encode())
    assert output.bytes == len(expected)
    if output.output_path is None:
        assert output.text == expected.decode()
    else:
        assert Path(output.output_path).read_bytes() == expected


@pytest.mark.anyio
async def test_files_get_what_they_are_given_and_edits_hint_at_masks(tmp_path: Path) -> None:
    file = tmp_path / "settings.txt"
    async with Workspace(tmp_path, {"permission": {"*": "allow"}}, tmp_path / "data") as ws:
        await ws.call("write", {"filePath": str(file), "content": f"key = {SECRET}\n"}, by="user")
        assert file.read_text() == f"key = {SECRET}\n"
        read = await ws.call("read", {"filePath": str(file)}, by="user")
        assert f"key = {NAME}" in read.output
        await ws.call("edit", {"filePath": str(file), "oldString": SECRET, "newString": f"{SECRET}!"}, by="user")
        assert file.read_text() == f"key = {SECRET}!\n"
        with pytest.raises(ToolError, match="stands for a value that is hidden"):
            await ws.call("edit", {"filePath": str(file), "oldString": f"= {NAME}??", "newString": "x"}, by="user")
    assert SECRET.encode() not in b"".join(p.read_bytes() for p in (tmp_path / "data").glob("opencode.db*"))


@pytest.mark.anyio
async def test_errors_name_no_secret(workspace: Workspace) -> None:
    @tool
    async def fail(text: str) -> str:
        """Fail."""
        try:
            raise ValueError(f"inner {text}")
        except ValueError as error:
            raise FileNotFoundError(2, "none", f"/x/{text}") from error

    workspace.registry.register(fail)
    call = workspace.start("fail", {"text": SECRET})
    with pytest.raises(FileNotFoundError) as caught:
        await call.run()
    assert str(caught.value) == f"[Errno 2] none: '/x/{NAME}'"
    assert str(caught.value.__cause__) == f"inner {NAME}"
    assert SECRET not in as_text(call.part.to_wire())
    with pytest.raises(ToolError) as missing:
        await workspace.call("read", {"filePath": f"/nowhere/{SECRET}"}, by="user")
    assert SECRET not in str(missing.value) + missing.value.for_person


@pytest.mark.anyio
async def test_requests_decisions_and_rules_name_no_secret(open_workspace: OpenWorkspace) -> None:
    requests: list[Any] = []

    def approve(request: Any) -> str:
        requests.append(request.to_wire())
        return "always"

    rules = {"permission": {"*": "allow", "bash": "ask"}}
    ws = await open_workspace(rules, approve=approve)
    arguments = {"command": f"printf {SECRET}x", "description": "x"}
    call = ws.start("bash", arguments, by="user")
    assert (await call.run()).output == f"{NAME}x"
    again = await ws.call("bash", arguments, by="user")
    assert again.output == f"{NAME}x"
    assert len(requests) == 1, "the approval holds for the command as it is"
    history = [(decision.permission, decision.patterns, decision.rules) for decision in ws.permissions.history]
    assert NAME in as_text(requests)
    assert SECRET not in as_text([requests, history, call.part.decisions, audit_log(ws.data_dir).last(9)])
    assert SECRET not in Table([{"rule": rule.pattern} for rule in ws.permissions.approved])._repr_html_()


@pytest.mark.anyio
async def test_arguments_changed_by_a_person_get_their_secrets_back(
    open_workspace: OpenWorkspace, project: Path
) -> None:
    ws = await open_workspace({"permission": {"edit": "ask"}})
    call = ws.start("write", {"filePath": "a.txt", "content": f"{SECRET}\n"}, by="user")

    async def change(event: dict[str, Any]) -> None:
        assert SECRET not in as_text([event, call.part.to_wire()])
        shown_arguments = dict(call.part.state.input)
        await call.revise(event["properties"]["id"], {**shown_arguments, "content": f"# {shown_arguments['content']}"})

    ws.bus.subscribe("permission.asked", change)
    await call.run()
    assert (project / "a.txt").read_text() == f"# {SECRET}\n"


@pytest.mark.anyio
async def test_a_model_is_sent_no_secret_and_what_it_says_is_masked(tmp_path: Path) -> None:
    model = FakeModel(
        [
            {"text": f"I use {SECRET}.", "calls": [["read", {"filePath": "a.txt"}], ["leak", {"text": SECRET}]]},
            {"text": "Done."},
        ]
    )
    deltas: list[str] = []
    async with project(tmp_path, a_txt=f"key: {SECRET}\n", AGENTS_md=f"The key is {SECRET}.") as workspace:
        (tmp_path / "AGENTS.md").write_text(f"The key is {SECRET}.")
        workspace.registry.register(leak)
        workspace.bus.subscribe("*", lambda event: deltas.append(as_text(event)))
        answer = await workspace.sessions.prompt(f"say {SECRET}", model=model, system=f"It is {SECRET}.")
        assert answer.text.strip() == "Done."
        requests = "\n".join(repr(request) for request in model.requests)
        assert requests.count(NAME) > 5
        assert SECRET not in requests
        assert any(isinstance(p, TextPiece) and p.text == f"say {NAME}" for p in model.requests[0].turns[0].pieces)
        messages = as_text([message.to_wire() for message in answer.session.messages])
        assert f"I use {NAME}." in messages
        assert SECRET not in messages
        assert SECRET not in answer.session.title
        assert [delta for delta in deltas if SECRET in delta] == []
        paths = [
            await export_file(workspace, answer.session, tmp_path / "s.json"),
            await export_jsonl(workspace, answer.session, tmp_path / "s.jsonl"),
            await export_otlp(workspace, answer.session, tmp_path / "s.otlp", content=True),
        ]
        for path in paths:
            assert NAME in path.read_text()
            assert SECRET not in path.read_text()
        data = workspace.data_dir
    assert SECRET.encode() not in stored_bytes(data)


@pytest.mark.anyio
async def test_a_session_of_before_is_exported_and_sent_masked(
    open_workspace: OpenWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MY_SERVICE_TOKEN")
    workspace = await open_workspace(files={"a.txt": f"key: {SECRET}\n"})
    first = FakeModel([{"calls": [["read", {"filePath": "a.txt"}]]}, {"text": "Done."}])
    answer = await workspace.sessions.prompt("read", model=first)
    assert SECRET in as_text([message.to_wire() for message in answer.session.messages])
    monkeypatch.setenv("MY_SERVICE_TOKEN", SECRET)
    model = FakeModel([{"text": "Done."}])
    await workspace.sessions.prompt("more", model=model, session=answer.session)
    assert SECRET not in repr(model.requests)
    assert SECRET not in (await export_file(workspace, answer.session, tmp_path / "s.json")).read_text()


def test_logs_name_no_secret(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Workspace(tmp_path, data_dir=tmp_path / "data", store=False):
        log = logging.getLogger("opencode_jupyter.somewhere.made.later")
        try:
            raise ValueError(f"no {SECRET}")
        except ValueError:
            log.exception("failed with %s", SECRET)
        log.warning("an ordinary %s", "line")
    assert f"failed with {NAME}" in caplog.text
    assert "an ordinary line" in caplog.text
    assert f"ValueError: no {NAME}" in caplog.text
    assert SECRET not in caplog.text


def test_logs_without_a_handler_still_reach_the_terminal(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "import logging; from opencode_jupyter import Workspace; Workspace('.', data_dir='d', store=False);"
        "import os; logging.getLogger('opencode_jupyter.x').warning('say %s', os.environ['MY_SERVICE_TOKEN']);"
        "logging.getLogger('opencode_jupyter.x').info('quiet')"
    )
    root = str(Path(__file__).parents[3])
    process = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stderr == f"say {NAME}\n"


# ---------------------------------------------------------------------- off


@pytest.mark.anyio
async def test_only_the_users_own_configuration_switches_it_off(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(SECRET)
    off = {"experimental": {"mask_secrets": False}}
    (tmp_path / "opencode.json").write_text(json.dumps(off))
    for overrides, hidden in ((None, True), (off, False)):
        async with Workspace(tmp_path, overrides, tmp_path / "data", trust=True) as ws:
            assert ws.config.get("experimental", "mask_secrets") is False
            result = await ws.call("read", {"filePath": "a.txt"}, by="user")
            assert (SECRET in result.output) is not hidden
