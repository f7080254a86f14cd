"""The panel of MCP servers: driven without waiting, its end nudged; logging in by an address; no secret told."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter.jupyter.panel import Panel
from tests.support.auth_server import auth_server, browse
from tests.support.mcp import local
from tests.support.mcp_remote import mcp_remote
from tests.support.shells import Shell, shell

TOKEN = "very-secret-token-1"


class Page:
    """A page that asks the kernel and hears its nudges."""

    def __init__(self, ip: Shell) -> None:
        self.nudges: list[dict[str, Any]] = []
        self.panel = Panel(ip.notebook, lambda content: self.nudges.append(content) is None)
        self.answers = ""

    def request(self, operation: str, **fields: Any) -> dict[str, Any]:
        answer = self.panel.on_message({"what": operation, **fields})
        self.answers += json.dumps(answer)
        return answer

    def server(self, name: str) -> dict[str, Any]:
        return next(row for row in self.request("servers")["servers"] if row["server"] == name)

    def wait(self, name: str, **expected: Any) -> dict[str, Any]:
        """Ask whenever a nudge has come, as pages do, until the server is as wanted."""
        deadline, count = time.monotonic() + 30, -1
        while True:
            if len(self.nudges) != count:
                count = len(self.nudges)
                server_row = self.server(name)
                if all(server_row[key] == value for key, value in expected.items()):
                    return server_row
            assert time.monotonic() < deadline, (expected, server_row)
            time.sleep(0.01)


@pytest.fixture
def ip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    monkeypatch.setenv("OPENCODE_TEST_HOME", str(tmp_path))
    with shell(tmp_path) as instance:
        instance.run("%tools")
        yield instance


@pytest.fixture
def page(ip: Shell) -> Iterator[Page]:
    opened = Page(ip)
    yield opened
    opened.panel.disconnect()


def test_a_program_is_started_and_ended(ip: Shell, page: Page) -> None:
    assert page.request("servers") == {"servers": []}
    ip.run(f"%mcp add demo --env API_TOKEN={TOKEN} -- {' '.join(local('demo.py')['command'])}")
    assert page.server("demo")["tools"] == 8
    assert page.request("server_disconnect", name="demo") == {}
    page.wait("demo", status="disabled", busy="")
    assert page.request("server_connect", name="demo") == {}
    server = page.wait("demo", status="connected", busy="")
    assert (server["tools"], server["said"], server["signsIn"]) == (8, "", False)
    assert "no MCP server" in page.request("server_connect", name="other")["error"]
    assert TOKEN not in page.answers


def test_a_tool_of_a_cell_nudges(ip: Shell, page: Page) -> None:
    page.request("tools")
    time.sleep(0.3)
    page.nudges.clear()
    ip.run("from opencode_jupyter import tool\n@tool\ndef fresh() -> str:\n    'New.'\n    return ''")
    deadline = time.monotonic() + 10
    while not any("tools" in nudge["topics"] for nudge in page.nudges):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_program_that_fails_says_why(ip: Shell, page: Page) -> None:
    code = f"import sys; sys.stderr.write('broken {TOKEN}'); sys.exit(3)"
    ip.run(f'%mcp add bad --env API_TOKEN={TOKEN} -- python -c "{code}"')
    page.request("server_connect", name="bad")
    server = page.wait("bad", status="failed", busy="")
    assert server["said"] and "broken ***" in "\n".join(server["log"])
    assert TOKEN not in page.answers


def test_a_projects_server_is_not_started_before_it_is_trusted(ip: Shell, page: Page) -> None:
    Path("opencode.json").write_text(json.dumps({"mcp": {"theirs": {"type": "local", "command": ["sleep", "1"]}}}))
    ip.run("%tools reload")
    page.request("server_connect", name="theirs")
    server = page.wait("theirs", busy="", trust="not trusted")
    assert "run %tools trust" in server["said"]
    assert "not trusted yet" in page.request("server_sign_in", name="theirs")["error"]


def test_signing_in_and_out(ip: Shell, page: Page) -> None:
    with auth_server() as authorization, mcp_remote(authorization) as url:
        ip.run(f"%mcp add far {url}")
        assert page.server("far")["status"] == "needs_auth"
        assert "No login" in page.request("server_code", name="far", address="x")["error"]
        assert page.request("server_sign_in", name="far") == {}
        page.wait("far", busy="signing in")
        deadline = time.monotonic() + 20
        while not ((login := page.server("far")["login"]) and login["url"]):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert login["url"].startswith(f"{authorization.url}/as/authorize?")
        assert (login["host"], login["comesBack"], login["unencrypted"]) == ("127.0.0.1", True, False)
        assert "contains no code" in page.request("server_code", name="far", address="http://x/")["error"]
        back = browse(login["url"], follow=False)
        assert page.request("server_code", name="far", address=back) == {}
        server = page.wait("far", status="connected", busy="", login=None)
        assert (server["said"], server["tools"]) == ("Logged in at far.", 1)
        assert page.request("server_sign_out", name="far") == {}
        server = page.wait("far", busy="", status="disabled")
        assert "was removed here" in server["said"]
        page.request("server_sign_in", name="far")
        page.wait("far", busy="signing in")
        assert page.request("server_cancel", name="far") == {}
        assert "cancelled" in page.wait("far", busy="", login=None)["said"]
        tokens = [*authorization.access, *authorization.refresh]
        assert tokens and not any(token in page.answers for token in tokens)
