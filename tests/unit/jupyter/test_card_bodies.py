"""What cards show beside the output: labels, tasks, tables, files, answers, calls inside calls; JSON, HTML and text."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import PermissionCorrectedError
from opencode_jupyter.core.call_state import Completed, Failed, Pending, Running, ToolPart
from opencode_jupyter.core.question_request import Answered, QuestionRequest, parse_questions
from opencode_jupyter.core.result import ToolResult
from opencode_jupyter.jupyter.cards.approval_json import RequestView, digest_of
from opencode_jupyter.jupyter.cards.bodies_json import ROWS
from opencode_jupyter.jupyter.cards.call_json import Extras, card_part, card_tree
from opencode_jupyter.jupyter.cards.call_mimebundle import PLAIN_LINES, live_text, lost_bundle, settled_bundle
from opencode_jupyter.jupyter.cards.labels import label_for, label_of
from opencode_jupyter.jupyter.cards.run_json import call_json
from opencode_jupyter.jupyter.cards.run_mimebundle import call_lines
from opencode_jupyter.jupyter.cards.saved_json import CARD_MIME, METADATA_KEY
from opencode_jupyter.jupyter.cards.wording import state_words
from tests.support.contract import check
from tests.support.workspaces import OpenWorkspace

EVIL = "<script>alert(1)</script>\u202e"
DIFF = "@@ -1 +1 @@\n-a\n+b\n"
TODOS = [
    {"content": "read", "status": "completed", "priority": "high"},
    {"content": "clean", "status": "in_progress", "priority": "medium"},
    {"content": "write", "status": "pending", "priority": "low"},
    {"content": "ask", "status": "cancelled"},
    {"content": "odd", "status": "?"},
]


def part(tool: str, state: Any, **more: Any) -> ToolPart:
    return ToolPart("prt_1", "ses_1", "msg_1", "call_1", tool, state, **more)


def completed_part(
    tool: str,
    output: str = "out",
    metadata: dict[str, Any] | None = None,
    arguments: dict[str, Any] | None = None,
    title: str = "",
    records: list[dict[str, Any]] | None = None,
) -> ToolPart:
    result = part(tool, Completed(arguments or {}, 1000, 1030, title, output, metadata or {}), outcome="completed")
    result.result = ToolResult(title, output, metadata or {}, records=records)
    return result


def render(call_part: ToolPart, base: Path | None = None) -> tuple[dict[str, Any], str, str]:
    """A settled card's ``ui``, HTML and text."""
    card = card_part(call_part, Extras(base=base))
    check(part=card)
    data, _ = settled_bundle(card)
    return data[CARD_MIME]["ui"], data["text/html"], data["text/plain"]


@pytest.mark.parametrize(
    ("tool", "arguments", "label"),
    [
        ("apply_patch", {"patchText": "*** Begin Patch\n*** Update File: a.py\n*** Delete File: b.py\n"}, "a.py, b.py"),
        ("apply_patch", {"patchText": "*** Add File: src/a b.py\n+x"}, "src/a b.py"),
        ("apply_patch", {"patchText": 7}, "7"),
        ("batch", {"tool_calls": [{}, {}, {}]}, "3 calls"),
        ("batch", {"tool_calls": [{}]}, "1 call"),
        ("question", {"questions": [{"header": "DB"}, {"header": "", "question": "Why?"}, 7]}, "DB, Why?"),
        ("todowrite", {"todos": TODOS}, "1 of 5 tasks done"),
        ("todowrite", {"todos": []}, "no tasks"),
        ("lsp", {"operation": "hover", "filePath": "a.py", "line": 3, "character": 7}, "hover a.py:3:7"),
        ("webfetch", {"url": "https://a.example/x", "format": "text"}, "https://a.example/x"),
        ("skill", {"name": "pdf"}, "pdf"),
        ("python", {"code": "# a note\n\nx = 1\nprint(x)"}, "x = 1 …"),
        ("python", {"code": "x"}, "x"),
        ("notebook_edit", {"filePath": "/p/lesson.ipynb"}, "lesson.ipynb"),
        ("bash", {"command": "ls -l\nrm x", "description": "Lists"}, "Lists"),
        ("custom", {"anything": ["x"], "other": 5}, "5"),
        ("custom", {"rows": [1, 2, 3], "options": {"a": 1}, "on": True}, "True"),
        ("custom", {"rows": [1, 2, 3], "options": {"a": 1}, "note": None}, "rows (3), options (1), note"),
        ("custom", {}, ""),
        ("task", {"description": "Count words", "prompt": "...", "subagent_type": "general"}, "Count words"),
        ("todoread", {}, ""),
        ("list", {}, "."),
        ("list", {"path": "src"}, "src"),
        ("multiedit", {"edits": [{}], "filePath": "a.py"}, "a.py"),
    ],
)
def test_labels(tool: str, arguments: dict[str, Any], label: str) -> None:
    assert label_of(part(tool, Pending(arguments))) == label
    assert label_for(tool, arguments) == label  # in the side panel's list of calls


