"""A lock on an open file that holds between processes."""

from __future__ import annotations

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def lock_file(descriptor: int, *, wait: bool = True) -> bool:
    """Lock an open file for this process; closing it, also by the end of the process, releases the lock.

    Args:
        descriptor: the file.
        wait: wait for as long as another process holds it.

    Returns:
        False if the system has no such locks (Windows).

    Raises:
        BlockingIOError: another process holds it, and `wait` is False.
        OSError: the file system has no such locks (some networks').
    """
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    return fcntl is not None
