"""``%permissions sandbox``, and what ``%tools doctor`` and the card say of the sandbox."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import InvalidArgumentsError
from opencode_jupyter.sandbox.confine import backend
from tests.support.shells import Shell, shell


@pytest.fixture
def ip(tmp_path: Path) -> Iterator[Shell]:
    if backend() is None:
        pytest.skip("no sandbox on this machine")
    with shell(tmp_path) as instance:
        yield instance


def profiles(ip: Shell, line: str) -> list[str]:
    return [row["profile"] for row in ip.run(line).records[:2]]


def test_the_profiles_are_shown_and_set_until_the_kernel_ends(ip: Shell) -> None:
    assert profiles(ip, "%permissions sandbox") == ["workspace-write", "off"]
    assert profiles(ip, "%permissions sandbox read-only") == ["read-only", "off"]
    with pytest.raises(InvalidArgumentsError, match="not strict"):
        ip.run("%permissions sandbox strict")
    assert profiles(ip, "%permissions sandbox read-only --user") == ["read-only", "read-only"]
    ip.run("r = %tool bash echo x > made")
    assert ip["r"].metadata["exit"] != 0
    assert not Path("made").exists()
    assert "may use the network" in repr(ip.run("%permissions sandbox --network"))
    assert profiles(ip, "%permissions sandbox default") == ["workspace-write", "off"]
    assert "no access to the network" in repr(ip.run("%permissions sandbox"))
    ip.run("r = %tool bash echo x > made")
    assert Path("made").read_text() == "x\n"


def test_the_doctor_names_what_the_machine_has(ip: Shell) -> None:
    rows = {row["check"]: row for row in ip.run("%tools doctor").records}
    assert str(backend()) in rows["sandbox"]["result"]
    assert "a model's commands: workspace-write" in rows["sandbox"]["result"]


def test_the_card_of_a_models_command_names_its_sandbox(ip: Shell) -> None:
    Path("opencode.json").write_text(json.dumps({"permission": {"bash": "allow"}}))
    ip.run("%tools reload")
    ip.run("%tools trust --project")
    call: Any = "ws_call('bash', {'command': 'true', 'description': 'does it'}, by='model')"
    ip.ip.user_ns["ws_call"] = ip.notebook.workspace.call_sync
    ip.run(call)
    card = next(data for data in ip.shown if "text/plain" in data and "bash" in data["text/plain"])
    expected = f"rule bash *: allow from opencode.json (sandbox: workspace-write, {backend()})"
    assert expected in card["text/plain"]
    assert expected in card["text/html"].replace("&#x27;", "'")
