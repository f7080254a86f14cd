"""``%sessions`` in a plain shell."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
from datetime import datetime
from pathlib import Path

import pytest

from opencode_jupyter import InvalidArgumentsError, ToolError
from opencode_jupyter.agent.exchange import SessionFileError
from opencode_jupyter.core.sessions import Session
from opencode_jupyter.jupyter.magics.sessions import short_time
from tests.support.fake_model import FakeModel, Turn
from tests.support.session_files import RECORDED, recorded
from tests.support.shells import Shell

DATA = RECORDED[0].parent
MAIN = "ses_dfd98db4affekMfNpMLLXje2Ns"
CHILD = "ses_dfd98c8f7ffe2AKTbBtubtLBIL"


@pytest.fixture
def full(ip: Shell) -> Shell:
    """A shell with the sessions of the data folder; the newest is the one with a compaction."""
    for file in RECORDED:
        ip.run(f"%sessions import {file}")
    return ip


def current(ip: Shell) -> str:
    session = ip.notebook.agent_session
    assert session is not None and not isinstance(session, str)
    return session.id


def test_the_list_tells_of_each_session(full: Shell) -> None:
    table = full.run("%sessions")
    rows = {row["id"]: row for row in table}
    assert [row["#"] for row in table] == [1, 2, 3, 4, 5]
    assert rows[MAIN] == {
        "#": rows[MAIN]["#"],
        "title": "A fresh title",
        "changed": datetime.fromtimestamp(1795336650),  # noqa: DTZ006
        "messages": 5,
        "calls": 5,
        "model": "fake:m",
        "cost": pytest.approx(0.00052),
        "child of": "",
        "note": "",
        "folder": str(Path.cwd()),
        "id": MAIN,
    }
    assert rows[CHILD]["child of"] == MAIN
    assert [row["note"] for row in table if row["note"]] == ["partly undone"]
    changed = [row["changed"] for row in table]
    assert changed == sorted(changed, reverse=True)
    assert list(table.df["id"]) == [row["id"] for row in table]
    assert repr(table).split("\n")[-1] == "%sessions? shows the commands." and "A fresh title" in table._repr_html_()
    assert "There are more" in repr(full.run("%sessions -n 2")) and len(full.run("%sessions list -n 2")) == 2


def test_calls_by_hand_are_marked(ip: Shell) -> None:
    assert "%%agent starts one" in repr(ip.run("%sessions"))
    Path("a.txt").write_text("x\n")
    ip.run("%tool -q read a.txt")
    (row,) = ip.run("%sessions").records
    assert (row["title"], row["note"], row["messages"], row["calls"], row["cost"]) == (
        "Direct calls",
        "calls by hand",
        1,
        1,
        None,
    )
    (record,) = ip.run("%sessions show 1").records
    assert (record["part"], record["state"]) == ("tool read", "completed") and "a.txt" in record["what"]


def test_a_failed_command_is_shown_as_failed(ip: Shell) -> None:
    ip.run("%tool bash exit 3")
    with contextlib.suppress(ToolError):
        ip.run("%tool read nowhere.txt")
    rows = ip.run("%sessions show 1").records
    assert [(row["what"].partition(":")[0], row["state"]) for row in rows] == [
        ("exit 3", "exit code 3"),
        ("nowhere.txt", "failed"),
    ]


def test_other_folders_are_left_out_unless_asked_for(full: Shell, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    full.run(f"%cd {tmp_path / 'elsewhere'}")
    assert full.run("%sessions").records == []
    every = full.run("%sessions --all")
    assert len(every) == 5 and {row["folder"] for row in every} == {str(tmp_path / "work")}
    assert MAIN in str(full.run(f"%sessions open {MAIN}"))


def test_the_list_shows_short_times_and_no_ids(full: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.txt").write_text("x\n")
    full.run("%tool -q read a.txt")
    long = "A title of more characters than a terminal has left for it beside the other columns"
    full.run(f"%sessions rename {CHILD} '{long}'")
    for table in (full.run("%sessions"), full.run("%sessions --all")):
        text, page = repr(table), table._repr_html_()
        assert "ses_" not in text + page
        assert max(map(len, text.splitlines())) <= 80
        assert re.search(r"#1 .* today \d\d:\d\d ", text) and re.search(r"today \d\d:\d\d<", page)
        assert not re.search(r"\d\d:\d\d:\d\d", text + page)
        assert f"#{next(row['#'] for row in table if row['id'] == MAIN)}" in page.split(long)[1]
        assert any(row["id"] == MAIN for row in table)


def test_times_are_short() -> None:
    today = datetime(2026, 11, 23, 12, 0)  # noqa: DTZ001
    moments = (today.replace(hour=9, minute=5), datetime(2026, 11, 3), datetime(2025, 11, 3), None)  # noqa: DTZ001
    assert [short_time(moment, today) for moment in moments] == ["today 09:05", "3 Nov", "3 Nov 2025", ""]


@pytest.mark.parametrize("name", [MAIN, MAIN[:12], MAIN[4:12], "number", "#"])
def test_a_session_is_named_in_several_ways(full: Shell, name: str) -> None:
    if name in ("number", "#"):
        name = name.removeprefix("number") + str(next(row["#"] for row in full.run("%sessions") if row["id"] == MAIN))
    notice = full.run(f"%sessions open {name}")
    assert "5 messages" in str(notice)
    assert current(full) == MAIN
    (session_id,) = [row["id"] for row in full.run("%sessions") if "%%agent" in row["note"]]
    assert session_id == MAIN


def test_numbers_mean_what_the_list_showed(full: Shell) -> None:
    number = next(row["#"] for row in full.run("%sessions") if row["id"] == MAIN)
    for _ in range(3):
        full.run(f"%sessions fork {CHILD}")  # newer ones, which a new list would show first
    full.run(f"%sessions open {number}")
    assert current(full) == MAIN


def test_titles_name_sessions_too(full: Shell) -> None:
    full.run("%sessions open 'find NOTES (@explore subagent)'")
    assert current(full) == CHILD
    with pytest.raises(InvalidArgumentsError, match="matches several sessions: ses_") as caught:
        full.run("%sessions open 'A fresh title'")
    assert MAIN in str(caught.value)


def test_a_title_names_the_session_of_this_folder(ip: Shell, tmp_path: Path) -> None:
    ip.notebook.workspace.sessions.create("notes")
    (tmp_path / "elsewhere").mkdir()
    ip.run(f"%cd {tmp_path / 'elsewhere'}")
    assert ip.run("%sessions").records == []
    session = ip.notebook.workspace.sessions.create("notes")
    ip.run("%sessions open notes")
    assert current(ip) == session.id


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("opne 1", "Did you mean %sessions open?"),
        ("open", "Which session?"),
        ("open nosuch", "There is no session 'nosuch'"),
        ("open 9", "There is no session '9'"),
        ("show", "No session was started in this notebook"),
        ("show 1 2", "2 is not understood here"),
        ("list -n none", "-n takes a whole number above 0, not none"),
        ("list -n", "-n needs a value"),
        (f"fork {MAIN} --at 0", "--at counts from 1"),
        (f"fork {MAIN} --at 99", "has 5 messages; none has the number 98"),
        (f"fork {MAIN} --at msg_x", "has no message msg_x"),
        ("export", "Name the file to export to"),
        (f"export {MAIN} x --jsonl --otel", "not both"),
        (f"export {MAIN} x --content", "goes with --otel"),
        (f"export {MAIN} .", "is a folder"),
        ("import", "Name the file to import"),
        ("import nosuch.json", "There is no file"),
        ("rename", "What title?"),
        (f"rename {MAIN} ''", "A title needs a letter"),
        ("delete", "Which sessions?"),
        (f"delete {MAIN} {CHILD}", "Add --yes to do it"),
        (f"undo {MAIN} --redo", "Nothing was reverted"),
    ],
)
def test_what_can_not_be_done_is_said(full: Shell, line: str, message: str) -> None:
    before = full.run("%sessions").records
    with pytest.raises(ToolError) as caught:
        full.run(f"%sessions {line}")
    assert message in str(caught.value)
    assert full.run("%sessions").records == before


def test_show_tells_of_every_part(full: Shell) -> None:
    for data in (recorded("picture_task_files"), recorded("compacted_stopped_reverted")):
        table = full.run(f"%sessions show {data['info']['id']}")
        parts = [part for message in data["messages"] for part in message["parts"]]
        kinds = [row["part"] for row in table if row["part"] != "error"]
        assert kinds == ["tool " + p["tool"] if p["type"] == "tool" else p["type"] for p in parts]
    assert [row["what"] for row in table if row["part"] == "error"] == ["Aborted"]
    texts = {row["part"]: row["what"] for row in reversed(full.run(f"%sessions show {MAIN}").records)}
    assert "I should look at the picture" in texts["reasoning"]
    assert "[image/png]" in texts["tool read"] and "dot.png [image/png]" in texts["file"]
    assert "The notes are short." in texts["tool task"]
    assert "new.py" in texts["patch"]
    assert "90 tokens in" in texts["step-finish"]
    for shape in (repr(table), table._repr_html_()):
        assert "step-finish" in shape and "snapshot" not in shape  # hashes are in the records only
    few = full.run(f"%sessions show {MAIN} -n 3")
    assert len(few) == 3 and "The last 3 of" in few.notes[0]


def test_a_fork_goes_its_own_way(full: Shell) -> None:
    full.run(f"%sessions fork {MAIN} --at 3")
    fork = current(full)
    rows = {row["id"]: row for row in full.run("%sessions")}
    assert (rows[fork]["title"], rows[fork]["messages"]) == ("A fresh title (fork #1)", 2)
    assert rows[MAIN]["messages"] == 5
    full.run("%sessions fork")
    assert {row["id"]: row["title"] for row in full.run("%sessions")}[current(full)] == "A fresh title (fork #2)"


def test_out_and_in_again(full: Shell) -> None:
    notice = full.run(f"%sessions export {MAIN} 'my session.json'")
    assert "opencode import" in str(notice)
    data = json.loads(Path("my session.json").read_text())
    assert data["messages"] == recorded("picture_task_files")["messages"]
    full.run(f"%sessions export {MAIN} 'my session.json'")  # the same again: the cell may be run twice
    Path("notes.json").write_text("{}")
    with pytest.raises(ToolError, match=r"already exists.*--force"):
        full.run(f"%sessions export {MAIN} notes.json")
    assert Path("notes.json").read_text() == "{}"
    full.run(f"%sessions export {MAIN} notes.json --force")
    assert "was already imported" in str(full.run("%sessions import notes.json"))
    data["info"]["title"] = "Another"
    Path("notes.json").write_text(json.dumps(data))
    assert "as a copy with new ids" in str(full.run("%sessions import notes.json"))
    full.run(f"%sessions open {MAIN}")
    assert "in place of" in str(full.run("%sessions import notes.json --replace"))
    session = full.notebook.agent_session
    assert session is not None and not isinstance(session, str) and session.title == "Another"
    Path("notes.json").write_text(json.dumps(data)[:-100])
    with pytest.raises(SessionFileError, match="cut"):
        full.run("%sessions import notes.json")


def test_events_and_spans_go_to_files(full: Shell) -> None:
    full.run(f"%sessions export {MAIN} events.jsonl --jsonl")
    events = [json.loads(line) for line in Path("events.jsonl").read_text().splitlines()]
    assert events[0]["type"] == "session.created" and events[-1]["type"] == "session.updated"
    full.run(f"%sessions export {MAIN} spans.json --otel")
    assert "The notes are short" not in Path("spans.json").read_text()
    full.run(f"%sessions export {MAIN} spans.json --otel --content --force")
    assert "The notes are short" in Path("spans.json").read_text()


def test_renaming_and_deleting(full: Shell) -> None:
    full.run(f"%sessions rename {MAIN} 'Tidy up'")
    full.run("%sessions open 'Tidy up'")
    full.run("%sessions rename Shorter")
    assert {row["id"]: row["title"] for row in full.run("%sessions")}[MAIN] == "Shorter"
    assert "and 1 that it started" in str(full.run("%sessions delete Shorter"))
    assert full.notebook.agent_session is None
    remaining = [row["id"] for row in full.run("%sessions")]
    assert len(remaining) == 3 and MAIN not in remaining and CHILD not in remaining
    full.run(f"%sessions delete {remaining[0]} {remaining[1]} --yes")
    assert [row["id"] for row in full.run("%sessions")] == [remaining[2]]


def test_completion(full: Shell) -> None:
    assert full.complete("%sessions ex") == ["%sessions export"]
    assert "%sessions open 'Find notes (@explore subagent)'" in full.complete("%sessions open ")
    assert full.complete("%sessions open 'find") == ["%sessions open 'Find notes (@explore subagent)'"]
    assert full.complete("%sessions show ses_dfd98d") == [f"%sessions show {MAIN}"]
    assert full.complete("x = %sessions export --j") == ["x = %sessions export --jsonl"]
    Path("some.json").write_text("{}")
    assert full.complete("%sessions import so") == ["%sessions import some.json"]
    assert full.complete("%sessions delete --y") == ["%sessions delete --yes"]


def test_undo_takes_back_a_message_and_its_files_and_redo_brings_them_again(ip: Shell) -> None:
    subprocess.run(["git", "init", "-q", "."], check=True)
    Path("kept.txt").write_text("kept\n")
    ip.run("%permissions allow edit")
    turns: list[Turn] = [{"calls": [["write", {"filePath": "made.txt", "content": "made\n"}]]}, {"text": "Done."}]
    workspace = ip.notebook.workspace

    async def prompt() -> Session:
        model = FakeModel(turns)
        return (await workspace.sessions.prompt("make it", model=model, title="Making")).session

    session = ip.notebook.on_engine(prompt)
    assert Path("made.txt").read_text() == "made\n"
    notice = str(ip.run("%sessions undo Making"))
    assert "1 file put back" in notice, notice
    assert not Path("made.txt").exists() and Path("kept.txt").exists()
    (row,) = ip.run("%sessions").records
    assert row["note"] == "partly undone"
    assert {r["who"] for r in ip.run("%sessions show 1")} == {"user (undone)", "build (undone)"}
    ip.run(f"%sessions undo {session.id} --redo")
    assert Path("made.txt").read_text() == "made\n"
    assert {r["who"] for r in ip.run("%sessions show 1")} == {"user", "build"}
    with pytest.raises(ToolError):
        ip.run("%sessions undo 1 --redo")


def test_undo_says_which_files_it_could_not_put_back(full: Shell) -> None:
    # Its snapshots were made on another machine.
    assert "were not restored" in str(full.run(f"%sessions undo {MAIN}"))
    full.run(f"%sessions undo {MAIN} --redo")
