"""The child that fills an index: has files taken apart by children of its own, and writes what they find.

Reads one message (`extract_child.send`) from stdin: the index file, the project's folder, the files to look at, those
to forget, and how many children to use. Writes lines to stdout: ``waiting`` while another process fills the same index,
``N`` after every N files, ``done``. It ends at once when stdin ends, which is when the kernel does; what was written
until then is a valid index of a part of the files.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import queue
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

BATCH = 32
COMMIT = 512
"""Files between two commits."""


def main() -> int:
    """Do what the message says."""
    here = Path(__file__).resolve()
    spec = importlib.util.spec_from_file_location("extract_child", here.with_name("extract_child.py"))
    assert spec is not None
    assert spec.loader is not None
    wire = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(wire)
    job = wire.receive(sys.stdin.buffer)
    if job is None:
        return 1
    threading.Thread(target=_end_with_parent, daemon=True).start()
    index, root, wanted, gone, workers = job
    lock = _lock(index + ".lock")
    store = wire.load("store").Store(Path(index))
    try:
        _fill(wire, store, root, wanted, gone, workers)
    finally:
        store.close()
        lock.close()
    _say("done")
    return 0


def _end_with_parent() -> None:
    while os.read(0, 1024):
        pass
    os._exit(1)  # the children end too: their stdin is closed with us


def _lock(path: str) -> sqlite3.Connection:
    """Wait until no other process fills this index. SQLite's lock ends with its process, on every system."""
    while True:
        connection = sqlite3.connect(path, timeout=0.2, isolation_level=None)
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            connection.close()
            if "locked" not in str(error):
                raise
            _say("waiting")
        except sqlite3.DatabaseError:
            connection.close()
            Path(path).unlink(missing_ok=True)
        else:
            return connection
        time.sleep(0.1)


def _fill(wire: Any, store: Any, root: str, wanted: list[tuple[str, int, int]], gone: list[str], workers: int) -> None:
    known = store.files()  # another process may have done a part meanwhile
    todo = [path for path, mtime, size in wanted if known.get(path) != (mtime, size)]
    done = len(wanted) - len(todo)
    store.begin()
    store.forget(gone)
    store.commit()
    batches = [todo[i : i + BATCH] for i in range(0, len(todo), BATCH)]
    if not batches:
        return
    tasks: queue.SimpleQueue[list[tuple[str, bytes | None]]] = queue.SimpleQueue()
    for batch in batches:
        tasks.put([(path, store.digest(path) if path in known else None) for path in batch])
    results: queue.Queue[Any] = queue.Queue(maxsize=2 * workers + 2)
    for _ in range(workers):
        threading.Thread(target=_feed, args=(wire, root, tasks, results), daemon=True).start()
    in_transaction = 0
    store.begin()
    for _ in batches:
        answer = results.get()
        if isinstance(answer, Exception):
            store.rollback()
            raise answer
        for update in answer:
            store.put(*update)
        done += len(answer)
        in_transaction += len(answer)
        if in_transaction >= COMMIT:
            store.commit()
            store.begin()
            in_transaction = 0
        _say(str(done))
    store.commit()


def _feed(wire: Any, root: str, tasks: Any, results: Any) -> None:
    """Have batches taken apart by a child until there are none left."""
    child = _Child(wire, root)
    try:
        while True:
            batch = tasks.get_nowait()
            answer = child.ask(batch)
            if answer is None:  # a file was too much for it; each alone, then, and that one is noted as empty
                answer = []
                for one in batch:
                    answer += child.ask([one]) or [_empty(root, one[0])]
            results.put(answer)
    except queue.Empty:
        pass
    except Exception as error:
        results.put(error)
    finally:
        child.close()


def _empty(root: str, path: str) -> tuple[str, int, int, bytes, list[Any]]:
    try:
        found = os.lstat(os.path.join(root, path))
    except OSError:
        return path, 0, 0, b"", []
    return path, found.st_mtime_ns, found.st_size, b"", []


class _Child:
    """A child that takes files apart, started anew when it dies (of memory, say)."""

    def __init__(self, wire: Any, root: str) -> None:
        self._wire = wire
        self._root = root
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, batch: list[tuple[str, bytes | None]]) -> list[Any] | None:
        """What it found, or None if it died."""
        if self._process is None:
            self._process = _start()
        try:
            self._wire.send(self._process.stdin, (self._root, batch))
            answer: list[Any] | None = self._wire.receive(self._process.stdout)
        except OSError:
            answer = None
        if answer is None:
            self.close()
        return answer

    def close(self) -> None:
        """End it."""
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(2)
        if process.returncode is None:
            process.kill()
            process.wait()


def _start() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", "-S", str(Path(__file__).resolve().with_name("extract_child.py"))]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
