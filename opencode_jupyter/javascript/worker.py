"""One process that runs tool files. Everything here belongs to one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import ToolError
from .runtime import Runtime

if TYPE_CHECKING:
    from ..sandbox.policy import SandboxPolicy
    from ..tools.process.stdio import Stdio

log = logging.getLogger(__name__)

SCRIPT = Path(__file__).parent / "host" / "main.mjs"
MAX_LINE = 512 << 20
"""Bytes of one message; after more of them the process is taken for broken. A tool may return a quarter of that."""
_REDIRECT = 'exec "$0" "$@" 4<&0 3>&1 0</dev/null 1>&2'
"""Requests on descriptor 4, replies on 3. What tools and their programs print goes to stderr; they read nothing."""

OnEvent = Callable[[dict[str, Any]], None]


class WorkerEndedError(ToolError):
    """The process that runs the tools ended while a call was running. The next call starts it again."""


class Worker:
    """A running process.

    Attributes:
        runtime: the program it is.
        loaded: files it has loaded, with the hash of their content.
        spoiled: a file failed to load, which Bun would repeat for ever.
    """

    def __init__(
        self, runtime: Runtime, directory: str, env: Mapping[str, str], sandbox: SandboxPolicy | None = None
    ) -> None:
        self.runtime = runtime
        self.loaded: dict[Path, str] = {}
        self.spoiled = False
        self._directory = directory
        self._env = env
        self._sandbox = sandbox
        self._program: Stdio | None = None
        self._requests: dict[int, tuple[asyncio.Future[dict[str, Any]], OnEvent | None]] = {}
        self._next = 0
        self._line = bytearray()
        self._end_reason = ""
        self._stopping: asyncio.Task[None] | None = None

    @property
    def alive(self) -> bool:
        """True if it takes requests."""
        return self._program is not None and not self._program.exited and not self._end_reason

    @property
    def idle(self) -> bool:
        """True if nobody waits for it."""
        return not self._requests

    @property
    def pid(self) -> int:
        """Its process; 0 if there is none."""
        return self._program.pid if self._program is not None else 0

    async def start(self) -> None:
        """Start the process.

        Raises:
            ToolError: it can't be started.
        """
        from ..tools.process.stdio import start_stdio

        command = ["/bin/sh", "-c", _REDIRECT, *self.runtime.command(SCRIPT)]
        try:
            self._program = await start_stdio(command, cwd=self._directory, env=self._env, sandbox=self._sandbox)
        except (OSError, ValueError) as error:
            raise ToolError(f"{self.runtime.program} can't be started: {error}") from error
        self._program.listen(self._feed, self._handle_end)

    async def request(self, request: dict[str, Any], on_event: OnEvent | None = None) -> dict[str, Any]:
        """Send a request and wait for its reply.

        Args:
            request: ``method`` and what belongs to it.
            on_event: called with the messages about it that come before the reply.

        Raises:
            WorkerEndedError: the process ended before it replied.
        """
        self._next += 1
        number = self._next
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._requests[number] = (future, on_event)
        try:
            self.send({**request, "id": number})
            return await future
        except asyncio.CancelledError:
            if request["method"] == "call":
                with contextlib.suppress(WorkerEndedError):
                    self.send({"method": "abort", "call": number})
            raise
        finally:
            self._requests.pop(number, None)

    async def stop(self, reason: str) -> None:
        """End the process and what it started; requests in progress fail with `reason`."""
        self._end_reason = self._end_reason or reason
        program, self._program = self._program, None
        self._fail_requests()
        if program is not None:
            await program.stop()

    def send(self, request: dict[str, Any]) -> None:
        """Send a request; its reply, if there is one, is not waited for.

        Raises:
            WorkerEndedError: the process has ended.
        """
        if self._program is None or self._end_reason:
            raise WorkerEndedError(self._end_reason or "the process that runs JavaScript tools is not running")
        try:
            self._program.write(json.dumps(request, separators=(",", ":")).encode() + b"\n")
        except OSError:
            raise WorkerEndedError(self._describe_exit()) from None
        except BufferError as error:
            raise WorkerEndedError(f"the process that runs JavaScript tools hangs: {error}") from None

    def _feed(self, data: bytes) -> None:
        *lines, unfinished = data.split(b"\n")
        for line in lines:
            self._line += line
            message, self._line = self._line, bytearray()
            self._handle_line(message)
        self._line += unfinished
        if len(self._line) > MAX_LINE and not self._stopping:
            self._line.clear()
            self._stopping = asyncio.ensure_future(self.stop(f"a JavaScript tool sent more than {MAX_LINE >> 20} MiB"))

    def _handle_line(self, line: bytearray) -> None:
        try:
            message = json.loads(line)
            number = message["id"]
        except (ValueError, KeyError, TypeError, RecursionError):
            log.warning("a JavaScript worker sent %d bytes that are not a message", len(line))
            return
        future, on_event = self._requests.get(number, (None, None))
        if future is None or future.done():
            return  # nobody waits for it any more
        if "event" in message:
            if on_event is not None:
                on_event(message)
        else:
            future.set_result(message)

    def _handle_end(self) -> None:
        """Nothing more will come."""
        program = self._program
        if program is None:
            return
        self._end_reason = self._end_reason or self._describe_exit()
        self._program = None
        self._fail_requests()
        program.close()

    def _describe_exit(self) -> str:
        last_lines = self._program.errors.splitlines()[-3:] if self._program is not None else []
        last = "; it last printed: " + " | ".join(last_lines) if last_lines else ""
        return f"the process that runs JavaScript tools ended while this call was running{last}. It is started again."

    def _fail_requests(self) -> None:
        for future, _ in self._requests.values():
            if not future.done():
                future.set_exception(WorkerEndedError(self._end_reason))


def environment(directory: str, keep: Any) -> dict[str, str]:
    """A worker's environment: the kernel's, without what looks like a secret, as commands get it.

    Args:
        directory: the workspace's folder.
        keep: the config's ``experimental.shell_env_keep``: names with wildcards, or True.
    """
    from ..tools.process.environment import clean_environment

    return clean_environment(os.environ, keep=keep, extra={"PWD": directory})
