"""What IPython in a terminal needs besides: no ``Out[n]:`` before nothing."""

from __future__ import annotations

from typing import Any


class DisplayHook:
    """IPython's display hook, but for a value whose card the cell has displayed: that is only kept.

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
