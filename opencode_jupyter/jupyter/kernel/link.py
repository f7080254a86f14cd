"""The connection of a notebook's tool system with its kernel: message routes, jobs for the main thread."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from . import ipykernel_compat, ipykernel_interrupts
from .reply_channels import terminal_is_attended
from .waiting import Waiter, blocking


class KernelLink:
    """The connection of one shell.

    Attributes:
        shell: the IPython shell.
        kernel: its ipykernel; None in a terminal.
        kernel_id: its id as a Jupyter server knows it; empty if its connection file has another name.
        routes: the routes that a message can take while a cell runs.
        pump: reads messages while code blocks the main thread (6.x); None elsewhere.
    """

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.kernel = ipykernel_compat.kernel_of(shell)
        self.kernel_id = _kernel_id(self.kernel)
        self.routes: dict[str, bool] = {}
        self.pump: Callable[[], None] | None = None
        self._undo: list[Callable[[], None]] = []
        self._main_jobs: deque[Callable[[], None]] = deque()

    # ------------------------------------------------------------------ messages

    @property
    def is_connected(self) -> bool:
        """Whether the routes are installed."""
        return bool(self._undo)

    def connect(self, on_comm: ipykernel_compat.OnComm, requests: ipykernel_compat.Requests) -> None:
        """Install the routes by which a busy kernel receives messages."""
        tap = ipykernel_compat.install_tap(self.kernel, on_comm)
        control = ipykernel_compat.install_control(self.kernel, on_comm, requests)
        self.pump = ipykernel_compat.make_pump(self.kernel)
        self.routes = {"tap": tap is not None, "control": control is not None, "pump": self.pump is not None}
        interrupts = ipykernel_interrupts.install_interrupts(self.shell, self.kernel)
        quiet = ipykernel_interrupts.install_quiet_errors(self.shell)
        status = ipykernel_compat.install_status(self.kernel)
        self._undo = [undo for undo in (tap, control, interrupts, quiet, status) if undo is not None]

    def on_disconnect(self, undo: Callable[[], None]) -> None:
        """Have `undo` called when the routes are removed."""
        self._undo.append(undo)

    def disconnect(self) -> None:
        """Remove the routes."""
        for undo in self._undo:
            undo()
        self._undo = []
        self.pump = None
        self.routes = {}

    def publish(self, content: dict[str, Any]) -> bool:
        """Send every front end a notification; False where that is impossible. Any thread may call it."""
        return ipykernel_compat.publish(self.kernel, content)

    # ------------------------------------------------------------------ the main thread

    def call_later(self, fn: Callable[[], Any]) -> bool:
        """Have `fn` run on the main thread when it is idle; False in a terminal."""
        return ipykernel_compat.call_later_on_main(self.kernel, fn)

    def wake_main(self) -> None:
        """Let an interrupt in where a cell awaits other things than our calls: SIGINT does not wake an idle await."""
        self.call_later(_do_nothing)

    def beat(self) -> None:
        """The work of a waiting cell at every heartbeat."""
        if self.pump is not None:
            self.pump()
        if self._main_jobs:
            self._run_main_jobs()
        if threading.current_thread() is not threading.main_thread():
            self.wake_main()

    def run_on_main(self, fn: Callable[[], Any], waiter: Waiter | None) -> concurrent.futures.Future[Any]:
        """Run a function on the main thread: by the cell that waits there, or when the kernel is idle."""
        if waiter is not None and waiter.on_main:
            return waiter.submit(fn)
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn())
            except BaseException as error:
                future.set_exception(error)
                if isinstance(error, KeyboardInterrupt):
                    raise

        self._main_jobs.append(run)
        # The first of them runs it: an idle kernel, or a cell that waits (for this call's handle, or another call).
        if not self.call_later(self._run_when_idle) and not blocking():
            self._main_jobs.remove(run)
            future.set_exception(RuntimeError("this tool needs the main thread, which is not available now"))
        return future

    def _run_main_jobs(self) -> None:
        while self._main_jobs and threading.current_thread() is threading.main_thread():
            with contextlib.suppress(IndexError):
                self._main_jobs.popleft()()

    def _run_when_idle(self) -> None:
        """Run jobs from the main thread's loop, which an interrupt must not end: the cell that awaits there gets it."""
        try:
            self._run_main_jobs()
        except KeyboardInterrupt:
            from ..tools.interrupts import interrupt_cell  # here: it belongs to the python tool, whose work this is

            interrupt_cell()

    # ------------------------------------------------------------------ the person and the notebook

    @property
    def accepts_input(self) -> bool:
        """Whether the client that runs a cell now answers `input()`."""
        if self.kernel is not None:
            return ipykernel_compat.allows_stdin(self.kernel)
        return terminal_is_attended()

    @property
    def notebook_path(self) -> str | None:
        """The notebook that this kernel was started for (JPY_SESSION_NAME of jupyter_server, or VS Code's variable)."""
        path = os.environ.get("JPY_SESSION_NAME") or self.shell.user_ns.get("__vsc_ipynb_file__")
        return path if isinstance(path, str) and os.path.isabs(path) else None


def _do_nothing() -> None:
    """Only wakes the loop that runs it."""


def _kernel_id(kernel: Any) -> str:
    app = getattr(kernel, "parent", None)
    name = os.path.basename(getattr(app, "connection_file", "") or "")
    return name[len("kernel-") : -len(".json")] if name.startswith("kernel-") and name.endswith(".json") else ""
