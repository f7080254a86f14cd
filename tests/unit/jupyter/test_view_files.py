"""The file that a card's label links: which, and at which line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter.core.call_state import Completed, Running, ToolPart
from opencode_jupyter.jupyter.cards.call_json import linked_file

FOLDER = Path("/work/project")
DIFF = "--- a\n+++ a\n@@ -3,4 +3,4 @@\n x\n y\n-z\n+w\n"


def part(tool: str, arguments: Any, state: type = Completed) -> ToolPart:
    call_state = Completed(arguments, 0, 1, "", "", {}) if state is Completed else Running(arguments, 0)
    return ToolPart("prt_1", "ses_1", "msg_1", "call_1", tool, call_state)


@pytest.mark.parametrize(
    ("tool", "arguments", "diff", "opens"),
    [
        ("read", {"filePath": "a.py"}, None, {"path": "/work/project/a.py"}),
        ("read", {"filePath": "../b.py", "offset": 40}, None, {"path": "/work/b.py", "line": 40}),
        ("read", {"filePath": "/c.py", "offset": 0}, None, {"path": "/c.py"}),
        ("edit", {"filePath": "a.py"}, DIFF, {"path": "/work/project/a.py", "line": 5}),
        ("write", {"filePath": "a.py"}, "@@ -0,0 +1 @@\n+x\n", {"path": "/work/project/a.py", "line": 1}),
        ("write", {"filePath": "a.py"}, "@@ -1 +0,0 @@\n-x\n", {"path": "/work/project/a.py", "line": 1}),
        ("lsp", {"filePath": "a.py", "line": 3, "operation": "hover"}, None, {"path": "/work/project/a.py", "line": 3}),
        ("read", {"filePath": ""}, None, None),
        ("read", {"filePath": "a\0b"}, None, None),
        ("read", {"filePath": 7}, None, None),
        ("bash", {"filePath": "a.py"}, None, None),
    ],
)
def test_what_opens(tool: str, arguments: Any, diff: Any, opens: Any) -> None:
    assert linked_file(part(tool, arguments), diff, FOLDER) == opens


def test_only_a_completed_call_of_a_known_folder() -> None:
    assert linked_file(part("read", {"filePath": "a.py"}, Running), None, FOLDER) is None
    assert linked_file(part("read", {"filePath": "a.py"}), None, None) is None
