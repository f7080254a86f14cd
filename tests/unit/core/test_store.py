"""The store: what is kept, and how it is written and read."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter.core.call_state import Completed, Failed, Pending, Running
from opencode_jupyter.core.permission import Decision, Rule
from opencode_jupyter.core.result import Attachment
from opencode_jupyter.core.store import rows
from opencode_jupyter.core.store.store import Store
from tests.support.storing import completed, tool_part

pytestmark = pytest.mark.anyio


async def test_parts_come_back_in_wire_form_with_the_extra_columns(store: Store, path: Path) -> None:
    rule = Rule("edit", "*", "ask", "opencode.json")
    decision = Decision("edit", ["a.txt"], "allow", [rule], "once", "card", None, 1.5, 1234)
    part = tool_part(agent="plan", by="model", parent_id="prt_0", waited=1.5, outcome="completed", decisions=[decision])
    image = Attachment.from_bytes(b"x", "image/png")
    part.state = Completed({"a": 1}, 1000, 2000, "title", "out", {"truncated": False}, [image])
    store.put_part(part)
    (row,) = await store.parts("ses_a")
    extra = row.pop("opencode_jupyter")
    assert row == part.to_wire()
    assert extra["decisions"][0]["rules"] == [
        {"permission": "edit", "pattern": "*", "action": "ask", "origin": "opencode.json"}
    ]
    assert extra["decisions"][0]["reply"] == "once"
    del extra["decisions"]
    assert extra == {"agent": "plan", "by": "model", "waited": 1.5, "outcome": "completed", "parentID": "prt_0"}
    store.close()
    reopened = Store(path)
    assert (await reopened.parts(message_id="msg_ses_a"))[0]["state"]["output"] == "out"
    # What was read can be put back as it is.
    again = (await reopened.parts())[0]
    reopened.put_part({**again, "tool": "grep"})
    assert await reopened.parts() == [{**again, "tool": "grep"}]
    reopened.close()


async def test_sessions_messages_and_plain_parts(store: Store) -> None:
    store.put_session({"id": "ses_1", "title": "first", "time": {"created": 1, "updated": 5}})
    store.put_session({"id": "ses_2", "title": "second", "time": {"created": 2, "updated": 3}})
    store.put_message({"id": "msg_1", "sessionID": "ses_1", "role": "user"})
    store.put_message({"id": "msg_2", "sessionID": "ses_1", "role": "assistant"})
    store.put_message({"id": "msg_1", "sessionID": "ses_1", "role": "user", "agent": "build"})
    store.put_part({"id": "prt_t", "sessionID": "ses_1", "messageID": "msg_1", "type": "text", "text": "hé \ud800 \0"})
    assert [s["id"] for s in await store.sessions()] == ["ses_1", "ses_2"]
    assert [s["id"] for s in await store.sessions(limit=1)] == ["ses_1"]
    assert (await store.session("ses_2"))["title"] == "second"  # type: ignore[index]
    assert await store.session("ses_none") is None
    assert [(m["id"], m.get("agent")) for m in await store.messages("ses_1")] == [("msg_1", "build"), ("msg_2", None)]
    (text,) = await store.parts("ses_1", "msg_1")
    assert text["text"] == "hé \ud800 \0"
    assert await store.calls() == []


async def test_order_limit_and_history(store: Store) -> None:
    for number in range(5):
        store.put_part(tool_part(number, state=completed(title=f"t{number}"), outcome="completed", waited=0.25))
        await store.flush()
    store.put_part(tool_part(0, state=completed(title="again")))
    failed = Failed({"command": "é" * 500}, 1000, 1100, "boom")
    store.put_part(tool_part(9, tool="bash", state=failed, by="model", agent="plan", outcome="failed"))
    store.put_part(tool_part(10, state=Running({}, 1000)))
    assert [p["callID"] for p in await store.parts(limit=3)] == ["call_4", "call_9", "call_10"]
    rows = await store.calls(4)
    assert [r["state"] for r in rows] == ["running", "error", "completed", "completed"]
    assert rows[0]["seconds"] is None
    assert rows[1]["title"].startswith('{"command": "éé') and len(rows[1]["title"]) <= 200
    del rows[1]["title"]
    assert rows[1] == {
        "time": 1000,
        "tool": "bash",
        "state": "error",
        "outcome": "failed",
        "failure": "",
        "seconds": 0.1,
        "waited": 0.0,
        "agent": "plan",
        "by": "model",
        "session": "ses_a",
        "id": "prt_ses_a_000009",
    }
    assert (await store.calls(50))[-1]["title"] == "again"


async def test_decisions_and_todos(store: Store) -> None:
    store.put_decision({"sessionID": "ses_a", "permission": "bash", "action": "allow", "time": 2})
    store.put_decision({"sessionID": "ses_a", "permission": "edit", "action": "deny", "time": 3})
    store.put_decision({"id": "per_x", "sessionID": "ses_b", "permission": "read", "action": "allow", "time": 1})
    assert [d["permission"] for d in await store.decisions()] == ["edit", "bash", "read"]
    assert len(await store.decisions(2)) == 2
    assert await store.todos("ses_a") == []
    await store.replace_todos("ses_a", [{"content": "one"}, {"content": "two"}])
    await store.replace_todos("ses_a", [{"content": "three"}])
    assert await store.todos("ses_a") == [{"content": "three"}]


async def test_deleting_a_session_takes_its_children_along(store: Store) -> None:
    store.put_session({"id": "ses_a", "time": {"updated": 1}})
    store.put_session({"id": "ses_child", "parentID": "ses_a", "time": {"updated": 1}})
    store.put_session({"id": "ses_b", "time": {"updated": 1}})
    for session in ("ses_a", "ses_child", "ses_b"):
        store.put_message({"id": f"msg_{session}", "sessionID": session})
        store.put_part(tool_part(session=session))
        store.put_decision({"sessionID": session, "time": 1})
        await store.replace_todos(session, [1])
    await store.delete_session("ses_a")
    assert [s["id"] for s in await store.sessions()] == ["ses_b"]
    assert {p["sessionID"] for p in await store.parts()} == {"ses_b"}
    assert {d["sessionID"] for d in await store.decisions()} == {"ses_b"}
    assert await store.messages("ses_child") == await store.todos("ses_child") == []
    assert len(await store.messages("ses_b")) == 1


async def test_deleting_messages_and_parts(path: Path, store: Store) -> None:
    for session in ("ses_a", "ses_b"):
        for message in ("1", "2"):
            store.put_message({"id": f"msg_{session}{message}", "sessionID": session})
            for name in ("x", "y"):
                part = {"sessionID": session, "messageID": f"msg_{session}{message}", "type": "text", "text": name}
                store.put_part({"id": f"prt_{session}{message}{name}", **part})
    store.delete_parts(["prt_ses_a1y"])
    store.delete_messages(["msg_ses_a2", "msg_nothing"]).result(5)
    assert [m["id"] for m in await store.messages("ses_a")] == ["msg_ses_a1"]
    assert [p["id"] for p in await store.parts("ses_a")] == ["prt_ses_a1x"]
    assert len(await store.messages("ses_b")) == 2
    assert len(await store.parts("ses_b")) == 4
    store.put_part({"id": "prt_ses_a1y", "sessionID": "ses_a", "messageID": "msg_ses_a1", "type": "text"})
    store.close()
    store.delete_parts(["prt_ses_a1x"]).result(5)  # too late, and no error
    with contextlib.closing(Store(path)) as reopened:
        assert [p["id"] for p in await reopened.parts("ses_a")] == ["prt_ses_a1x", "prt_ses_a1y"]


async def test_a_short_call_is_one_row_written_once(path: Path, store: Store) -> None:
    await store.flush()
    with contextlib.closing(sqlite3.connect(path)) as watcher:
        watcher.execute("CREATE TABLE writes (status TEXT)")
        watcher.execute("CREATE TRIGGER i AFTER INSERT ON parts BEGIN INSERT INTO writes VALUES (new.status); END")
        watcher.execute("CREATE TRIGGER u AFTER UPDATE ON parts BEGIN INSERT INTO writes VALUES (new.status); END")
        watcher.commit()
        part = tool_part()
        for state in (Pending({}), Running({}, 1), completed()):
            part.state = state
            store.put_part(part)
        await store.flush()
        assert watcher.execute("SELECT * FROM writes").fetchall() == [("completed",)]


async def test_a_put_is_written_without_a_flush(path: Path, store: Store) -> None:
    store.put_part(tool_part())
    deadline = time.monotonic() + 5
    while True:
        with contextlib.suppress(sqlite3.OperationalError), contextlib.closing(sqlite3.connect(path)) as connection:
            if connection.execute("SELECT count(*) FROM parts").fetchone()[0]:
                break
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, 2.5, -0.0, 1e300, True, None, 'é \u2028 \x00 " \\'], "b": {"c": {}}},
        {"big": 2**80, "half": "a\ud800b", "list": ["\udfff"]},
        {"inf": [float("inf"), float("-inf")]},
    ],
)
def test_rows_hold_what_they_were_given(value: dict[str, Any]) -> None:
    text = rows.encode(value)
    text.encode()  # SQLite takes it
    assert json.loads(text) == value


def test_rows_hold_what_json_does_not_know_as_text(tmp_path: Path) -> None:
    when = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    decoded = json.loads(rows.encode({"when": when, "path": tmp_path, "pair": (1, 2), (1, 2): "left out", "b": b"x"}))
    assert decoded == {"when": str(when), "path": str(tmp_path), "pair": [1, 2], "b": "b'x'"}
