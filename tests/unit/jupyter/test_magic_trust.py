"""Tools of files in a notebook: asked for before a line is read, listed with the reason, trusted and revoked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import InvalidArgumentsError, PermissionRejectedError, UnknownToolError
from opencode_jupyter.core.permission import PermissionRequest
from opencode_jupyter.jupyter.cards.approval_json import RequestView, digest_of
from opencode_jupyter.jupyter.kernel.reply_channels import prompt_text, unattended_denial
from opencode_jupyter.jupyter.magics.tool_line import tool_of
from tests.support.shells import Shell, shell
from tests.support.tool_files import write

CARD = "application/vnd.opencode.toolpart.v1+json"
WEATHER = "def weather(city: str, days: int = 1) -> str:\n    'Says the weather.'\n    return f'{city} {days} sunny'\n"


@pytest.fixture
def ip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with shell(tmp_path.resolve()) as instance:
        Path(".git").mkdir()
        instance.notebook.workspace.change_directory(Path.cwd())
        yield instance


def theirs(name: str, text: str) -> Path:
    return write(Path.cwd() / ".opencode" / name, text)


def own(ip: Shell, name: str, text: str) -> Path:
    return write(ip.notebook.workspace.config.directories[0] / name, text)


def cards(ip: Shell) -> list[dict[str, Any]]:
    return [data[CARD] for data in ip.shown if CARD in data]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("weather Bonn", "weather"),
        ("-q -o x --timeout 3 weather Bonn", "weather"),
        ("--agent=build weather", "weather"),
        ("weather?", "weather?"),
        ("'my tool' x", "my tool"),
        ("", None),
        ("-q", None),
        ("--nonsense x", None),
        ("city=Bonn", None),
        ("{}", None),
    ],
)
def test_the_name_in_a_line(line: str, name: str | None) -> None:
    assert tool_of(line) == name


def test_own_files_work_like_any_tool(ip: Shell) -> None:
    path = own(ip, "tool/weather.py", WEATHER)
    assert ip.run("%tool weather Bonn days=3").output == "Bonn 3 sunny"
    assert [c["tool"] for c in cards(ip)] == ["weather"]
    path.write_text(WEATHER.replace("sunny", "rain").replace("city", "town"))
    assert ip.run("def f():\n    r = %tool weather town=Bonn\n    return r\nf()").output == "Bonn 1 rain"
    assert "town" in repr(ip.run("%tool weather?"))
    rows = {row["tool"]: row for row in ip.run("%tool").records}
    assert rows["weather"]["source"].endswith("opencode/tool/weather.py")
    assert rows["weather"]["description"] == "Says the weather."
    doctor = repr(ip.run("%tools doctor"))
    assert "weather" in doctor


def test_nobody_is_there_to_trust(ip: Shell) -> None:
    path = theirs("tool/weather.py", WEATHER)
    for line in ("%tool weather Bonn", "def f():\n    %tool weather Bonn\nf()"):
        with pytest.raises(PermissionRejectedError, match=r"To trust it: %tools trust .*weather.py"):
            ip.run(line)
    assert ip.notebook.workspace.trust.entries() == []
    for line in ("%tool weather?", "%tool --dry-run weather Bonn"):
        with pytest.raises(UnknownToolError, match="not trusted yet; run %tools trust"):
            ip.run(line)
    rows = {row["tool"]: row for row in ip.run("%tools list").records}
    assert rows["weather"]["now"] == "unavailable"
    assert rows["weather"]["by"] == "not trusted yet; run %tools trust"
    assert "%tool weather" in ip.complete("%tool wea")
    assert "not trusted yet" in repr(ip.run("%tools doctor"))
    assert path.exists()


def test_a_policy_trusts_for_the_time_being(ip: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs("tool/weather.py", WEATHER)
    monkeypatch.setenv("OPENCODE_JUPYTER_ON_ASK", "allow")
    assert ip.run("%tool weather Bonn").output == "Bonn 1 sunny"
    monkeypatch.delenv("OPENCODE_JUPYTER_ON_ASK")
    assert ip.run("%tool weather Bonn").output == "Bonn 1 sunny"
    assert ip.notebook.workspace.trust.entries() == []


def test_an_ask_is_a_card_of_its_own(ip: Shell) -> None:
    theirs("tool/weather.py", WEATHER)
    requests: list[PermissionRequest] = []

    def approve(request: PermissionRequest) -> str:
        requests.append(request)
        return "once"

    ip.notebook.broker.close()  # a plain shell has nobody: the approver answers in the place of a person
    ip.notebook.workspace.permissions.approve = approve
    result = ip.run("r = %tool weather Bonn\nr")
    assert result.output == "Bonn 1 sunny"
    assert [r.permission for r in requests] == ["trust"]
    assert ip.run("%tool weather Bonn").output == "Bonn 1 sunny"
    assert len(requests) == 1
    history = ip.run("%tools history").records
    assert [row["tool"] for row in history] == ["trust", "weather", "weather"]


def test_trusting_and_revoking(ip: Shell) -> None:
    path = theirs("tool/weather.py", WEATHER)
    theirs("tool/other.py", WEATHER.replace("weather", "other", 1))
    theirs("tools.py", WEATHER.replace("weather", "third", 1))
    waiting = ip.run("%tools trust")
    assert [row["trust"] for row in waiting] == [
        ".opencode/tool/other.py",
        ".opencode/tool/weather.py",
        ".opencode/tools.py",
    ]
    assert waiting[1]["gives"] == "weather"
    assert "Says the weather." in waiting[1]["begins"]
    assert ip.notebook.workspace.trust.entries() == []
    trusted = ip.run("%tools trust weather .opencode/tools.py")
    assert [row["gives"] for row in trusted] == ["weather", "third"]
    assert ip.run("%tool weather Bonn").output == "Bonn 1 sunny"
    with pytest.raises(
        InvalidArgumentsError, match=r"nowhere does not need your trust. Choose from: .opencode/tool/other.py"
    ):
        ip.run("%tools trust nowhere")
    assert len(ip.run("%tools trust --all")) == 1
    assert len(ip.run("%tools trust")) == 0
    assert len(ip.run("%tools trust --list")) == 3
    for name in ("weather", ".opencode/tool/other.py", str(path.parent.parent / "tools.py")):
        assert len(ip.run(f"%tools trust --revoke {name}")) == 1
        with pytest.raises(InvalidArgumentsError, match="is not trusted"):
            ip.run(f"%tools trust --revoke {name}")
    assert len(ip.run("%tools trust --list")) == 0
    with pytest.raises(PermissionRejectedError):
        ip.run("%tool weather Bonn")


def test_odd_lines(ip: Shell) -> None:
    for line in ("--what", "--all x", "--list x", "--revoke", "--all --list"):
        with pytest.raises(InvalidArgumentsError):
            ip.run(f"%tools trust {line}")


def test_a_broken_file_is_listed(ip: Shell) -> None:
    own(ip, "tool/bad.py", "x = 1\nx.y\n")
    own(ip, "tool/weather.py", WEATHER)
    assert ip.run("%tool weather Bonn").output == "Bonn 1 sunny"
    rows = {row["tool"]: row for row in ip.run("%tool").records}
    assert rows["bad_*"]["by"] == "AttributeError: 'int' object has no attribute 'y' (line 2)"
    assert "line 2: AttributeError" in repr(ip.run("%tools doctor").records)
    with pytest.raises(UnknownToolError, match="AttributeError"):
        ip.run("%tool bad_thing")


def test_completion_loads_in_the_background(ip: Shell) -> None:
    own(ip, "tool/weather.py", WEATHER)
    ip.complete("%tool wea")
    until = time.monotonic() + 20
    while "%tool weather" not in ip.complete("%tool wea"):
        assert time.monotonic() < until, "weather was not offered"
        time.sleep(0.02)
    assert "%tool weather city=" in ip.complete("%tool weather ci")
    theirs("tool/more.py", WEATHER.replace("weather", "more", 1))
    ip.run("%tools trust")
    assert ip.complete("%tools trust mo") == ["%tools trust more"]
    assert "%tools trust --revoke" in ip.complete("%tools trust --")


def request() -> PermissionRequest:
    metadata = {
        "kind": "tool file",
        "filepath": "/p/.opencode/tool/x.py",
        "content": "line\n" * 60,
        "ids": ["x", "x_y"],
    }
    return PermissionRequest(
        id="per_1", session_id="ses_1", permission="trust", patterns=["/p/.opencode/tool/x.py"], metadata=metadata,
        always=[], tool=None, agent="build", rule=None, asked=0, rules=[],
    )  # fmt: skip


def test_the_card_shows_the_code() -> None:
    view = RequestView(request(), digest_of(request())).to_json()["ask"]
    assert view["command"] == "tool file, gives x, x_y\n\n" + "line\n" * 60
    assert view["patterns"] == ["/p/.opencode/tool/x.py"]
    assert "path" not in view


def test_the_prompt_shows_its_beginning() -> None:
    text = prompt_text(request())
    assert text.startswith(
        "Trust this project's code until it changes? /p/.opencode/tool/x.py\ntool file, gives x, x_y\n\nline\n"
    )
    assert "more lines" in text
    assert "permission" not in unattended_denial(request())


def test_a_list_does_not_wait_for_ever(ip: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    from opencode_jupyter.jupyter.magics import tool_preparation

    monkeypatch.setattr(tool_preparation, "LISTING", 0.2)
    own(ip, "tool/slow.py", "import threading\nthreading.Event().wait(1)\n" + WEATHER)
    assert "read" in [row["tool"] for row in ip.run("%tool").records]
    assert ip.run("%tool slow_weather Bonn").output == "Bonn 1 sunny"  # a call waits as long as it takes


def test_a_batch_finds_tools_of_files(ip: Shell) -> None:
    own(ip, "tool/weather.py", WEATHER)
    result = ip.run(
        'r = %tool batch tool_calls:=[{"tool": "weather", "parameters": {"city": "Bonn"}},'
        ' {"tool": "nothing", "parameters": {}}]\nr'
    )
    assert [row["success"] for row in result.records] == [True, False]
