"""Load and unload: everything that ``%load_ext`` adds is listed here, and ``%unload_ext`` removes exactly that.

``%reload_ext`` is an unload followed by a load, so the notebook (rules, approvals, running calls) outlives an
unload by a moment; if no load follows, its engine ends.
"""

from __future__ import annotations

import threading
from typing import Any

from ..core import defined_tools
from .extension_state import ExtensionState, ensure_state, find_state, forget_state
from .kernel import ipykernel_compat
from .magics import registration
from .magics.input_transformers import await_magics

KEEP_SECONDS = 5.0
"""How long an unloaded notebook waits for a reload."""


def load(shell: Any) -> None:
    """Add the magics, their completion and the routes for replies to a shell. Twice is harmless."""
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
        install_display_hook(shell)
    defined_tools.on_tool_defined.append(state.on_define)
    if state.existing_notebook is not None:
        _ = state.notebook  # installs the routes again
    else:
        state.warm_up()


def unload(shell: Any) -> None:
    """Remove everything."""
    state = find_state(shell)
    if state is None or not state.active:
        return
    state.active = False
    while await_magics in shell.input_transformers_post:
        shell.input_transformers_post.remove(await_magics)
    if state.on_define in defined_tools.on_tool_defined:
        defined_tools.on_tool_defined.remove(state.on_define)
    remove_display_hook(shell)
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


class DisplayHook:
    """A terminal's display hook that shows no ``Out[n]:`` for a value whose card the cell has displayed.

    Args:
        hook: IPython's own, which writes its prompt before it knows whether there is anything to show.
    """

    def __init__(self, hook: Any) -> None:
        self.hook = hook

    def __call__(self, value: Any = None) -> None:
        """Display the value of a cell."""
        is_displayed = getattr(type(value), "is_displayed_by_cell", None)  # loading must not import `result`
        if is_displayed is None or not is_displayed(value):
            self.hook(value)
            return
        self.hook.check_for_underscore()
        self.hook.update_user_ns(value)
        self.hook.fill_exec_result(value)


def install_display_hook(shell: Any) -> None:
    """Put the hook into a terminal's shell, once."""
    trap = shell.display_trap
    if not isinstance(trap.hook, DisplayHook):
        trap.hook = DisplayHook(trap.hook)


def remove_display_hook(shell: Any) -> None:
    """Put IPython's own hook back."""
    trap = shell.display_trap
    if isinstance(trap.hook, DisplayHook):
        trap.hook = trap.hook.hook
