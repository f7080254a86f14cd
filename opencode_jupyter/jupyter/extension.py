"""Load and unload: everything ``%load_ext`` adds is listed here, and ``%unload_ext`` takes exactly that back.

``%reload_ext`` is an unload and a load in one breath, so the notebook (rules, approvals, running calls) outlives an
unload by a moment; if no load follows, its engine ends.
"""

from __future__ import annotations

import threading
import warnings
from typing import Any

from ..core import tool as tool_module
from ..core.tool import Tool
from . import _kernel_compat, completion, magics
from .awaiting import await_magics
from .notebook import Notebook, current

KEEP_SECONDS = 5.0
"""How long an unloaded notebook waits for a reload."""


def load(shell: Any) -> None:
    """Put the magics, their completion and the routes for answers into a shell. Twice is harmless."""
    notebook = current(shell)
    if notebook is None or notebook._closed or not notebook.engine.alive:
        notebook = Notebook(shell)
        shell._opencode_notebook = notebook
        for problem in notebook.workspace.config.warnings:
            warnings.warn(str(problem), UserWarning, stacklevel=3)
    expiry = getattr(shell, "_opencode_expiry", None)
    if expiry is not None:
        expiry.cancel()
        shell._opencode_expiry = None
    elif getattr(shell, "_opencode_loaded", False):
        return
    notebook.connect()
    magics.register(shell, notebook)
    completion.install(shell, notebook)
    if notebook.kernel is not None and _kernel_compat.can_await(notebook.kernel):
        shell.input_transformers_post.append(await_magics)
    listener = _registrar(notebook)
    shell._opencode_listener = listener
    tool_module.on_define.append(listener)
    shell._opencode_loaded = True


def unload(shell: Any) -> None:
    """Take everything back."""
    notebook = current(shell)
    if notebook is None or not getattr(shell, "_opencode_loaded", False):
        return
    shell._opencode_loaded = False
    while await_magics in shell.input_transformers_post:
        shell.input_transformers_post.remove(await_magics)
    listener = getattr(shell, "_opencode_listener", None)
    if listener in tool_module.on_define:
        tool_module.on_define.remove(listener)
    completion.uninstall(shell)
    magics.unregister(shell)
    notebook.disconnect()

    def expire() -> None:
        shell._opencode_notebook = None
        shell._opencode_expiry = None
        notebook.close()

    timer = threading.Timer(KEEP_SECONDS, expire)
    timer.daemon = True
    shell._opencode_expiry = timer
    timer.start()


def _registrar(notebook: Notebook) -> Any:
    def register(made: Tool) -> None:
        if made.source == "__main__":  # a cell's own; a library's tools are registered by whoever wants them
            notebook.register(made)

    return register
