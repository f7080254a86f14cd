"""Many sessions and a long one: what listing and opening take, beside a tenth of them."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from opencode_jupyter import Workspace
from opencode_jupyter.core.store.database import open_database
from opencode_jupyter.core.store.process_identity import this_process
from opencode_jupyter.core.store.rows import session_rows
from opencode_jupyter.core.store.store import Store
from tests.support.session_files import session

from ._measure import Options, Row, timed

SESSIONS, MESSAGES = 10_000, 5_000
LISTED_RATIO, OPENED_RATIO = 3, 20
"""The list does not grow with what there is, opening grows with the messages alone (and their garbage collection)."""


def run(options: Options) -> list[Row]:
    """The list of a folder's newest sessions, then one long session."""
    return asyncio.run(_run(options))


async def _run(options: Options) -> list[Row]:
    few, many = [await _listed(options.folder / f"{count}.db", count) for count in (SESSIONS // 10, SESSIONS)]
    short, long = [await _opened(options.folder / str(count), count) for count in (MESSAGES // 10, MESSAGES)]
    return [
        _row(f"the 20 newest of {SESSIONS:,} sessions", many, few, LISTED_RATIO),
        _row(f"open a session of {MESSAGES:,} messages", long, short, OPENED_RATIO),
    ]


def _row(what: str, ours: float, beside: float, limit: int) -> Row:
    ratio = ours / beside
    peer = f"a tenth of them: {beside * 1000:.1f} ms"
    return Row(what, f"{ours * 1000:.1f} ms", peer, ratio, f"ratio <= {limit}", ratio <= limit)


async def _listed(path: Path, count: int) -> float:
    connection = open_database(path)
    connection.execute("BEGIN")
    for number in range(1, count + 1):
        folder = "/mine" if number % 10 == 0 else "/x"
        for sql, values in session_rows(*session(number, 4, folder, every=4), this_process())[3:]:
            connection.execute(sql, values)
    connection.execute("COMMIT")
    connection.close()
    store = Store(path)
    try:
        await store.flush()
        return min([await timed(lambda: store.list_sessions("/mine", 20)) for _ in range(9)])
    finally:
        store.close()


async def _opened(folder: Path, count: int) -> float:
    spent = []
    for number in range(5):  # what is open already is not read again
        project = folder / str(number)
        (project / ".git").mkdir(parents=True)
        async with Workspace(project, data_dir=project / "data") as workspace:
            assert workspace.store is not None
            info, messages, parts = session(1, count, str(workspace.directory))
            await workspace.store.write_session(info, messages, parts)
            spent.append(await timed(partial(workspace.sessions.open, info["id"])))
    return min(spent)
