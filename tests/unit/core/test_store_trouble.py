"""The store under several processes, crashes, full disks, damaged files and forks."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from opencode_jupyter.core.call_state import Running
from opencode_jupyter.core.store import database as schema
from opencode_jupyter.core.store import store as store_module
from opencode_jupyter.core.store.store import Store
from tests.support.storing import completed, run_child, tool_part

pytestmark = pytest.mark.anyio


async def test_two_processes_write_at_once(path: Path, store: Store) -> None:
    code = """
    store = Store(Path(sys.argv[1]))
    for n in range(500):
        store.put_part(part(n, sys.argv[2], Completed({}, 1, 2, "t", "x" * 500, {})))
        if n % 10 == 0:
            asyncio.run(store.flush())
    store.close()
    print(store.problem)
    """
    children = [run_child(code, str(path), f"ses_{n}") for n in range(2)]
    for number in range(500):
        store.put_part(tool_part(number, "ses_here", state=completed()))
        if number % 10 == 0:
            await store.flush()
    for child in children:
        out, err = child.communicate(timeout=60)
        assert (child.returncode, out.strip()) == (0, "None"), err
    for session in ("ses_0", "ses_1", "ses_here"):
        assert len(await store.parts(session)) == 500
    assert store.problem is None


async def test_many_processes_make_the_file_at_once(path: Path) -> None:
    code = """
    store = Store(Path(sys.argv[1]))
    store.put_part(part(1, sys.argv[2], Completed({}, 1, 2, "t", "x", {})))
    store.close()
    print(store.problem)
    """
    children = [run_child(code, str(path), f"ses_{n}") for n in range(6)]
    for child in children:
        out, err = child.communicate(timeout=60)
        assert (child.returncode, out.strip()) == (0, "None"), err
    store = Store(path)
    assert len(await store.parts()) == 6
    store.close()


async def test_killed_process_leaves_aborted_calls(path: Path) -> None:
    code = """
    store = Store(Path(sys.argv[1]))
    store.put_part(part(1, "ses_a", Completed({}, 1, 2, "t", "whole", {})))
    store.put_part(part(2, "ses_a", Running({"command": "sleep 600"}, 1000, metadata={"output": "so far"})))
    store.put_part(part(3, "ses_a", Pending({})))
    asyncio.run(store.flush())
    print("ready", flush=True)
    for n in range(10, 100000):
        store.put_part(part(n, "ses_b", Running({}, 1)))
    time.sleep(60)
    """
    child = run_child(code, str(path))
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    mine = Store(path)
    mine.put_part(tool_part(7, "ses_mine", state=Running({}, 1)))
    await mine.flush()
    assert [p["state"]["status"] for p in await mine.parts("ses_a")] == ["completed", "running", "pending"]
    time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    later = Store(path)
    finished, running, pending = await later.parts("ses_a")
    assert finished["state"]["output"] == "whole"
    assert running["state"].pop("time")["start"] == 1000
    assert running["state"] == {
        "status": "error",
        "error": "Tool execution aborted",
        "input": {"command": "sleep 600"},
        "metadata": {"output": "so far"},
    }
    assert running["opencode_jupyter"]["outcome"] == "ended"
    assert pending["state"]["error"] == "Tool execution aborted"
    assert {p["state"]["status"] for p in await later.parts("ses_b")} <= {"error"}
    # A call of a process that lives goes on.
    assert (await later.parts("ses_mine"))[0]["state"]["status"] == "running"
    mine.close()
    later.close()


async def test_reused_process_id_is_another_process(path: Path) -> None:
    store = Store(path)
    store.put_part(tool_part(state=Running({}, 1)))
    store.put_part(tool_part(2, state=Running({}, 1)))
    store.put_part(tool_part(3, state=Running({}, 1)))
    store.close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE parts SET process_started = 'earlier' WHERE id LIKE '%1'")
        connection.execute("UPDATE parts SET host = 'elsewhere' WHERE id LIKE '%2'")
        connection.execute("UPDATE parts SET host = 'elsewhere', written = 1 WHERE id LIKE '%3'")
        connection.commit()
    store = Store(path)
    assert [p["state"]["status"] for p in await store.parts()] == ["error", "running", "error"]
    store.close()


@pytest.mark.parametrize("damage", ["text", "header", "middle"])
async def test_damaged_file_is_moved_aside(path: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    store = Store(path)
    for number in range(200):
        store.put_part(tool_part(number, state=completed("x" * 300)))
    store.close()
    content = bytearray(path.read_bytes())
    if damage == "text":
        content = bytearray(b"this is no database\n" * 1000)
    elif damage == "header":
        content[:100] = os.urandom(100)
    else:
        content[4096:] = os.urandom(len(content) - 4096)
    path.write_bytes(content)
    store = Store(path)
    store.put_part(tool_part(999))
    await store.flush()
    assert [p["callID"] for p in await store.parts()] == ["call_999"]
    assert store.problem is None
    assert store.moved_aside is not None and store.moved_aside.read_bytes() == content
    assert ".corrupt-" in store.moved_aside.name
    assert any("damaged" in r.message for r in caplog.records)
    store.close()
    again = Store(path)
    assert len(await again.parts()) == 1
    again.close()


async def test_file_of_a_later_release_is_left_alone(path: Path) -> None:
    Store(path).close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    store = Store(path)
    store.put_part(tool_part())
    assert len(await store.parts()) == 1
    assert store.problem is not None and "version 99" in store.problem
    store.close()
    assert path.read_bytes() == before


async def test_migration_keeps_what_is_there(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(path)
    store.put_part(tool_part(state=completed()))
    store.close()

    def second(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE parts SET tool = 'migrated'")

    monkeypatch.setattr(schema, "MIGRATIONS", [*schema.MIGRATIONS, "ALTER TABLE parts ADD COLUMN colour TEXT", second])
    for _ in range(2):
        store = Store(path)
        assert (await store.calls())[0]["tool"] == "migrated"
        store.close()
    with contextlib.closing(sqlite3.connect(path)) as reader:
        assert reader.execute("PRAGMA user_version").fetchone() == (schema.FIRST_VERSION + len(schema.MIGRATIONS),)
        reader.execute("SELECT colour FROM parts")


async def test_failed_migration_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(path)
    store.put_part(tool_part(state=completed()))
    store.close()

    def fails(connection: sqlite3.Connection) -> None:
        if connection.execute("DELETE FROM parts").rowcount:
            raise ValueError("no way from here")

    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", [*schema.MIGRATIONS, fails])
        store = Store(path)
        await store.flush()
        assert store.problem is not None and "no way from here" in store.problem
        store.close()
    store = Store(path)
    assert len(await store.parts()) == 1
    store.close()


async def test_nobody_waits_for_a_writer_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: Path | None, busy_ms: int = 0) -> sqlite3.Connection:
        raise MemoryError("none left")

    monkeypatch.setattr(store_module, "open_database", broken)
    store = Store(None)
    with pytest.raises(RuntimeError, match=r"none left|closed"):
        await store.flush()
    assert store.problem is not None
    store.put_part(tool_part())
    store.close()


async def test_folder_that_can_not_be_made(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    store = Store(tmp_path / "file" / "store.db")
    store.put_part(tool_part())
    assert len(await store.parts()) == 1
    assert store.problem is not None
    assert "memory" in store.problem
    assert str(tmp_path) in store.problem
    store.close()
    assert sum("memory only" in r.message for r in caplog.records) == 1


async def test_locked_file_falls_back_and_heals(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = schema.open_database
    monkeypatch.setattr(store_module, "open_database", lambda p, busy_ms=0: original(p, busy_ms=50))
    monkeypatch.setattr(store_module, "RETRY_S", 0.0)
    store = Store(path)
    store.put_part(tool_part(1, state=completed()))
    store.put_session({"id": "ses_gone"})
    await store.flush()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        store.put_part(tool_part(2, state=completed()))
        await store.flush()
        assert store.problem is not None and "locked" in store.problem
        assert len(await store.parts()) == 2  # with what the file held
        await store.delete_session("ses_gone")
        connection.execute("ROLLBACK")
    store.put_part(tool_part(3, state=completed()))
    await store.flush()
    assert store.problem is None
    store.close()
    store = Store(path)
    assert [p["callID"] for p in await store.parts()] == ["call_1", "call_2", "call_3"]
    assert await store.sessions() == []
    store.close()


async def test_closing_brings_what_was_kept_in_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = schema.open_database
    monkeypatch.setattr(store_module, "open_database", lambda p, busy_ms=0: original(p, busy_ms=50))
    Store(path).close()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        store = Store(path)
        store.put_part(tool_part(1))
        await store.flush()
        connection.execute("ROLLBACK")
    store.close()
    assert len(sqlite3.connect(path).execute("SELECT id FROM parts").fetchall()) == 1


def test_full_disk(path: Path) -> None:
    code = """
    import resource
    store = Store(Path(sys.argv[1]))
    store.put_part(part(0, "ses_a", Completed({}, 1, 2, "t", "before", {})))
    asyncio.run(store.flush())
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
    for n in range(1, 40):
        store.put_part(part(n, "ses_a", Completed({}, 1, 2, "t", "x" * 50_000, {})))
        asyncio.run(store.flush())
    assert store.problem and "memory" in store.problem, store.problem
    assert len(asyncio.run(store.parts("ses_a"))) == 40
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    store.close()
    print(store.problem)
    """
    child = run_child(code, str(path))
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out.strip()) == (0, "None"), err
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM parts").fetchone() == (40,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_close_is_idempotent_and_flushes(path: Path) -> None:
    store = Store(path)
    for number in range(1000):
        store.put_part(tool_part(number))
    threads = [threading.Thread(target=store.close) for _ in range(4)]
    for thread in threads:
        thread.start()
    store.close()
    for thread in threads:
        thread.join()
    with pytest.raises(RuntimeError, match="closed"):
        await store.parts()
    store.put_part(tool_part(1))  # a call that ends late must not fail
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM parts").fetchone() == (1000,)


def test_exit_without_close_flushes(path: Path) -> None:
    code = """
    store = Store(Path(sys.argv[1]))
    for n in range(200):
        store.put_part(part(n, "ses_a", Completed({}, 1, 2, "t", "x", {})))
    """
    child = run_child(code, str(path))
    _, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (0, "")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM parts").fetchone() == (200,)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_child_leaves_the_file_alone(path: Path) -> None:
    code = """
    store = Store(Path(sys.argv[1]))
    store.put_part(part(1, "ses_a", Running({}, 1)))
    asyncio.run(store.flush())
    pid = os.fork()
    if pid == 0:
        store.put_part(part(2, "ses_a", Running({}, 1)))
        try:
            asyncio.run(store.flush())
        except RuntimeError:
            sys.exit(3)
        sys.exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
    store.put_part(part(3, "ses_a", Running({}, 1)))
    store.close()
    """
    child = run_child(code, str(path))
    _, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    with contextlib.closing(sqlite3.connect(path)) as connection:
        call_ids = [json.loads(r[0])["callID"] for r in connection.execute("SELECT data FROM parts ORDER BY id")]
    assert call_ids == ["call_1", "call_3"]


def test_opening_does_not_wait_for_the_file(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    Store(path).close()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        store = Store(path)
        store.put_part(tool_part())
        connection.execute("ROLLBACK")
    store.close()
    assert store.problem is None
