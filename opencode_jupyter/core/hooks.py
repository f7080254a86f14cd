"""Hooks: functions that see, change or refuse a call (names and payloads: docs/opencode/core.md 20)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .errors import HookRefusedError
from .option_checks import check_callable, check_dotted_name, check_kind

Hook = Callable[[dict[str, Any], dict[str, Any]], Any]

BEFORE = "tool.execute.before"
AFTER = "tool.execute.after"
DEFINITION = "tool.definition"
PERMISSION = "permission.ask"
HOOKS = (
    BEFORE,
    AFTER,
    DEFINITION,
    PERMISSION,
    *"""
    shell.env chat.message chat.params chat.headers command.execute.before
    experimental.chat.messages.transform experimental.chat.system.transform
    experimental.session.compacting experimental.text.complete
    """.split(),
)
"""Hooks of OpenCode that get ``(input, output)``. Which of them fire depends on what of this package is in use."""


class Hooks:
    """The hooks of one workspace, run in the order they were added.

    A hook is called with ``(input, output)`` and may change ``output`` in place. What it raises ends the
    call: that is how a hook refuses one.
    """

    def __init__(self) -> None:
        self._hooks: dict[str, list[tuple[Hook, str]]] = {}

    def add(self, name: str, fn: Hook, owner: str = "") -> Callable[[], None]:
        """Run `fn` at every `name` from now on; the returned function ends that.

        Args:
            name: one of `HOOKS`, or one that a plugin triggers, in a namespace of its own (``house.opened``).
            fn: sync or async.
            owner: the plugin it belongs to. What `fn` raises then becomes a `HookRefusedError` that names the plugin;
                without an owner it reaches the caller as it is.

        Raises:
            InvalidArgumentsError: there is no such hook.
        """
        check_dotted_name(name, HOOKS, "hook")
        check_callable(fn, "fn")
        check_kind(owner, str, "owner", "the name of a plugin")
        hooks = self._hooks.setdefault(name, [])
        entry = (fn, owner)
        hooks.append(entry)

        def remove() -> None:
            if entry in hooks:
                hooks.remove(entry)

        return remove

    def has_hooks(self, name: str) -> bool:
        """Return whether there is a hook of this name."""
        return bool(self._hooks) and bool(self._hooks.get(name))

    async def trigger(self, name: str, input: dict[str, Any], output: dict[str, Any]) -> dict[str, Any]:
        """Run the hooks of `name` one after another on the same `output`, and give it back.

        Raises:
            HookRefusedError: a plugin's hook raised; ``__cause__`` is what it raised.
        """
        for fn, owner in list(self._hooks.get(name, ())):
            await _run(name, fn, owner, input, output)
        return output

    async def trigger_decision(self, name: str, input: dict[str, Any], output: dict[str, Any], key: str) -> str:
        """`trigger`, for a hook that decides something.

        Args:
            name: the hook.
            input: its first argument.
            output: its second, which it may change.
            key: the entry of `output` that holds the decision.

        Returns:
            Whose hook changed that entry last; "" if none did, or one without an owner.
        """
        decider = ""
        for fn, owner in list(self._hooks.get(name, ())):
            before = output.get(key)
            await _run(name, fn, owner, input, output)
            if output.get(key) != before:
                decider = owner
        return decider


async def _run(name: str, fn: Hook, owner: str, input: dict[str, Any], output: dict[str, Any]) -> None:
    try:
        outcome = fn(input, output)
        if inspect.isawaitable(outcome):
            await outcome
    except Exception as error:
        if not owner:
            raise
        raise HookRefusedError(name, owner, error) from error
