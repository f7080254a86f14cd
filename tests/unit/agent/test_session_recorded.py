"""A session of a real OpenCode release, played again: a scripted provider says the same, the same comes of it.

``tests/data/sessions/`` holds the script and the export that OpenCode 1.18.33 made of it.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.agent.exchange import export
from tests.support.model_servers.openai import ScriptedServer

pytestmark = pytest.mark.anyio

DATA = Path(__file__).parents[2] / "data" / "sessions"
THEIRS = "/home/user/project"


def _data(name: str) -> Any:
    return json.loads((DATA / name).read_text())


def approve(request: Any) -> str:
    """As OpenCode was run: what asked there was refused. A model's bash and edits ask here and not there."""
    return "reject" if request.permission == "external_directory" else "once"


async def replayed(folder: Path) -> dict[str, Any]:
    """Ours, in the form of an export, with their folder in the place of ours."""
    script = _data("session_script.json")
    project = folder / "project"
    project.mkdir()
    for name, text in script["files"].items():
        (project / name).write_text(text)
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    turns = [
        {**turn, "calls": [[*call, f"call_{i}_{j}"] for j, call in enumerate(turn.get("calls", ()))]}
        for i, turn in enumerate(script["turns"])
    ]
    with ScriptedServer(turns) as server:
        config = {"provider": {"fake": {"options": {"baseURL": server.url, "apiKey": "k"}, "models": {"m": {}}}}}
        async with Workspace(project, config=config, data_dir=folder / "data", approve=approve) as workspace:
            answer = await workspace.sessions.prompt(script["prompt"], model="fake/m")
            assert answer.ended == "rejected"
            text = json.dumps(await export(workspace, answer.session))
    return json.loads(text.replace(str(project), THEIRS))


def _shape(message: dict[str, Any]) -> list[Any]:
    """What a message is made of: of each part its type, of a call its name, id, state, input and error."""
    parts_shape: list[Any] = []
    for part in message["parts"]:
        if part["type"] == "tool":
            state = part["state"]
            parts_shape.append(
                ("tool", part["tool"], part["callID"], state["status"], _input(part), state.get("error"))
            )
        elif part["type"] == "text":
            parts_shape.append(("text", part["text"].strip()))
        elif part["type"] == "patch":
            parts_shape.append(("patch", part["files"]))
        else:
            parts_shape.append((part["type"], part.get("reason"), "snapshot" in part))
    return parts_shape


def _input(part: dict[str, Any]) -> Any:
    """Ours has tools that theirs has not; the list of them in an error is left out."""
    arguments = part["state"]["input"]
    if part["tool"] == "invalid":
        return {**arguments, "error": re.sub(r"Available tools: .*", "Available tools: ...", arguments["error"])}
    return arguments


async def test_the_same_parts_states_names_errors_and_order(tmp_path: Path) -> None:
    ours, theirs = await replayed(tmp_path), _data("session_export_1.18.33.json")
    assert len(ours["messages"]) == len(theirs["messages"])
    for mine, recorded in zip(ours["messages"][1:], theirs["messages"][1:], strict=True):
        assert _shape(mine) == _shape(recorded)
        for key in ("role", "finish", "agent", "mode", "providerID", "modelID", "path", "cost"):
            assert mine["info"].get(key) == recorded["info"].get(key), key
        assert mine["info"]["parentID"] == ours["messages"][0]["info"]["id"]
        assert set(mine["info"]) == set(recorded["info"])


async def test_the_same_keys(tmp_path: Path) -> None:
    ours, theirs = await replayed(tmp_path), _data("session_export_1.18.33.json")
    missing = {key for key in theirs["info"] if key not in ours["info"]}
    assert missing <= {"permission", "path"}, "its command line's own rules, and an empty text"
    for mine, recorded in zip(ours["messages"], theirs["messages"], strict=True):
        for a, b in zip(mine["parts"], recorded["parts"], strict=True):
            assert set(b) - set(a) <= {"metadata"}
            assert set(b.get("state", {})) <= set(a.get("state", {}))


async def test_the_same_outputs(tmp_path: Path) -> None:
    ours, theirs = await replayed(tmp_path), _data("session_export_1.18.33.json")
    different = []
    for mine, recorded in zip(ours["messages"], theirs["messages"], strict=True):
        for a, b in zip(mine["parts"], recorded["parts"], strict=True):
            if a["type"] == "tool" and a["state"]["status"] == "completed":
                if a["state"]["output"].rstrip("\n") != b["state"]["output"].rstrip("\n"):
                    different.append((a["tool"], a["callID"]))
                elif a["tool"] != "bash":  # whose title is the description, as before release 1.18
                    assert a["state"]["title"] == b["state"]["title"]
    # The kept part of a cut output shows its start as well; the list of tools in `invalid` is longer.
    assert different == [("bash", "call_1_2"), ("invalid", "call_3_2")]
