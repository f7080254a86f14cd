"""``%mcp`` in a plain shell, with real servers: a program on this machine, and a remote one over loopback."""

from __future__ import annotations

import json
import time
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Attachment, InvalidArgumentsError, ToolError, ToolResult
from opencode_jupyter.jupyter.magics import mcp_login
from opencode_jupyter.jupyter.magics.mcp_resources import Content
from opencode_jupyter.mcp import McpServers
from tests.support.auth_server import AuthServer, auth_server, browse
from tests.support.mcp import local
from tests.support.mcp_remote import mcp_remote
from tests.support.shells import Shell, shell

DEMO = " ".join(local("demo.py")["command"])


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A shell for the tests that leave nothing behind."""
    folder = tmp_path_factory.mktemp("mcp")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
        patch.setenv("OPENCODE_TEST_HOME", str(folder))
        with shell(folder) as instance:
            yield instance


@pytest.fixture
def remote() -> Iterator[tuple[AuthServer, str]]:
    with auth_server() as authorization, mcp_remote(authorization) as url:
        yield authorization, url


def row(table: Any) -> dict[str, Any]:
    (record,) = table.records
    return dict(record)


def test_a_program_from_its_addition_to_its_end(ip: Shell) -> None:
    assert ip.run("%mcp").records == []
    added = row(ip.run(f"%mcp add demo --env NOTE='a b' -- {DEMO}"))
    assert (added["server"], added["status"], added["transport"], added["trust"]) == (
        "demo",
        "connected",
        "stdio",
        "yours",
    )
    assert added["tools"] > 5
    names = [r["tool"] for r in ip.run("%mcp tools demo")]
    assert "demo_add" in names
    assert "demo_add" in [r["tool"] for r in ip.run("%tools")]
    ip.run("%permissions allow demo_*")
    assert ip.run("r = %tool -q demo_add 40 2\nr.output") == "42"
    assert ip.run("r = %tool -q demo_environment NOTE\nr.output") == "a b"

    prompts = ip.run("%mcp prompts demo")
    assert [(r["prompt"], r["arguments"]) for r in prompts] == [("demo/greet", ["name"])]
    assert "%mcp prompt demo/greet name=..." in repr(prompts)
    assert ip.run("%mcp prompt demo/greet name='Ada L.'") == "Say hello to Ada L.."
    assert ip.run("%mcp prompt demo greet name=Ada") == "Say hello to Ada."
    with pytest.raises(InvalidArgumentsError, match="demo/greet wants name and has no nme"):
        ip.run("%mcp prompt demo/greet nme=x")
    with pytest.raises(InvalidArgumentsError, match="Did you mean demo/greet"):
        ip.run("%mcp prompt demo/gret name=x")
    resources = ip.run("%mcp resources")
    assert [(r["server"], r["uri"]) for r in resources] == [("demo", "demo://motto")]
    assert str(ip.run("%mcp read demo demo://motto")) == "Slow and steady."
    assert repr(ip.run("%mcp read demo demo://motto")) == "Slow and steady."
    with pytest.raises(ToolError):
        ip.run("%mcp read demo demo://other")

    assert row(ip.run("%mcp disconnect demo"))["status"] == "disabled"
    assert row(ip.run("%mcp"))["status"] == "disabled"
    for line in ("%mcp tools demo", "%mcp prompts demo"):
        with pytest.raises(ToolError, match="switched off; start it: %mcp connect demo"):
            ip.run(line)
    assert row(ip.run("%mcp connect demo"))["status"] == "connected"
    assert ip.run("%mcp remove demo") == "Removed demo."
    assert ip.run("%mcp list").records == []
    assert "demo_add" not in [r["tool"] for r in ip.run("%tools")]


def test_a_program_that_fails_says_why(ip: Shell) -> None:
    odd = " ".join(local("odd.py")["command"])
    table = ip.run(f"%mcp add odd -- {odd} exit")
    assert row(table)["status"] == "failed"
    assert "no config found" in row(table)["note"]
    assert "%mcp logs odd" in repr(table)
    assert "no config found" in ip.run("%mcp logs odd")
    table = ip.run("%mcp add none -- /no/such/program")
    assert "does not exist" in row(table)["note"]


def test_the_logs_end(ip: Shell) -> None:
    odd = " ".join(local("odd.py")["command"])
    ip.run(f"%mcp add odd -- {odd}")
    ip.run("%permissions allow odd_*")
    ip.run("r = %tool -q odd_flood size:=70")
    lines = ip.run("%mcp logs odd -n 3").splitlines()
    assert len(lines) == 4
    assert "earlier lines: %mcp logs odd -n" in lines[0]
    assert "line 69" in lines[-1]
    assert len(ip.run("%mcp logs -n=60 odd").splitlines()) == 61


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%mcp lsit", "Did you mean %mcp list?"),
        ("%mcp connect", "Which server? %mcp connect NAME"),
        ("%mcp connect dmo", "There is no MCP server dmo. No MCP server yet: %mcp add"),
        ("%mcp list x", "x is not understood here"),
        ("%mcp add", "Which server?"),
        ("%mcp add 'a b' https://example.org", "is no name for a server"),
        ("%mcp add time uvx mcp-server-time", "Did you mean: %mcp add time -- uvx mcp-server-time"),
        ("%mcp add time", "Nothing is not a URL"),
        ("%mcp add time --", "Give a command after --"),
        ("%mcp add time -- uvx 'x", "no closing quotation"),
        ("%mcp add time --header A=b -- uvx x", "for a server with a URL"),
        ("%mcp add time https://example.org --env A=b", "a URL takes --header"),
        ("%mcp add time https://example.org --header A", "--header needs KEY=VALUE, not A"),
        ("%mcp add time https://example.org --header", "--header needs a value"),
        ("%mcp add time https://example.org --timeout soon", "number of seconds"),
        ("%mcp add time https://example.org extra", "extra is not understood"),
        ("%mcp add time https://example.org --header A={env:NOT_SET_AT_ALL}", "NOT_SET_AT_ALL"),
        ("%mcp logs x -n many", "-n takes a whole number above 0, not many"),
        ("%mcp auth", "Which server?"),
        ("%mcp auth x --code", "--code needs a value"),
        ("%mcp prompt", "Which prompt?"),
        ("%mcp read", "Which server?"),
    ],
)
def test_errors_are_one_clear_sentence(shared: Shell, line: str, message: str) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        shared.run(line)
    assert message in str(caught.value)
    assert "Traceback" not in shared.printed


def test_what_a_resource_holds_is_shown_in_measure() -> None:
    result = ToolResult(
        output="\x1b]0;x\x07" + "é" * 30_000, attachments=[Attachment.from_bytes(b"\x89PNG", "image/png")]
    )
    content = Content("demo://x", result)
    assert len(repr(content)) < 21_000
    assert "30,006 characters; .text has all of them" in repr(content)
    assert "\x1b" not in repr(content)
    assert "[image/png: .attachments[0].data]" in repr(content)
    assert content._repr_mimebundle_()["image/png"] == "iVBORw=="
    assert content.attachments[0].data == b"\x89PNG"
    assert repr(Content("demo://x", ToolResult())) == "demo://x is empty."


def test_names_that_are_nearly_right(ip: Shell) -> None:
    Path("opencode.json").write_text(
        json.dumps({"mcp": {"tracker": {"type": "local", "command": ["x"]}, "off": {"enabled": False}}})
    )
    ip.notebook.on_engine(ip.notebook.workspace.reload_config)
    with pytest.raises(InvalidArgumentsError, match="Did you mean tracker"):
        ip.run("%mcp connect trackr")
    with pytest.raises(ToolError, match="%tools trust"):
        ip.run("%mcp connect tracker")
    rows = {r["server"]: r for r in ip.run("%mcp")}
    assert rows["tracker"]["trust"] == "not trusted"
    assert rows["tracker"]["source"] == "opencode.json"
    assert rows["off"]["status"] == "disabled"
    ip.notebook.workspace.trust.grant(ip.notebook.workspace.service(McpServers).specs()["tracker"].subject())
    with pytest.raises(ToolError, match="does not use logins"):
        ip.run("%mcp auth tracker")
    with pytest.raises(ToolError, match="remove tracker --save"):
        ip.run("%mcp remove tracker")
    assert "also from opencode.json" in ip.run("%mcp remove tracker --save")
    assert json.loads(Path("opencode.json").read_text()) == {"mcp": {"off": {"enabled": False}}}


def test_what_is_saved(ip: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("opencode.json").write_text('{\n\t"model": "a/b"\n}\n')
    table = ip.run(f"%mcp add demo --save --timeout 20 --env API_KEY=sesame -- {DEMO}")
    assert row(table)["status"] == "connected"  # whoever typed it trusts it
    assert "It holds API_KEY as text; {env:API_KEY}" in repr(table)
    assert json.loads(Path("opencode.json").read_text()) == {
        "model": "a/b",
        "mcp": {
            "demo": {
                "type": "local",
                "command": DEMO.split(),
                "environment": {"API_KEY": "sesame"},
                "timeout": 20000,
            }
        },
    }
    assert row(ip.run("%mcp"))["trust"] == "trusted"
    assert "sesame" not in repr(ip.run("%mcp"))

    monkeypatch.setenv("TOKEN_OF_ME", "hidden-value")
    ip.run("%mcp add far http://127.0.0.1:9/mcp --global --header 'Authorization: Bearer {env:TOKEN_OF_ME}'")
    own = tmp_path / "config_home/opencode/opencode.json"
    assert json.loads(own.read_text())["mcp"] == {
        "far": {
            "type": "remote",
            "url": "http://127.0.0.1:9/mcp",
            "headers": {"Authorization": "Bearer {env:TOKEN_OF_ME}"},
        }
    }
    rows = {r["server"]: r for r in ip.run("%mcp")}
    assert rows["far"]["status"] == "failed"
    assert rows["far"]["trust"] == "yours"
    assert "hidden-value" not in repr(ip.run("%mcp"))
    assert "Replaces the one from" in repr(ip.run("%mcp add far http://127.0.0.1:9/sse --sse"))
    assert "config_home/opencode/opencode.json still defines it" in ip.run("%mcp remove far")
    ip.run("%mcp remove far --save")
    assert json.loads(own.read_text())["mcp"] == {}
    ip.run("%mcp remove demo --save")
    assert ip.run("%mcp").records == []


def test_a_file_with_comments_is_left(ip: Shell) -> None:
    Path("opencode.json").write_text("{ // mine\n}\n")
    ip.run("%mcp add far http://127.0.0.1:9/mcp --save")
    assert Path("opencode.json").read_text() == "{ // mine\n}\n"
    assert "far" in json.loads(Path(".opencode/opencode.json").read_text())["mcp"]
    Path(".opencode/opencode.json").write_text("{ // mine, too\n}\n")
    with pytest.raises(ToolError, match=r'add "near": \{"type": "remote".* to its "mcp" yourself'):
        ip.run("%mcp add near http://127.0.0.1:9/mcp --save")


def test_completion(ip: Shell) -> None:
    Path("opencode.json").write_text(json.dumps({"mcp": {"tracker": {"type": "local", "command": ["x"]}}}))
    ip.notebook.on_engine(ip.notebook.workspace.reload_config)
    assert ip.complete("%mcp dis") == ["%mcp disconnect"]
    assert "%mcp prompts" in ip.complete("%mcp p")
    assert ip.complete("%mcp connect tr") == ["%mcp connect tracker"]
    assert ip.complete("%mcp prompt tr") == ["%mcp prompt tracker/"]
    assert ip.complete("%mcp auth tracker --f") == ["%mcp auth tracker --forget"]
    assert "%mcp add --header" in ip.complete("%mcp add --")
    assert ip.complete("%mcp logs -n 5 tr") == ["%mcp logs -n 5 tracker"]


# ------------------------------------------------------------------ logging in


def test_a_login_without_a_browser_here(ip: Shell, remote: tuple[AuthServer, str]) -> None:
    authorization, url = remote
    table = ip.run(f"%mcp add far {url}")
    assert row(table)["status"] == "needs_auth"
    assert "%mcp auth far" in row(table)["note"]
    link = ip.run("link = %mcp auth far\nlink")
    assert link.url in repr(link)
    assert 'rel="noopener noreferrer"' in link._repr_html_()
    assert "(on 127.0.0.1)" in repr(link)
    assert "not encrypted" not in repr(link)
    assert "not encrypted" in repr(mcp_login.LoginLink("far", "http://example.org/<x>", False, False))
    assert "<x>" not in mcp_login.LoginLink("<far>", "http://example.org/<x>", False, False)._repr_html_()
    back = browse(link.url, follow=False)
    with pytest.raises(ToolError, match="another login"):
        ip.run(f"%mcp auth far --code {back}x")
    table = ip.run(f"%mcp auth far --code {back}")
    assert row(table)["status"] == "connected"
    assert "Logged in at far." in repr(table)
    ip.run("%permissions allow far_*")
    assert ip.run("r = %tool -q far_double 21\nr.output") == "42"
    with pytest.raises(ToolError, match="No login at far is under way"):
        ip.run(f"%mcp auth far --code {back}")
    assert "logged in at far already" in ip.run("%mcp auth far")
    # the token ends in the middle: it is renewed under a call
    authorization.expire()
    assert ip.run("r = %tool -q far_double 4\nr.output") == "8"
    assert "was removed here" in ip.run("%mcp auth far --forget")
    assert "No login at far is stored" in ip.run("%mcp auth far --forget")
    assert row(ip.run("%mcp connect far"))["status"] == "needs_auth"


def test_a_login_that_comes_back_by_itself(ip: Shell, remote: tuple[AuthServer, str]) -> None:
    _, url = remote
    ip.run(f"%mcp add far {url}")
    link = ip.run("link = %mcp auth far\nlink")
    assert "close this page" in browse(link.url)
    while row(ip.run("%mcp"))["status"] != "connected":
        time.sleep(0.01)


def test_a_cell_waits_for_the_browser_of_this_machine(
    ip: Shell, remote: tuple[AuthServer, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, url = remote
    ip.run(f"%mcp add far {url}")
    monkeypatch.setattr(ip.notebook, "is_attended", lambda: True)
    monkeypatch.setattr(mcp_login, "can_browse", lambda: True)
    monkeypatch.setattr(webbrowser, "open", lambda address: bool(browse(address)))
    table = ip.run("%mcp auth far")
    assert row(table)["status"] == "connected"
    assert "Logged in at far." in repr(table)


def test_an_interrupt_ends_the_waiting_and_not_the_login(
    ip: Shell, remote: tuple[AuthServer, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import _thread

    _, url = remote
    ip.run(f"%mcp add far {url}")
    monkeypatch.setattr(ip.notebook, "is_attended", lambda: True)
    monkeypatch.setattr(mcp_login, "can_browse", lambda: True)
    opened: list[str] = []

    def open_(address: str) -> bool:
        opened.append(address)
        _thread.interrupt_main()
        return True

    monkeypatch.setattr(webbrowser, "open", open_)
    with pytest.raises(KeyboardInterrupt):
        ip.run("%mcp auth far")
    back = browse(opened[0], follow=False)
    assert row(ip.run(f"%mcp auth far --code {back}"))["status"] == "connected"


def test_whether_there_is_a_browser_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*mcp_login.REMOTE_VARIABLES, "DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(mcp_login.os.path, "exists", lambda _: False)
    monkeypatch.setattr(mcp_login.sys, "platform", "linux")
    assert not mcp_login.can_browse()
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "get", lambda: webbrowser.BackgroundBrowser("firefox"))
    assert mcp_login.can_browse()
    monkeypatch.setattr(webbrowser, "get", lambda: webbrowser.GenericBrowser("/usr/bin/w3m"))
    assert not mcp_login.can_browse()
    monkeypatch.setattr(webbrowser, "get", lambda: webbrowser.BackgroundBrowser("firefox"))
    monkeypatch.setenv("SSH_CONNECTION", "x")
    assert not mcp_login.can_browse()
