"""Many sessions and long ones: listing and opening stay quick."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter.agent.exchange import export
from opencode_jupyter.agent.forking import fork
from opencode_jupyter.core import _store_rows as rows
from opencode_jupyter.core import _store_sessions as whole
from opencode_jupyter.core._store_process import this_process
from opencode_jupyter.core._store_schema import _FIRST, open_database
from opencode_jupyter.core.store import Store
from tests.support.agents import project
from tests.support.session_files import id_of

pytestmark = pytest.mark.anyio


def session(
    number: int, count: int, directory: str = "/x", every: int = 1
) -> tuple[dict[str, Any], list[Any], list[Any]]:
    """A session with `count` messages; each of `every` has three parts, one of them a call."""
    id, first = id_of("ses", number), number * 10_000
    when = {"created": number, "updated": number}
    info = {"id": id, "title": f"number {number}", "directory": directory, "time": when, "version": "x"}
    messages, parts = [], []
    for n in range(count):
        owner = {"sessionID": id, "messageID": id_of("msg", first + n)}
        answer: dict[str, Any] = {
            "role": "assistant",
            "parentID": owner["messageID"],
            "agent": "build",
            "time": {"created": number},
        }
        messages.append({"id": owner["messageID"], "sessionID": id, "cost": 0.5, **answer})
        if n % every:
            continue
        at = (first + n) * 4
        done: dict[str, Any] = {
            "status": "completed",
            "input": {"a": 1},
            "output": "out " * 50,
            "title": "t",
            "metadata": {},
        }
        call: dict[str, Any] = {"callID": f"c{n}", "tool": "read", "state": {**done, "time": {"start": 1, "end": 2}}}
        parts.append({**owner, "id": id_of("prt", at), "type": "step-start"})
        parts.append({**owner, "id": id_of("prt", at + 1), "type": "text", "text": "words " * 20})
        parts.append({**owner, "id": id_of("prt", at + 2), "type": "tool", **call})
    return info, messages, parts


async def test_ten_thousand_sessions_are_listed_at_once(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    connection = open_database(path)
    connection.execute("BEGIN")
    for number in range(1, 10_001):
        folder = "/mine" if number % 10 == 0 else "/x"
        for sql, values in whole.statements(*session(number, 4, folder, every=4), this_process())[3:]:
            connection.execute(sql, values)
    connection.execute("COMMIT")
    connection.close()
    store = Store(path)
    try:
        await store.flush()
        began = time.process_time()
        found = await store.listed("/mine", 20)
        took = time.process_time() - began
        assert [(row["info"]["title"], row["messages"], row["calls"], row["cost"]) for row in found[:2]] == [
            ("number 10000", 4, 1, 2.0),
            ("number 9990", 4, 1, 2.0),
        ]
        assert len(found) == 20
        assert took < 0.1, f"{took:.3f} s for 20 of 1,000 of 10,000 sessions"
        began = time.process_time()
        assert [info["title"] for info in await store.found("number 77")] == ["number 77"]
        assert len(await store.found(id_of("ses", 77))) == 1
        assert time.process_time() - began < 0.5
    finally:
        store.close()


async def test_a_session_of_5000_messages_opens_at_once(tmp_path: Path) -> None:
    async with project(tmp_path) as workspace:
        assert workspace.store is not None
        info, messages, parts = session(1, 5000, str(workspace.directory))
        await workspace.store.write_session(info, messages, parts)
        began = time.process_time()  # the machine may be at work on other tests
        opened = await workspace.sessions.open(info["id"])
        took = time.process_time() - began
        assert (len(opened.messages), sum(len(m.parts) for m in opened.messages)) == (5000, 15_000)
        assert took < 1, f"{took:.2f} s"  # 0.35 s
        began = time.process_time()
        assert len((await export(workspace, opened))["messages"]) == 5000
        assert len((await fork(workspace, opened)).messages) == 5000
        assert time.process_time() - began < 5  # 2.4 s


def test_a_store_of_an_older_release_gets_the_columns_of_the_list(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    old = sqlite3.connect(path)
    old.executescript(_FIRST)
    for number in (1, 2):
        info, _, _ = session(number, 0, "/mine")
        data = rows.encode({**info, "title": "é 漢"})
        old.execute("INSERT INTO sessions (id, updated, data) VALUES (?, ?, ?)", (info["id"], number, data))
    old.execute("PRAGMA user_version = 1")
    old.commit()
    old.close()
    connection = open_database(path)
    listed = whole.listed(connection, "/mine", None)
    assert [row["info"]["id"] for row in listed] == [id_of("ses", 2), id_of("ses", 1)]
    assert len(whole.found(connection, "É 漢", 5)) == len(whole.found(connection, "é 漢", 5)) == 2
    connection.close()
