"""Temporary files beside the files they are to replace, removed by a later process if this one is killed.

A process notes each name in its journal, a file in the data folder, before it creates the file, and holds a lock on
the journal while it runs. A journal without a lock belongs to a process that is gone: `sweep` removes what it names.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import threading
from collections.abc import Iterator
from pathlib import Path

from .file_lock import lock_file
from .paths import make_private_folder

_NAME = re.compile(r"\.opencode-[0-9a-f]{16}\.tmp")
_lock = threading.Lock()
_folder: Path | None = None
_descriptor: int | None = None
_in_use = 0


def use(data_dir: Path) -> None:
    """Keep the journal in this data folder from now on, and sweep up after processes that are gone."""
    global _folder
    folder = data_dir / "temporaries"
    with _lock:
        if folder != _folder:
            _close()
            _folder = folder
    with contextlib.suppress(OSError):
        sweep(folder)


@contextlib.contextmanager
def journaled() -> Iterator[None]:
    """While names made by `name` are in use; the journal is emptied when the last of them is not any more."""
    global _in_use
    with _lock:
        _in_use += 1
    try:
        yield
    finally:
        with _lock:
            _in_use -= 1
            if _in_use == 0 and _descriptor is not None:
                with contextlib.suppress(OSError):
                    os.ftruncate(_descriptor, 0)


def name(folder: Path, original: Path | None = None) -> Path:
    """A new name in `folder`, noted in the journal; call it inside `journaled`.

    Args:
        folder: where the file will be.
        original: the path whose file is moved to the new name; a sweep moves it back if nothing is at that path.
    """
    path = folder / f".opencode-{secrets.token_hex(8)}.tmp"
    line = json.dumps([os.fspath(path), None if original is None else os.fspath(original)])
    with _lock, contextlib.suppress(OSError):  # without a journal a file may be left over, no more
        if _descriptor is None:
            _open()
        if _descriptor is not None:
            os.write(_descriptor, line.encode() + b"\n")
    return path


def sweep(folder: Path) -> None:
    """Remove what processes that are gone have left, by their journals in `folder`."""
    for journal in folder.glob("*.journal") if folder.is_dir() else ():
        with contextlib.suppress(OSError), journal.open("rb") as file:
            if not lock_file(file.fileno(), wait=False):
                journal.replace(journal)  # Windows refuses that while its process has it open
            for line in file:
                with contextlib.suppress(OSError, ValueError, TypeError):  # the last line may be half-written
                    _remove(*json.loads(line))
            journal.unlink()


def _remove(path: str, original: str | None) -> None:
    if _NAME.fullmatch(os.path.basename(path)) is None:
        return
    if original is not None and os.path.lexists(path) and not os.path.lexists(original):
        os.rename(path, original)
    else:
        os.unlink(path)


def _open() -> None:
    global _descriptor
    if _folder is None:
        return
    make_private_folder(_folder)
    while True:
        path = _folder / f"{secrets.token_hex(8)}.journal"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        lock_file(descriptor)
        if path.exists():  # else another process swept it before it was locked
            _descriptor = descriptor
            return
        os.close(descriptor)


def _close() -> None:
    global _descriptor
    if _descriptor is not None:
        os.close(_descriptor)  # the next sweep finds the journal without a lock, and empty
    _descriptor = None


def _after_fork() -> None:
    global _lock, _in_use
    _lock = threading.Lock()
    _in_use = 0
    _close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
