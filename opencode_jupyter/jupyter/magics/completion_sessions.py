"""Completion in ``%sessions``: sub-commands, sessions, options and files."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from .sessions import COMMANDS
from .words import quote

if TYPE_CHECKING:
    from ..notebook import Notebook

log = logging.getLogger(__name__)
Choice = tuple[str, str]

_OPTIONS = {
    "list": ("-n", "--all"),
    "show": ("-n",),
    "fork": ("--at",),
    "undo": ("--redo", "--force"),
    "export": ("--jsonl", "--otel", "--content", "--force"),
    "import": ("--replace",),
    "delete": ("--yes",),
}
_NAMES = frozenset({"open", "show", "fork", "undo", "export", "rename", "delete"})
_OFFERED = 50
"""Sessions that are offered: the ones changed last."""


def choices_of(notebook: Notebook, before: list[str], word: str, paths: Callable[[str], list[Choice]]) -> list[Choice]:
    """What may stand at a place.

    Args:
        notebook: whose sessions.
        before: the words before it.
        word: what is typed of it.
        paths: gives the files that begin so.
    """
    if not before:
        return [(name, "keyword") for name in COMMANDS if name.startswith(word)]
    command, rest = before[0], before[1:]
    if rest and rest[-1] in ("-n", "--at"):
        return []
    if word.startswith("-"):
        return [(name, "option") for name in _OPTIONS.get(command, ()) if name.startswith(word)]
    given = [one for one in rest if not one.startswith("-")]
    if command == "import" and not given:
        return paths(word)
    if command not in _NAMES or (given and command not in ("delete", "export")):
        return []
    files = paths(word) if command == "export" else []
    return [*files, *(_sessions(notebook, word) if command == "delete" or not given else [])]


def _sessions(notebook: Notebook, word: str) -> list[Choice]:
    """Titles, and ids where some of one is typed or a title is there twice."""
    workspace = notebook.workspace
    if workspace.store is None:
        return []
    try:
        found = notebook.on_engine(workspace.store.listed, str(workspace.directory), _OFFERED)
    except Exception:
        log.debug("sessions could not be listed for completion", exc_info=True)
        return []
    infos = [one["info"] for one in found]
    titles = [str(info.get("title") or "") for info in infos]
    typed = word.lstrip("'\"").lower()
    choices: list[Choice] = []
    for info, title in zip(infos, titles, strict=True):
        usable = title.isprintable() and title and titles.count(title) == 1 and not title.isdigit()
        if usable and title.lower().startswith(typed):
            choices.append((quote(title), "session"))
        elif info["id"].startswith(word) and (word or not usable):
            choices.append((info["id"], "session"))
    return choices