def test_a_title_takes_its_place_but_for_those_that_say_less() -> None:
    assert label_of(completed_part("bash", arguments={"command": "ls"}, title="Lists files")) == "Lists files"
    assert label_of(part("bash", Running({"command": "ls"}, 0, "Half done"))) == "Half done"
    files = [{"relativePath": "a.py"}, {"relativePath": "b.py"}]
    assert label_of(completed_part("apply_patch", metadata={"files": files}, title="Success.\nM a.py")) == "a.py, b.py"
    files = [{"relativePath": f"{name}.py"} for name in "abcde"]
    assert label_of(completed_part("apply_patch", metadata={"files": files})) == "a.py, b.py, c.py and 2 more"
    assert (
        label_of(completed_part("batch", metadata={"failed": 1}, arguments={"tool_calls": [{}, {}]}, title="B"))
        == "2 calls"
    )
    assert label_of(part("batch", Failed({"tool_calls": [{}]}, 0, 1, "no"))) == "1 call"


@pytest.mark.parametrize("tool", ["todowrite", "todoread"])
def test_tasks(tool: str) -> None:
    ui, html, text = render(completed_part(tool, "[...]", {"todos": TODOS}))
    assert [t["status"] for t in ui["tasks"]] == ["completed", "in_progress", "pending", "cancelled", "pending"]
    assert text.split("\n")[1:] == ["☑ read (high)", "◐ clean", "☐ write (low)", "✗ ask", "☐ odd"]
    assert "☑" in html
    assert "<b>clean</b>" in html
    assert card_part(part(tool, Running({"todos": TODOS}, 0)), live=True)["ui"]["tasks"][0]["content"] == "read"


def test_one_diff_for_each_file() -> None:
    files = [
        {"filePath": "/p/a.py", "relativePath": "a.py", "type": "update", "diff": DIFF, "additions": 1, "deletions": 1,
         "before": "x" * 9999, "after": "y"},
        {"filePath": "/p/old.py", "relativePath": "new.py", "movePath": "/p/new.py", "type": "move", "diff": ""},
        {"filePath": "/p/a/b.py", "relativePath": "c/b.py", "movePath": "/p/c/b.py", "type": "move", "diff": ""},
        {"filePath": "/o/b.py", "relativePath": "d/b.py", "movePath": "/p/d/b.py", "type": "move", "diff": ""},
        "odd", {"type": "add"},
    ]  # fmt: skip
    call_part = completed_part("apply_patch", "Success.", {"files": files, "diff": DIFF})
    ui, html, text = render(call_part)
    assert [d["path"] for d in ui["diffs"]] == ["a.py", "new.py", "c/b.py", "d/b.py"]
    assert [d.get("from") for d in ui["diffs"]] == [None, "old.py", "a/b.py", "/o/b.py"]
    assert "diff" not in ui
    assert "x" * 100 not in str(card_part(call_part))
    assert "moved from old.py" in html
    assert "a.py +1 -1\n@@ -1 +1 @@" in text


def test_a_notebook_s_cells_are_lines_of_its_output() -> None:
    lines = ["<cells>", "<cell>", EVIL, "x", "<outputs>", "1 < 2", "</outputs>", "</cell>", "<cell>", "# T", "</cell>"]
    first = {"index": 4, "type": "code", "id": "c", "executed": 2, "line": 2, "source": 2, "output": 1, "outputs": 1}
    second = {"index": 5, "type": "markdown", "line": 9, "source": 1, "output": 0, "outputs": 0}
    known = {
        "layout": [first, second],
        "total": 9,
        "language": "R",
        "notes": ["not valid"],
        "preview": "x",
        "odd": 1,
    }
    call_part = completed_part("notebook_read", "\n".join(lines), dict(known))
    ui, html, _ = render(call_part)
    assert ui["cells"] == {"cells": [first, second], "total": 9, "language": "R", "notes": ["not valid"]}
    assert card_part(call_part)["state"]["metadata"] == {"odd": 1}
    assert "4 · [2]" in html and "5 · markdown" in html and "cells 4 to 5 of 9 · not valid" in html
    assert "1 &lt; 2" in html and "&lt;script&gt;" in html and "<script>" not in html and "<details open>" not in html
    cut = [*lines[:6], "", "...9 lines truncated...", "", "The tool call succeeded but the output was truncated."]
    ui, _, _ = render(completed_part("notebook_read", "\n".join(cut), {**known, "truncated": True}))
    assert ui["cells"]["cells"] == [first]
    ui, _, _ = render(completed_part("notebook_read", "\n".join([*lines[:3], *cut[6:]]), {**known, "truncated": True}))
    assert [(c["source"], c["output"]) for c in ui["cells"]["cells"]] == [(1, 0)]
    assert "cells" not in render(completed_part("notebook_read", "x", {"layout": []}))[0]


