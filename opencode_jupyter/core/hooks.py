"""Hooks: functions that see, change or refuse a call (names and payloads: reference core.md 20)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

Hook = Callable[[dict[str, Any], dict[str, Any]], Any]

BEFORE = "tool.execute.before"
AFTER = "tool.execute.after"
DEFINITION = "tool.definition"


class Hooks:
    """The hooks of one workspace, run in the order they were added.

    A hook is called with ``(input, output)`` and may change ``output`` in place. What it raises ends the
    call: that is how a hook refuses one.
    """

    def __init__(self) -> None:
        self._hooks: dict[str, list[Hook]] = {}

    def add(self, name: str, fn: Hook) -> Callable[[], None]:
        """Run `fn` at every `name` from now on; the returned function ends that."""
        hooks = self._hooks.setdefault(name, [])
        hooks.append(fn)

        def remove() -> None:
            if fn in hooks:
                hooks.remove(fn)

        return remove

    def wanted(self, name: str) -> bool:
        """Whether there is a hook of this name."""
        return bool(self._hooks) and bool(self._hooks.get(name))

    async def trigger(self, name: str, input: dict[str, Any], output: dict[str, Any]) -> dict[str, Any]:
        """Run the hooks of `name` one after another on the same `output`, and give it back."""
        for fn in list(self._hooks.get(name, ())):
            outcome = fn(input, output)
            if inspect.isawaitable(outcome):
                await outcome
        return output
