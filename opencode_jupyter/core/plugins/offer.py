"""What a plugin function returned, sorted: tools, hooks, listeners, and what can't be used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import InvalidArgumentsError
from ..hooks import HOOKS
from ..option_checks import check_dotted_name
from ..tool import Tool
from .contents import PluginError, described

Fn = Callable[..., Any]

UNUSED = ("auth", "provider")
"""Entries of OpenCode's plugins that mean nothing here."""

_SNAKE = {name.replace(".", "_"): name for name in HOOKS}


@dataclass(slots=True)
class Offer:
    """The tools, hooks and listeners of one plugin.

    Attributes:
        tools: in order.
        hooks: name and function.
        events: called with ``{"event": ...}`` for every event.
        configs: called with the configuration, which they may change.
        problems: entries that can't be used, each with the reason.
    """

    tools: list[Tool] = field(default_factory=list)
    hooks: list[tuple[str, Fn]] = field(default_factory=list)
    events: list[Fn] = field(default_factory=list)
    configs: list[Fn] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def summary(self) -> str:
        """What it gives, in words."""
        words = []
        if self.tools:
            words.append("tools " + ", ".join(one.id for one in self.tools))
        names = [name for name, _ in self.hooks]
        names += ["event"] * bool(self.events) + ["config"] * bool(self.configs)
        if names:
            words.append("hooks " + ", ".join(dict.fromkeys(names)))
        return "; ".join(words) or "nothing"


def take(returned: Any, fn: Fn, plugin: str, offer: Offer) -> None:
    """Add what `fn` of the plugin returned to `offer`.

    Args:
        returned: a dict or an object of hooks, or None for a plugin that offers none.
        fn: the function that returned it.
        plugin: its name, for the tools' source.
        offer: changed in place.

    Raises:
        PluginError: it returned something else.
    """
    if returned is None:
        return
    if isinstance(returned, (str, bytes, int, float, list, tuple, set)):
        raise PluginError(
            f"{getattr(fn, '__name__', fn)} returned {type(returned).__name__}; a plugin function returns a dict or an "
            "object of hooks. Name the plugin functions in __all__, or start the names of others with an underscore"
        )
    for name, value in _entries(returned):
        if value is None:
            continue
        if name == "tool":
            _tools(value, plugin, offer)
        elif name in UNUSED:
            offer.problems.append(f"{name} is not used here")
        elif not callable(value):
            offer.problems.append(f"{name} must be a function, not {type(value).__name__}")
        elif name == "event":
            offer.events.append(value)
        elif name == "config":
            offer.configs.append(value)
        elif "." in name:
            try:
                check_dotted_name(name, HOOKS, "hook")
            except InvalidArgumentsError as error:
                offer.problems.append(str(error))
            else:
                offer.hooks.append((name, value))
                if name not in HOOKS:
                    offer.problems.append(f"only plugins could call its hook {name}")
        else:
            offer.problems.append(f"there is no hook {name}")


def _entries(returned: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(returned, Mapping):
        for name, value in returned.items():
            yield _SNAKE.get(str(name), str(name)), value
        return
    for name in ("config", "tool", *_SNAKE, "event"):
        value = getattr(returned, name, None)
        if value is not None:
            yield _SNAKE.get(name, name), value


def _tools(given: Any, plugin: str, offer: Offer) -> None:
    if not isinstance(given, Mapping):
        offer.problems.append(f"tool must be a dict of id and definition, not {type(given).__name__}")
        return
    from .plugin_tool import made_tool

    for id, definition in given.items():
        try:
            offer.tools.append(made_tool(str(id), definition, f"plugin {plugin}"))
        except Exception as error:
            offer.problems.append(f"tool {id}: {described(error)}")
