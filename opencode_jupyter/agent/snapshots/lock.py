"""One at a time per project, across threads and processes."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from .git import GitError

WAIT = 20.0
"""Seconds to wait for another process."""
PAUSE = 0.01


@contextlib.contextmanager
def locked(path: Path, check: Callable[[], None]) -> Iterator[int | None]:
    """Hold the lock.

    The system gives it up when its last holder has ended, however that came about; a git that was started with the
    descriptor is a holder too, so nobody else begins while it still writes.

    Args:
        path: the lock's file; made if missing, and left.
        check: called while waiting; what it raises ends the wait.

    Returns:
        The descriptor that holds the lock; None where the file system has no locks.

    Raises:
        GitError: another process did not let go of it in time.
        OSError: the file can't be made.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        yield descriptor if _taken(descriptor, path, check) else None
    finally:
        os.close(descriptor)


def _taken(descriptor: int, path: Path, check: Callable[[], None]) -> bool:
    try:
        import fcntl
    except ImportError:
        return False
    end = time.monotonic() + WAIT
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            check()
            if time.monotonic() > end:
                raise GitError(f"another process has held {path} for {WAIT:g} s") from None
            time.sleep(PAUSE)
        except OSError:  # a network's file system, say
            return False
        else:
            return True
