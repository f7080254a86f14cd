"""Run git on a folder of our own, with no settings but ours, one process at a time; ends it at once when stopped."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ...core.file_lock import lock_file

LONGEST_MESSAGE = 500
"""Characters of git's complaint that are kept."""
WAIT = 20.0
"""Seconds to wait for another process."""
PAUSE = 0.01


class GitError(Exception):
    """git failed; the text is its message."""


class TooSlowError(GitError):
    """git took longer than it may."""


class StoppedError(GitError):
    """`Git.stop` was called."""


class Git:
    """One worker's runs of git, one after another, all of which `stop` ends.

    Args:
        program: git.
        folder: the ``GIT_DIR``; None for the repository that the worktree itself belongs to.
        worktree: where it runs.
        seconds: which all runs together may take.
    """

    def __init__(self, program: str, folder: Path | None, worktree: Path, seconds: float) -> None:
        self._program = program
        self._worktree = worktree
        self._env = environment(folder, worktree)
        self._deadline = time.monotonic() + seconds
        self._seconds = seconds
        self._guard = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self.inherited: tuple[int, ...] = ()
        """Descriptors that every git keeps open: a lock is held until the last of them has ended."""

    def run(self, *arguments: str, input: bytes | None = None, ok: Sequence[int] = (0,)) -> bytes:
        """Run git and return what it wrote.

        `input` is what it reads; exit codes in `ok` are no failure.

        Raises:
            GitError: it failed, took too long or was stopped.
        """
        with self._guard:
            self.check()
            try:
                process = subprocess.Popen(
                    [self._program, *arguments],
                    cwd=self._worktree,
                    env=self._env,
                    stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    pass_fds=self.inherited,
                    start_new_session=True,  # an interrupt of the kernel is not meant for it
                )
            except OSError as error:
                raise GitError(f"git can't be started: {error}") from error
            self._process = process
        try:
            out, complaint = process.communicate(input, max(0.01, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise TooSlowError(f"git {arguments[0]} took more than {self._seconds:g} s") from None
        finally:
            with self._guard:
                self._process = None
            _kill(process)
        self.check()
        if process.returncode not in ok:
            message = complaint.decode("utf-8", "replace").strip()[:LONGEST_MESSAGE]
            raise GitError(f"git {arguments[0]} failed ({process.returncode}): {message}")
        return out

    def check(self) -> None:
        """Raise if it was stopped or its time is up."""
        if self._stopped:
            raise StoppedError("stopped")
        if time.monotonic() > self._deadline:
            raise TooSlowError(f"it took more than {self._seconds:g} s")

    def stop(self) -> None:
        """End what runs, and let nothing more run. Any thread may call it."""
        with self._guard:
            self._stopped = True
            if self._process is not None:
                _kill(self._process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a git, with what it may have started, if it has not ended."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def environment(folder: Path | None, worktree: Path) -> dict[str, str]:
    """The environment of a git that must not be surprised.

    `folder` is the ``GIT_DIR``; None is the worktree's own repository, which is read with its owner's settings.
    """
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_LITERAL_PATHSPECS": "1", "LC_ALL": "C"}
    if folder is not None:
        # HOME, since only git 2.32 and later read GIT_CONFIG_GLOBAL.
        env |= {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
        env |= {"GIT_DIR": str(folder), "GIT_WORK_TREE": str(worktree), "GIT_CEILING_DIRECTORIES": ""}
    return env


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
        yield descriptor if _take_lock(descriptor, path, check) else None
    finally:
        os.close(descriptor)


def _take_lock(descriptor: int, path: Path, check: Callable[[], None]) -> bool:
    end = time.monotonic() + WAIT
    while True:
        try:
            return lock_file(descriptor, wait=False)
        except BlockingIOError:
            check()
            if time.monotonic() > end:
                raise GitError(f"another process has held {path} for {WAIT:g} s") from None
            time.sleep(PAUSE)
        except OSError:  # a network's file system, say
            return False
