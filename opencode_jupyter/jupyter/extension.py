"""Load and unload: everything ``%load_ext`` adds is listed here, and ``%unload_ext`` takes exactly that back.

``%reload_ext`` is an unload and a load in one breath, so the notebook (rules, approvals, running calls) outlives an
unload by a moment; if no load follows, its engine ends.
"""

from __future__ import annotations

import threading
from typing import Any

from ..core import defined_tools
from . import terminal
from .extension_state import ExtensionState, ensure_state, find_state, forget_state
from .kernel import ipykernel_compat
from .magics import registration
from .magics.input_transformers import await_magics

KEEP_SECONDS = 5.0
"""How long an unloaded notebook waits for a reload."""


def load(shell: Any) -> None:
    """Put the magics, their completion and the routes for answers into a shell. Twice is harmless."""
    state = ensure_state(shell)
    if state.active:
        return
    if state.expiry is not None:
        state.expiry.cancel()
        state.expiry = None
    state.active = True
    registration.register(shell, state)
    registration.install_matcher(shell, state)
    kernel = ipykernel_compat.kernel_of(shell)
    if kernel is not None and ipykernel_compat.can_await(kernel):
        shell.input_transformers_post.append(await_magics)
    if kernel is None:
        terminal.install_display_hook(shell)
    defined_tools.on_tool_defined.append(state.on_define)
    if state.built is not None:
        _ = state.notebook  # lays the routes again
    else:
        state.warm_up()


def unload(shell: Any) -> None:
    """Take everything back."""
    state = find_state(shell)
    if state is None or not state.active:
        return
    state.active = False
    while await_magics in shell.input_transformers_post:
        shell.input_transformers_post.remove(await_magics)
    if state.on_define in defined_tools.on_tool_defined:
        defined_tools.on_tool_defined.remove(state.on_define)
    terminal.remove_display_hook(shell)
    registration.uninstall_matcher(shell)
    registration.unregister(shell)
    state.disconnect()
    _end_later(shell, state)


def _end_later(shell: Any, state: ExtensionState) -> None:
    def expire() -> None:
        if not state.active:
            forget_state(shell)
            state.end()

    timer = threading.Timer(KEEP_SECONDS, expire)
    timer.daemon = True
    state.expiry = timer
    timer.start()
