"""Many sessions and long ones: listing and opening stay quick."""

from __future__ import annotations

from pathlib import Path

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.agent.exchange import export
from opencode_jupyter.agent.forking import fork
from opencode_jupyter.core.store import queries, rows
from opencode_jupyter.core.store.database import open_database
from opencode_jupyter.core.store.process_identity import this_process
from opencode_jupyter.core.store.store import Store
from tests.support.session_files import id_of, session

pytestmark = pytest.mark.anyio


async def test_many_sessions_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    connection = open_database(path)
    connection.execute("BEGIN")
    for number in range(1, 1001):
        folder = "/mine" if number % 10 == 0 else "/x"
        for sql, values in rows.session_rows(*session(number, 4, folder, every=4), this_process())[3:]:
            connection.execute(sql, values)
    connection.execute("COMMIT")
    connection.close()
    store = Store(path)
    try:
        await store.flush()
        listed = await store.list_sessions("/mine", 20)
        assert [(row["info"]["title"], row["messages"], row["calls"], row["cost"]) for row in listed[:2]] == [
            ("number 1000", 4, 1, 2.0),
            ("number 990", 4, 1, 2.0),
        ]
        assert len(listed) == 20
        assert [info["title"] for info in await store.find_sessions("number 77")] == ["number 77"]
        assert len(await store.find_sessions(id_of("ses", 77))) == 1
    finally:
        store.close()


async def test_a_session_of_many_messages_opens(workspace: Workspace) -> None:
    assert workspace.store is not None
    info, messages, parts = session(1, 1000, str(workspace.directory))
    await workspace.store.write_session(info, messages, parts)
    opened = await workspace.sessions.open(info["id"])
    assert (len(opened.messages), sum(len(m.parts) for m in opened.messages)) == (1000, 3000)
    assert len((await export(workspace, opened))["messages"]) == 1000
    assert len((await fork(workspace, opened)).messages) == 1000


def test_a_session_is_found_by_its_title_in_any_case(tmp_path: Path) -> None:
    connection = open_database(tmp_path / "store.db")
    for number in (1, 2):
        info, _, _ = session(number, 0, "/mine")
        connection.execute(*rows.session_row({**info, "title": "é 漢"}))
    listed = queries.list_sessions(connection, "/mine", None)
    assert [row["info"]["id"] for row in listed] == [id_of("ses", 2), id_of("ses", 1)]
    assert len(queries.find_sessions(connection, "É 漢", 5)) == len(queries.find_sessions(connection, "é 漢", 5)) == 2
    connection.close()
