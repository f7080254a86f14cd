"""A command in a process group of its own: for systems without supervisors (macOS).

A daemon that leaves the group escapes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence

from ...core.threads import call_soon
from .child import Exit

GRACE = 0.2
"""Seconds between SIGTERM and SIGKILL."""


class Group:
    """The group's leader and what is in the group; ends by signals to the group."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        output: int,
        own: tuple[int, int] | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.started: asyncio.Future[int] = self._loop.create_future()
        self.exited: asyncio.Future[Exit] = self._loop.create_future()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self._process = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=dict(env),
            stdin=own[0] if own else subprocess.DEVNULL,
            stdout=output,
            stderr=own[1] if own else output,
            start_new_session=True,
        )
        self._ending = False
        self._left = False
        self.started.set_result(self._process.pid)
        threading.Thread(target=self._wait, name="opencode-wait", daemon=True).start()

    def end(self) -> None:
        """Begin to end the group: SIGTERM, `GRACE`, SIGKILL."""
        if not self._ending:
            self._ending = True
            threading.Thread(target=self._end, name="opencode-end", daemon=True).start()

    def leave(self) -> None:
        """Let what is left run on."""
        self._left = True

    def force(self) -> None:
        """SIGKILL."""
        self._signal(signal.SIGKILL)

    def close(self) -> None:
        """End what was not told to run on."""
        if not self._left:
            self.end()

    def _wait(self) -> None:
        code = self._process.wait()
        outcome = Exit(None, -code) if code < 0 else Exit(code)
        self._tell(self.exited, outcome)

    def _end(self) -> None:
        self._signal(signal.SIGTERM)
        limit = time.monotonic() + GRACE
        while self._alive() and time.monotonic() < limit:
            time.sleep(0.01)
        self._signal(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.5)
        self._tell(self.gone, None)

    def _alive(self) -> bool:
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _tell(self, future: asyncio.Future[Exit] | asyncio.Future[None], value: Exit | None) -> None:
        def tell() -> None:
            if not future.done():
                future.set_result(value)  # type: ignore[arg-type]

        call_soon(self._loop, tell)