def test_tables_of_searches_and_of_json() -> None:
    rows = [{"path": f"/p/src/a{i}.py", "line": i, "text": "x"} for i in range(ROWS + 5)]
    ui, html, text = render(completed_part("grep", "Found 300 matches", {"matches": 300}, records=rows), Path("/p"))
    assert ui["table"]["columns"] == ["path", "line", "text"]
    assert ui["table"]["rows"][1] == ["src/a1.py", "1", "x"]
    assert len(ui["table"]["rows"]) == ROWS
    assert f"the first {ROWS} of 300 rows" in html
    assert "Found 300 matches" in text
    ui, _, text = render(completed_part("lsp", "[\n {}\n]", {"result": [1]}, records=[{"file": "a.py", "line": 3}]))
    assert text.split("\n")[1:] == ["file  line", "a.py  3", "1 row"]
    for call_part in (
        completed_part("custom", "words", records=rows),
        completed_part("glob", "No files found", records=[]),
        completed_part("read"),
    ):
        assert "table" not in render(call_part)[0]


def test_a_time_in_a_table_is_local_and_short() -> None:
    changed = datetime.fromtimestamp(1_700_000_000.5, UTC)
    call_part = completed_part("glob", "/p/a.py", records=[{"path": "/p/a.py", "mtime": changed}])
    data, metadata = settled_bundle(card_part(call_part, Extras(base=Path("/p"))))
    local = time.strftime("%Y-%m-%d %H:%M", time.localtime(1_700_000_000))
    assert data[CARD_MIME]["ui"]["table"]["rows"] == [["a.py"]], "a file that is written anew changes no saved data"
    assert metadata[METADATA_KEY]["ui"]["table"]["rows"] == [["a.py", local]]
    json.dumps(metadata)


def test_a_skill_shows_its_text_and_files() -> None:
    output = (
        '<skill_content name="pdf">\n# Skill: pdf\n\nFill.\n\nBase directory for this skill: file:///s/pdf\nRelative.\n'
        "<skill_files>\n<file>/s/pdf/run.py</file>\n<file>/s/pdf/a/b.md</file>\n</skill_files>\n</skill_content>"
    )
    ui, html, text = render(completed_part("skill", output, {"name": "pdf", "dir": "/s/pdf"}))
    assert ui["base"] == "/s/pdf"
    assert ui["files"] == ["run.py", "a/b.md"]
    assert text.split("\n")[1:] == ["# Skill: pdf", "", "Fill."]
    assert "run.py" in html


@pytest.mark.parametrize(
    ("tool", "output", "metadata", "text"),
    [
        ("batch", "All 2 tools executed successfully.", {"totalCalls": 2, "failed": 0}, "2 calls completed."),
        ("task", "task_id: s (x)\n\n<task_result>\n4.\n</task_result>\n\nNote: cut.", {}, "4.\n\nNote: cut."),
        ("task", "of another release", {}, None),
    ],
)
def test_people_get_a_short_text_in_place_of_the_one_for_models(
    tool: str, output: str, metadata: dict[str, Any], text: str | None
) -> None:
    card, html, plain = render(completed_part(tool, output, metadata))
    assert card.get("printed") == text
    assert (text or output) in plain and ("task_id" in plain) == ("task_id" in output and text is None)
    assert (text or output).split("\n")[0] in html


def test_answers_and_a_dismissal() -> None:
    questions = parse_questions([{"question": "Which?", "header": "DB", "options": ["A"]}, {"question": "Why?"}])
    call_part = completed_part("question", "User has answered")
    call_part.answered = [Answered(questions, [["A", "B"], []], "card"), Answered(questions[1:], None, "prompt")]
    _, html, text = render(call_part)
    assert text.split("\n")[1:] == ["DB: Which? → A, B", "Why? → not answered", "Why? → dismissed"]
    assert "<b>A, B</b>" in html
    assert '<details class="oc-s-paper"><summary' in html  # the output, folded


