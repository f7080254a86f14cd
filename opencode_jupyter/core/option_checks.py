"""Checks of the names and options that code passes to a workspace.

Each raises `InvalidArgumentsError`, whose message has what is expected.
"""

from __future__ import annotations

import inspect
import numbers
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from .errors import InvalidArgumentsError, UnknownOptionError
from .suggestions import near_names, suggestion

CALLERS = ("user", "python", "model")
"""Values of ``by``."""
SAME_NAMESPACE = 0.85
"""How alike the first part of a name must be to a known one to count as a misspelling of it."""


def check_timeout(seconds: Any, option: str = "timeout") -> None:
    """Refuse a time limit that is not a number of seconds above 0, or None for no limit."""
    is_number = isinstance(seconds, numbers.Real) and not isinstance(seconds, bool)
    if seconds is not None and not (is_number and seconds > 0):  # not a number (nan) is not above 0 either
        raise InvalidArgumentsError(
            f"{option} must be a number of seconds above 0, or None for no limit, not {seconds!r}."
        )


def check_kind(value: Any, kinds: type | tuple[type, ...], option: str, expected: str) -> None:
    """Refuse a value of another kind.

    Args:
        value: what a caller passed.
        kinds: the classes it may have.
        option: its name.
        expected: what it must be, in words.
    """
    if not isinstance(value, kinds):
        raise InvalidArgumentsError(f"{option} must be {expected}, not {value!r:.80}.")


def check_path(value: Any, option: str) -> None:
    """Refuse what is neither a string nor a path object."""
    check_kind(value, (str, os.PathLike), option, "a path")


def check_callable(value: Any, option: str, *, optional: bool = False) -> None:
    """Refuse what cannot be called; None is fine if `optional`."""
    if not callable(value) and not (optional and value is None):
        raise InvalidArgumentsError(f"{option} must be a function, not {value!r:.80}.")


def check_option_names(
    function: Callable[..., Any], options: Iterable[str], name: str, hint: str = "", others: Iterable[str] = ()
) -> None:
    """Refuse options that a function does not have, before it is called.

    Args:
        function: the function that gets the options.
        options: the names that a caller passed.
        name: what the caller called, such as ``map``.
        hint: a sentence on what to do, for a name that resembles none.
        others: more options that the caller's function takes.

    Raises:
        UnknownOptionError: there is no such option; the message suggests near names.
    """
    known = [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY] + [*others]
    for option in options:
        if option not in known:
            more = suggestion(near_names(option, known)) or hint or f" Its options: {', '.join(known)}."
            raise UnknownOptionError(f"{name}() has no option {option!r}.{more}")


def check_call_options(by: Any, timeout: Any, tool: str, options: Mapping[str, Any], call: Callable[..., Any]) -> None:
    """Check the options of a call (`Workspace.call`).

    Args:
        by: who wrote the call.
        timeout: its limit in seconds.
        tool: the tool that is called.
        options: what else a caller passed: options of `call`.
        call: `CallOptions`.
    """
    if not isinstance(tool, str):
        raise InvalidArgumentsError(f"a tool is called by its name, a text, not by {tool!r}")
    if by not in CALLERS:
        callers = ", ".join(map(repr, CALLERS))
        hint = suggestion(near_names(by, CALLERS)) if isinstance(by, str) else ""
        raise InvalidArgumentsError(f"by must be one of {callers}, not {by!r}.{hint}")
    if timeout is not None:
        check_timeout(timeout)
    if options:
        hint = f" Pass the arguments of a tool as a dict: ws.call({tool!r}, {{'{next(iter(options))}': ...}})."
        check_option_names(call, options, "call", hint)
        check_callable(options.get("on_update"), "on_update", optional=True)
        check_kind(options.get("extra"), (dict, type(None)), "extra", "a dict")


def check_dotted_name(name: Any, known: Sequence[str], kind: Literal["hook", "event"]) -> None:
    """Refuse a misspelled name of a hook or an event.

    Plugins may have names of their own, in a namespace of their own: ``house.opened``.

    Args:
        name: what a caller passed.
        known: the names of this package and of OpenCode.
        kind: what it names.
    """
    if name in known:
        return
    if not isinstance(name, str):
        raise InvalidArgumentsError(f"The name of the {kind} must be a string, not {name!r}.")
    namespace, dot, rest = name.partition(".")
    namespaces = {name.partition(".")[0] for name in known}
    if dot and namespace and rest and namespace not in namespaces:
        from difflib import get_close_matches  # here: only names of plugins and mistakes need it

        if not get_close_matches(namespace.lower(), namespaces, 1, SAME_NAMESPACE):
            return
    hint = suggestion(near_names(name.replace("_", "."), known)) or f" Known {kind}s: {', '.join(known)}."
    raise InvalidArgumentsError(
        f"There is no {kind} {name!r}.{hint} A name of your own needs a namespace of its own, such as 'house.opened'."
    )
