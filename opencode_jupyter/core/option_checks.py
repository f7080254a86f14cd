"""Checks of the names and options that code passes to a workspace."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, Literal

from .errors import InvalidArgumentsError
from .suggestions import near_names, suggestion

CALLERS = ("user", "python", "model")
"""Values of ``by``."""
SAME_NAMESPACE = 0.85
"""How alike the first part of a name must be to a known one to count as a misspelling of it."""


def check_timeout(seconds: Any, option: str = "timeout") -> None:
    """Refuse a time limit that is not a number of seconds above 0, or None for no limit.

    Raises:
        InvalidArgumentsError: it is something else.
    """
    is_number = isinstance(seconds, numbers.Real) and not isinstance(seconds, bool)
    if seconds is not None and not (is_number and seconds > 0):  # not a number (nan) is not above 0 either
        raise InvalidArgumentsError(
            f"{option} must be a number of seconds above 0, or None for no limit, not {seconds!r}."
        )


def check_call_options(by: Any, timeout: Any) -> None:
    """Check the options of a call (`Workspace.call`).

    Raises:
        InvalidArgumentsError: an option has a value that it cannot have; the message names the ones it can.
    """
    if by not in CALLERS:
        options = ", ".join(map(repr, CALLERS))
        hint = suggestion(near_names(by, CALLERS)) if isinstance(by, str) else ""
        raise InvalidArgumentsError(f"by must be one of {options}, not {by!r}.{hint}")
    check_timeout(timeout)


def check_dotted_name(name: Any, known: Sequence[str], kind: Literal["hook", "event"]) -> None:
    """Refuse a misspelled name of a hook or an event.

    Plugins may have names of their own, in a namespace of their own: ``house.opened``.

    Args:
        name: what a caller passed.
        known: the names of this package and of OpenCode.
        kind: what it names.

    Raises:
        InvalidArgumentsError: the name is unknown and not a plugin's own; the message suggests near names.
    """
    if name in known:
        return
    if not isinstance(name, str):
        raise InvalidArgumentsError(f"The name of the {kind} must be a string, not {name!r}.")
    namespace, dot, rest = name.partition(".")
    namespaces = {one.partition(".")[0] for one in known}
    if dot and namespace and rest and namespace not in namespaces:
        from difflib import get_close_matches  # here: only names of plugins and mistakes need it

        if not get_close_matches(namespace.lower(), namespaces, 1, SAME_NAMESPACE):
            return
    hint = suggestion(near_names(name.replace("_", "."), known)) or f" Known {kind}s: {', '.join(known)}."
    raise InvalidArgumentsError(
        f"There is no {kind} {name!r}.{hint} A name of your own needs a namespace of its own, such as 'house.opened'."
    )
