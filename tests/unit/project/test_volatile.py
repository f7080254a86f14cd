"""The same result gives the same saved output; ids and times are in its metadata."""

from __future__ import annotations

import json
from typing import Any

import opencode_jupyter.jupyter.tools  # noqa: F401 - the card of python
from opencode_jupyter.core.call_state import Completed, ToolPart
from opencode_jupyter.core.card_spec import command_description, summary_line
from opencode_jupyter.jupyter.cards.call_mimebundle import settled_bundle
from opencode_jupyter.jupyter.cards.labels import label_of


def card(run: str) -> dict[str, Any]:
    session = "ses_0123456789ab" + run * 14
    time = {"start": int(run), "end": int(run) * 900}
    state = {"status": "completed", "input": {}, "output": f"a\n\nb {session}", "time": time, "metadata": {"exit": 1}}
    ui = {"label": "x", "by": "user", "waited": int(run), "decisions": [], "outcome": "completed"}
    ids = {name: f"{name}{run}" for name in ("id", "callID", "messageID")}
    return {"v": 1, **ids, "sessionID": session, "tool": "bash", "state": state, "ui": ui}


def test_the_same_result_is_saved_alike() -> None:
    (first, metadata), (second, _) = settled_bundle(card("1")), settled_bundle(card("2"))
    assert json.dumps(first) == json.dumps(second)
    assert metadata["opencode"]["callID"] == "callID1"
    assert metadata["opencode"]["state"]["time"] == {"start": 1, "end": 900}


def test_html_survives_a_markdown_export_and_a_printer() -> None:
    data, _ = settled_bundle(card("1"))
    assert "<style" not in data["text/html"]
    assert "\n\n" not in data["text/html"]
    assert "max-height" not in data["text/html"]
    assert data["text/plain"].startswith("✗ bash x (exit code 1)")


def test_a_script_is_titled_by_what_it_does() -> None:
    assert summary_line("set -e\ncd x\n# build\nmake all\nls") == "make all …"
    assert command_description("set -e\ncd x\n# build\nmake all\nls") == "make all"
    assert command_description("echo " + "a" * 80) == "echo " + "a" * 52 + "..."
    assert summary_line("python3 - <<'EOF'\nimport os\nprint(1)\nEOF") == "print(1) …"
    code = {"code": "import time\nfor i in range(3):\n    time.sleep(1)"}
    for title, label in (("import time", "for i in range(3): …"), ("Wait", "Wait")):
        state = Completed(code, 0, 1, title, "", {})
        assert label_of(ToolPart("", "", "", "", "python", state)) == label
