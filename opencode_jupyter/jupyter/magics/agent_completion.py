"""Completion in ``%agent`` and ``%%agent``: options and what they take; variables in braces. Asks nobody."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ...core.permission.modes import MODES
from .agent import known_models, talkable
from .commands import AGENT_OPTIONS

if TYPE_CHECKING:
    from ..notebook import Notebook

log = logging.getLogger(__name__)

Choice = tuple[str, str]
_BRACE = re.compile(r"(?<![{$])\{([A-Za-z_]\w*)?$")
_SCRIPTED = "scripted:"


def choices_of(
    notebook: Notebook,
    user_ns: Mapping[str, Any],
    before: list[str],
    word: str,
    paths: Callable[[str], list[Choice]],
    *,
    cell: bool,
) -> tuple[list[Choice], str]:
    """What may stand at a place of the line, and the part of the word that it stands for.

    Args:
        notebook: whose agents and sessions.
        user_ns: the user's variables.
        before: the words before it.
        word: what is typed of it.
        paths: completes a path.
        cell: ``%%agent``; False for ``%agent``.
    """
    last = before[-1] if before else ""
    if last in ("-m", "--model"):
        if word.startswith(_SCRIPTED):
            typed = word.removeprefix(_SCRIPTED)
            return paths(typed), typed
        return _starting((*_models(notebook), _SCRIPTED), word, "module"), word
    if not cell:
        if word.startswith("-"):
            return _starting(("-m",), word, "option"), word
        return ([] if before else _starting((*talkable(notebook), "models"), word, "keyword")), word
    if last in ("-a", "--agent"):
        return _starting(talkable(notebook), word, "module"), word
    if last == "--session":
        return _starting((s.id for s in reversed(notebook.workspace.sessions.list())), word, "value"), word
    if last == "--mode":
        return _starting(MODES, word, "keyword"), word
    if last == "--record":
        return paths(word), word
    if last in ("--json", "--type", "-o", "--output"):
        return _variables(user_ns, word, last), word
    if last == "--max-steps":
        return _starting(("5", "10", "50"), word, "value"), word
    return _starting((option.name for option in AGENT_OPTIONS.all if option.name not in before), word, "option"), word


def in_body(user_ns: Mapping[str, Any], until: str) -> tuple[list[Choice], str] | None:
    """Variables, where a brace was opened in the request; None elsewhere."""
    match = _BRACE.search(until)
    if match is None:
        return None
    typed = match[1] or ""
    return [(name, kind) for name, kind in _variables(user_ns, typed, "") if not callable(user_ns[name])], typed


def _models(notebook: Notebook) -> list[str]:
    try:
        names = [info.full for info in known_models(notebook)]
    except Exception:
        log.debug("no models can be listed", exc_info=True)
        names = []
    last = notebook.agent.last_model
    return list(dict.fromkeys([*([last] if last else []), *names]))


def _variables(user_ns: Mapping[str, Any], word: str, option: str) -> list[Choice]:
    names = [n for n in sorted(user_ns) if n.startswith(word) and (word.startswith("_") or n[0] != "_")]
    if option == "--json":
        names = [n for n in names if isinstance(user_ns[n], dict)]
    elif option == "--type":
        names = [n for n in names if isinstance(user_ns[n], type)]
    return [(name, "variable") for name in names]


def _starting(names: Iterable[str], word: str, kind: str) -> list[Choice]:
    return [(name, kind) for name in names if name.lower().startswith(word.lower())]
