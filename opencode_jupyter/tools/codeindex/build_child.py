"""The child that fills an index: has files taken apart by processes of its own, and writes what they find.

Reads one message (`send`) from stdin: the index file, the project's folder, the files to look at, those to forget, and
how many processes to use. Writes lines to stdout: ``N`` after every N files, ``done``. It ends at once with its
processes when stdin ends, which is when the kernel does; what was written until then is a valid index of a part of the
files.
"""

from __future__ import annotations

import gc
import importlib
import marshal
import multiprocessing
import os
import sys
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

BATCH = 32
COMMIT = 512
"""Files between two commits."""
KnownFile = tuple[str, "bytes | None"]
"""A file and the digest of the content that is in the index."""


def send(sink: BinaryIO, message: Any) -> None:
    """Write a message: its length as 8 bytes, then marshalled."""
    data = marshal.dumps(message)
    sink.write(len(data).to_bytes(8, "little") + data)
    sink.flush()


def main() -> int:
    """Do what the message says."""
    head = sys.stdin.buffer.read(8)
    if len(head) < 8:
        return 1
    data = sys.stdin.buffer.read(int.from_bytes(head, "little"))
    index, root, changed, deleted, workers = marshal.loads(data)  # noqa: S302 - from our own parent
    # last, so that a module beside us named as one of the standard library hides nothing; without the package around
    # this folder, whose imports take longer than the work
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    importlib.import_module("codeindex.extract")  # before the processes are forked
    threading.Thread(target=_end_with_parent, daemon=True).start()
    store = importlib.import_module("codeindex.store").IndexStore(Path(index))
    try:
        _fill(store, root, changed, deleted, workers)
    finally:
        store.close()
    _print_line("done")
    return 0


def _end_with_parent() -> None:
    while os.read(0, 1024):
        pass
    os._exit(1)  # the processes end too, see `_begin`


def _fill(store: Any, root: str, changed: list[tuple[str, int, int]], deleted: list[str], workers: int) -> None:
    indexed = store.files()  # another process may have done a part meanwhile
    todo = [path for path, mtime, size in changed if indexed.get(path) != (mtime, size)]
    done = len(changed) - len(todo)
    files_to_read = [(path, store.digest(path) if path in indexed else None) for path in todo]
    with store.transaction():
        store.remove_files(deleted)
    batches = read_in_processes(root, files_to_read, workers)
    while some := list(islice(batches, COMMIT // BATCH)):
        with store.transaction():
            for updates in some:
                for update in updates:
                    store.set_file(*update)
                done += len(updates)
                _print_line(str(done))


def read_in_processes(root: str, files_to_read: list[KnownFile], workers: int) -> Iterator[list[Any]]:
    """Read files in worker processes; gives their updates in batches.

    When a worker is killed (out of memory, say), the files that are left are read one by one, so that it is known which
    one does it; that one is stored as empty.
    """
    batches = deque(files_to_read[i : i + BATCH] for i in range(0, len(files_to_read), BATCH))
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    try:
        with ProcessPoolExecutor(workers, context, _begin) as pool:
            for updates in pool.map(partial(_look, root), list(batches)):
                batches.popleft()
                yield updates
    except BrokenProcessPool:
        pass
    files = deque(file for batch in batches for file in batch)
    while files:
        with ProcessPoolExecutor(1, context, _begin) as pool:
            try:
                while files:
                    updates = pool.submit(_look, root, [files[0]]).result()
                    files.popleft()
                    yield updates
            except BrokenProcessPool:
                yield [_empty(root, files.popleft()[0])]


def _begin() -> None:
    gc.disable()  # nothing made here has cycles
    threading.Thread(target=_end_with_builder, daemon=True).start()


def _end_with_builder() -> None:
    builder = multiprocessing.parent_process()
    assert builder is not None
    builder.join()
    os._exit(1)


def _look(root: str, batch: list[KnownFile]) -> list[Any]:
    index_file = importlib.import_module("codeindex.extract").index_file
    return [index_file(root, path, digest) for path, digest in batch]


def _empty(root: str, path: str) -> tuple[str, int, int, bytes, list[Any]]:
    try:
        status = os.lstat(os.path.join(root, path))
    except OSError:
        return path, 0, 0, b"", []
    return path, status.st_mtime_ns, status.st_size, b"", []


def _print_line(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
