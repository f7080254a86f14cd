"""What a recording leaves out: secrets, the home folder, the user's name, where it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.agent.scripted import Recorder, ScriptedModel, call, load, say
from opencode_jupyter.agent.scripted.replay import fingerprint, stable_text
from opencode_jupyter.agent.scripted.scrub import Scrubber, Secrets, secrets_of
from opencode_jupyter.agent.scripted.yaml_document import parse
from tests.support.script_player import Talk

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq\nabc\n-----END RSA PRIVATE KEY-----"
GITHUB = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("key sk-proj-abcdefghij0123456789 end", "key [secret-1] end"),
        ("sk-ant-" + "api03-Ab12Cd34Ef56Gh78", "[secret-1]"),
        (f"git clone https://jo:{GITHUB}@github.com/x", "git clone https://jo:[secret-1]@github.com/x"),
        (f"{GITHUB} and {GITHUB}", "[secret-1] and [secret-1]"),
        ("github_pat_11ABCDEFG0123456789_abcdefghij", "[secret-1]"),
        ("AKIAIOSFODNN7EXAMPLE", "[secret-1]"),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", None),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "AWS_SECRET_ACCESS_KEY=[secret-1]"),
        ("Authorization: Bearer abcdef0123456789", "Authorization: Bearer [secret-1]"),
        ('{"authorization": "Basic dXNlcjpwYXNzd29yZA=="}', '{"authorization": "Basic [secret-1]"}'),
        ("x-api-key: abcdef0123456789", "x-api-key: [secret-1]"),
        (JWT, "[secret-1]"),
        (f"before\n{KEY}\nafter", "before\n[secret-1]\nafter"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\ncut off", "[secret-1]"),
        ("password: 'hunter2'", "password: '[secret-1]'"),
        ('{"password": "hunter2"}', '{"password": "[secret-1]"}'),
        (r'{"command": "x --header \"api_key\": \"abcd1234\""}', None),
        ("PASSWORD=hunter22", "PASSWORD=[secret-1]"),
        ("db_password = 'it is long'", "db_password = '[secret-1]'"),
        ("mysql --password=hunter22 -u x", "mysql --password=[secret-1] -u x"),
        ("postgres://jo:s3cret@host/db", "postgres://jo:[secret-1]@host/db"),
        ("token: abc123def456", "token: [secret-1]"),
        ("hf_abcdefghijklmnopqrstuvwxyz", "[secret-1]"),
        ("xoxb-1234567890-abcdef", "[secret-1]"),
        ("AIzaSyA1234567890abcdefghijklmnopqrstuv", "[secret-1]"),
    ],
)
def test_what_looks_like_a_secret_is_hidden(text: str, hidden: str | None) -> None:
    got = Secrets(environment={}).hide(text)
    if hidden is not None:
        assert got == hidden
    else:
        assert got != text and "[secret-1]" in got


@pytest.mark.parametrize(
    "text",
    [
        "password = getpass.getpass()",
        "token = parse_token(line)",
        "max_tokens=4096 total_tokens: 123456",
        "api_key: null, password: None, secret = ''",
        'key = os.environ["API_KEY"]',
        "password: ${PASSWORD} token: $TOKEN api_key={env:KEY}",
        "the tokenizer splits tokens",
        "task-risk-sk-12",
        "https://example.com/path:80@x",
        "def password(self, token: str) -> None:",
        "git commit 3f786850e387550fdaa836ed7e6dc881de23001b",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert Secrets(environment={}).hide(text) == text


def test_secrets_of_the_environment_and_the_config() -> None:
    environment = {
        "OPENAI_API_KEY": "not-a-known-form-1",
        "DB_PASSWORD": "short",
        "HOME": "/home/jo-long",
        "X_TOKEN": "/etc",
    }
    secrets = Secrets(["from-the-config"], environment)
    text = "a not-a-known-form-1 b from-the-config c short /home/jo-long /etc not-a-known-form-1"
    assert secrets.hide(text) == "a [secret-1] b [secret-2] c short /home/jo-long /etc [secret-1]"
    config = {
        "provider": {"x": {"options": {"apiKey": "config-key-1", "baseURL": "http://x"}}},
        "mcp": {
            "a": {
                "headers": {"X-Special": "header-1", "Authorization": "Bearer header-2"},
                "environment": {"A": "env-1"},
            }
        },
        "other": {"apiKey": "{env:OPENAI_API_KEY}", "keybinds": {"leader": "ctrl+x"}, "model": "openai:gpt-5"},
    }
    assert sorted(secrets_of(config)) == ["config-key-1", "env-1", "header-1", "header-2"]


def test_numbers_go_on_behind_those_a_file_has() -> None:
    secrets = Secrets(environment={})
    secrets.skip("[secret-3] [secret-11]")
    assert secrets.hide(GITHUB) == "[secret-12]"
    assert secrets.hide("[secret-3]") == "[secret-3]"


@given(st.text(alphabet="abcKEY_=:'\"sk-0123456789 \n[]{}", max_size=60))
def test_hiding_twice_is_hiding_once(text: str) -> None:
    secrets = Secrets(environment={})
    once = secrets.hide(text)
    assert secrets.hide(once) == once


def test_folders_and_names() -> None:
    scrubber = Scrubber(Secrets(environment={}), "/home/johanna/work/lesson", home="/home/johanna", user="johanna")
    assert scrubber.text("/home/johanna/work/lesson/a.txt /home/johanna/b by johanna, /home/johannas johanna-x") == (
        "{{directory}}/a.txt ~/b by ~, /home/johannas johanna-x"
    )
    assert scrubber.template_text("{{x}} /home/johanna") == "\\{{x}} ~"
    assert scrubber.arguments('{"a": "/home/johanna/x {{y}}", "b": "/home/johanna/work/lesson"}') == (
        '{"a": "{{home}}/x \\{{y}}", "b": "{{directory}}"}'
    )
    root = Scrubber(Secrets(environment={}), "/", home="/root", user="root")
    assert root.text("root owns / and /root/x, /x") == "root owns / and ~/x, /x"
    windows = Scrubber(Secrets(environment={}), "C:\\Users\\jo\\x", home="C:\\Users\\jo", user="jo")
    assert windows.arguments('{"a": "C:\\\\Users\\\\jo\\\\x\\\\b.txt"}') == '{"a": "{{directory}}\\\\b.txt"}'


@pytest.mark.parametrize(
    ("then", "now", "same"),
    [
        ("took 0.31 s", "took 12.5 s", True),
        ("at 2026-11-22T08:30:00Z", "at 2025-01-02 09:00:01", True),
        ("Nov 22 08:30 a.txt", "Jan 3 09:12 a.txt", True),
        ("pid 123", "pid 99999", True),
        ("/tmp/abc/x.py: ok", "/var/folders/1/2/x.py: ok", True),
        ("<object at 0x7f0011223344>", "<object at 0x7fffffffffff>", True),
        ("ses_1a2b3c done", "ses_9z8y7x done", True),
        ("a  \nb\n", "a\nb", True),
        ("[secret-1]", "[secret-7]", True),
        ("3 passed in 0.10s", "3 passed in 0.20s", True),
        ("3 passed in 0.10s", "2 passed in 0.10s", False),
        ("area is 12.56", "area is 12.57", False),
        ("tool_output = 1", "tool_result = 1", False),
        ("a.txt", "b.txt", False),
    ],
)
def test_what_changes_from_run_to_run_is_no_difference(then: str, now: str, same: bool) -> None:
    assert (stable_text(then) == stable_text(now)) is same
    assert (fingerprint(then) == fingerprint(now)) is same


@pytest.mark.anyio
async def test_a_recording_holds_no_secret_and_plays_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCODE_JUPYTER_SCRIPT_SPEED", "0")
    monkeypatch.setenv("HOME", "/home/johanna")
    monkeypatch.setenv("LOGNAME", "johanna")
    monkeypatch.setenv("MY_API_KEY", "very-own-key-form")
    first, second = tmp_path / "first", tmp_path / "second"
    inner = ScriptedModel(
        [
            say(
                f"I use {GITHUB}.",
                call("read", filePath=f"{first}/a.txt", note="very-own-key-form"),
                call("bash", f"{first} {KEY}"),
            ),
            say("johanna, see /home/johanna/x: " + JWT),
        ]
    )

    def talk_in(folder: Path, model: Any) -> Talk:
        def answer(tool: str, arguments: str) -> str:
            return f"{folder}/a.txt of johanna holds very-own-key-form and password='hunter22'"

        return Talk(model, answer, directory=str(folder))

    path = tmp_path / "lesson.yaml"
    await talk_in(first, Recorder(inner, path)).prompt(f"Take very-own-key-form in {first}")
    text = path.read_text()
    for secret in (GITHUB, "very-own-key-form", "MIIEpAIB", JWT, "hunter22", "johanna", str(first)):
        assert secret not in text
    assert text.count("[secret-1]") >= 3  # the same one, the same placeholder
    parse(text, "lesson")
    model = load(path)
    parts = await talk_in(second, model).prompt(f"Take very-own-key-form in {second}")
    assert json.loads(parts[1][2])["filePath"] == f"{second}/a.txt"
    assert parts[2][2].startswith(f"{second} [secret-")
    assert parts[-1][1].startswith("~, see ~/x: [secret-")
    assert model.differences == []