def test_hostile_text_stays_text() -> None:
    todos = [{"content": EVIL, "status": EVIL, "priority": EVIL}]
    files = [{"relativePath": EVIL, "type": EVIL, "diff": EVIL}]
    call_part = completed_part("todowrite", EVIL, {"todos": todos, "files": files}, records=[{EVIL: EVIL}])
    call_part.answered = [Answered(parse_questions({"question": EVIL, "header": EVIL}), [[EVIL]], EVIL)]
    table = completed_part("lsp", "[]", records=[{EVIL: EVIL}])
    skill = completed_part("skill", f"<file>{EVIL}</file>", {"dir": "/"})
    for hostile in (call_part, table, skill):
        _, html, text = render(hostile)
        assert "<script" not in html
        assert "\u202e" not in html + text


@pytest.mark.anyio
async def test_calls_inside_a_call(open_workspace: OpenWorkspace) -> None:
    ws = await open_workspace({}, store=False)
    parent = ws.start("batch", {"tool_calls": [{}, {}]})
    parent.part.state = Running(parent.part.state.input, 1000)
    first, second = (parent.child("question", {"questions": []}) for _ in range(2))
    first.part.state = Completed({}, 1000, 1002, "", "long " * 1000, {})
    first.part.outcome = "completed"
    questions = parse_questions({"question": "Which?", "options": ["A"]})
    waiting = QuestionRequest("que_1", "ses_1", questions, None, 500)
    requests = {second.part.call_id: [RequestView(waiting, digest_of(waiting))]}
    live = card_tree(parent, requests, live=True)
    assert [c["tool"] for c in live["ui"]["children"]] == ["question", "question"]
    assert live["ui"]["children"][1]["ui"]["question"]["questions"][0]["question"] == "Which?"
    assert len(live["ui"]["children"][0]["state"]["output"]) < 2100
    assert live_text(live).endswith(": waiting for an answer: Which?")
    lost = lost_bundle(live)[CARD_MIME]
    assert [c["ui"]["outcome"] for c in (lost, *lost["ui"]["children"])] == ["ended", "completed", "ended"]
    assert "que_1" not in str(lost)
    settled = settled_bundle(card_tree(parent, requests, live=False))[0]
    outcomes = [c["ui"]["outcome"] for c in settled[CARD_MIME]["ui"]["children"]]
    assert outcomes == ["completed", "interrupted"]
    assert "  ✓ question" in settled["text/plain"]
    assert len(settled["text/plain"].split("\n")) <= PLAIN_LINES


@pytest.mark.parametrize(("output", "tail"), [("a\nb\n\n\n", "a\nb"), ("\n\n", None)])
def test_what_bash_tells_a_model_of_its_end_is_not_on_the_card_of_a_stopped_call(output: str, tail: str | None) -> None:
    note = "<bash_metadata>\nUser aborted the command\n</bash_metadata>"
    stopped = part("bash", Failed({}, 0, 1, "Tool execution aborted", {"output": output + note}), outcome="stopped")
    card = card_part(stopped)
    assert card["ui"].get("tail") == tail
    assert card["state"]["error"] == "The call was stopped."


@pytest.mark.anyio
@pytest.mark.parametrize("by", ["user", "model"])
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("edit", {"filePath": "a.txt", "oldString": "one", "newString": "two"}),
        ("write", {"filePath": "a.txt", "content": "two\n"}),
        ("apply_patch", {"patchText": "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch"}),
    ],
)
async def test_a_denied_change_keeps_its_diff(
    open_workspace: OpenWorkspace, project: Path, tool: str, arguments: dict[str, Any], by: Any
) -> None:
    (project / "a.txt").write_text("one\n")
    config = {"permission": {"edit": "ask"}}
    ws = await open_workspace(config, approve=lambda request: ("reject", "not now"))
    await ws.call("read", {"filePath": "a.txt"})
    call = ws.start(tool, arguments, by=by)
    with pytest.raises(PermissionCorrectedError):
        await call.run()
    assert (project / "a.txt").read_text() == "one\n"
    nested = call_json(call, {}, live=False)
    ui, html, text = render(call.part)
    for card in (ui, nested["ui"]):
        diff = card.get("diff") or card["diffs"][0]["diff"]
        assert "-one\n+two" in diff
        assert card["outcome"] == "denied by you"
    assert state_words(nested) == ("⊘", "denied by you", "off")
    assert text.count("not now") == 1
    assert text.lower().count("denied") == 2  # the state, and the decision with its reason
    assert html.count("not now") == (1 if by == "user" else 2)  # what the model was sent is folded
    assert call_lines(nested)[1:] == ["    not now"]
    assert "+two" in text
    assert "oc-s-off" in html
    assert "two" in html
