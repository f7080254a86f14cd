"""The state of the extension in a shell: its settings, and the notebook when it is first needed.

``%load_ext`` must cost a kernel's start next to nothing, so this imports nothing of the tool system. The notebook is
built by the first magic, or in the background a moment after loading, whichever comes first.
"""

from __future__ import annotations

import contextlib
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .kernel.ipykernel_interrupts import runs_code
from .settings import Settings

if TYPE_CHECKING:
    from ..core.tool import Tool
    from .notebook import Notebook

_ATTRIBUTE = "_opencode_jupyter"
WARM_UP_AFTER = 0.05
"""Seconds after loading, when the background begins to import what the first call needs, unless a cell runs."""
WARM_UP_ANYWAY = 0.5
"""Seconds for which that gives way to running cells: Python runs one thread at a time."""
WARM_UP = (
    "pydantic.fields",
    "opencode_jupyter.core.call",
    "opencode_jupyter.jupyter.magics.tool_preparation",
    "opencode_jupyter.jupyter.notebook",
    "opencode_jupyter.sources",
    "opencode_jupyter.tools._bash_approval",
    "opencode_jupyter.tools._command_sandbox",
    "anyio._backends._asyncio",
    "tree_sitter",
    "tree_sitter_bash",
)
"""Modules that take long to import, in pieces between which a cell may begin."""
WARM_UP_AGENT = (
    "opencode_jupyter.agent.loop",
    "opencode_jupyter.agent.models.model_resolver",
    "opencode_jupyter.jupyter.magics.agent",
    "opencode_jupyter.jupyter.magics.agent_run",
    "httpx2",
)
"""The same for the first ``%%agent``."""


class ExtensionState:
    """The extension in one shell. It outlives an unload for a moment, so that ``%reload_ext`` keeps its state.

    Attributes:
        active: False between an unload and the next load.
        expiry: ends the notebook of an unloaded extension.
    """

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.settings = Settings()
        self.active = False
        self.expiry: threading.Timer | None = None
        self._notebook: Notebook | None = None
        self._lock = threading.RLock()
        self._timer: threading.Timer | None = None
        self._reported: set[str] = set()

    @property
    def existing_notebook(self) -> Notebook | None:
        """The notebook if there is one already."""
        return self._notebook

    @property
    def notebook(self) -> Notebook:
        """The notebook; built now if there is none or it has ended.

        Raises:
            ConfigError: a config file can't be read.
        """
        with self._lock:
            if self._notebook is None or not self._notebook.alive:
                from .notebook import Notebook

                self._notebook = Notebook(self.shell, self.settings)
                self._reported = set()
            if self.active:
                self._notebook.connect()
            return self._notebook

    def report_config_problems(self) -> None:
        """Warn once of what is wrong in the files that were read, and of config files that were written since then.

        On the thread of a cell, whose output it becomes. They are not read again by themselves: a call that may write
        files could otherwise give the next one its permissions.
        """
        from ..core.config.config import UNTRUSTED
        from ..text.visible import visible_line

        workspace = self.notebook.workspace
        # where a person is present, the first call's card shows an untrusted project, and so does `%permissions`
        attended = self.notebook.is_attended()
        reported = [warning for warning in workspace.warnings() if not (attended and warning.key == UNTRUSTED)]
        problems = [visible_line(str(warning)) for warning in reported]
        changed = workspace.config.changed()
        if changed:
            names = ", ".join(map(str, changed[:3])) + (f" and {len(changed) - 3} more" if len(changed) > 3 else "")
            problems.append(f"{names} changed since the configuration was read; %tools reload reads it again")
        for problem in problems:
            if problem not in self._reported:
                # no line of the cell is at fault: its generated code, under a path of this process, is no help
                warnings.warn_explicit(problem, UserWarning, "opencode_jupyter", 1)
        self._reported = set(problems)

    def on_define(self, tool: Tool) -> None:
        """Register a tool that a cell made with ``@tool``; those of a library are registered by their users."""
        if tool.source == "__main__":
            self.notebook.register(tool)

    def warm_up(self) -> None:
        """Build the notebook in the background, soon; and load the model loop where the configuration names a model."""
        deadline = time.monotonic() + WARM_UP_ANYWAY

        def build() -> None:
            with contextlib.suppress(Exception):  # no notebook can be built: the first magic reports it
                for step in self._warming():
                    while runs_code() and time.monotonic() < deadline:
                        time.sleep(0.01)
                    if not self.active:
                        return
                    with contextlib.suppress(Exception):  # the first call that needs it reports it
                        step()

        self._timer = threading.Timer(WARM_UP_AFTER, build)
        self._timer.daemon = True
        self._timer.start()

    def _warming(self) -> Iterator[Callable[[], object]]:
        """The slow preparations of a first call, in pieces."""
        for name in WARM_UP:
            yield partial(import_module, name)
        workspace = self.notebook.workspace
        for id in workspace.registry.names():
            yield partial(workspace.registry.get, id)
        if workspace.config.get("model"):  # a configured model is going to be used
            yield from (partial(import_module, name) for name in WARM_UP_AGENT)

    def disconnect(self) -> None:
        """Remove the routes and stop warming up."""
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            if self._notebook is not None:
                self._notebook.disconnect()

    def end(self) -> None:
        """Close the notebook."""
        with self._lock:
            notebook, self._notebook = self._notebook, None
        if notebook is not None:
            notebook.close()


def find_state(shell: Any = None) -> ExtensionState | None:
    """The state of a shell (IPython's own if left out); None if the extension was never loaded there."""
    if shell is None:
        from IPython import get_ipython

        shell = get_ipython()
    state = getattr(shell, _ATTRIBUTE, None)
    return state if isinstance(state, ExtensionState) else None


def ensure_state(shell: Any) -> ExtensionState:
    """The state of a shell, made if there is none."""
    state = find_state(shell)
    if state is None:
        state = ExtensionState(shell)
        setattr(shell, _ATTRIBUTE, state)
    return state


def forget_state(shell: Any) -> None:
    """Drop the state of a shell."""
    setattr(shell, _ATTRIBUTE, None)


def current(shell: Any = None) -> Notebook | None:
    """The notebook of a shell; None while the extension is not loaded."""
    state = find_state(shell)
    return state.notebook if state is not None and state.active else None
