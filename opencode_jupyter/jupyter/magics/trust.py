"""``%tools trust``: lists code of projects that needs trust; grants, lists and revokes trust."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import InvalidArgumentsError
from ...core.project_trust import apply_trust, untrusted
from ...core.trust import Subject
from ...sources.tool_file_discovery import label_of
from ...text.visible import visible
from ..tables import Table, without_math
from .command_line import CommandLine, as_typed
from .tool_preparation import prepare_all

if TYPE_CHECKING:
    from ..notebook import Notebook

HOW = (
    "%tools trust NAME|PATH ...   trust their content; a change needs your trust again",
    "%tools trust --project       trust the whole project as it is now (also: --all)",
    "%tools trust --list          what is trusted; --revoke NAME|PATH revokes it",
)
LINES = 20
"""Lines of the beginning that are shown."""
CHARS = 2000
_COLUMNS = ("trust", "kind", "gives", "size")


class CodeTable(Table):
    """Code to trust, with the beginning of each file or command."""

    def __repr__(self) -> str:
        return "\n\n".join([super().__repr__(), *(f"{row['trust']}\n{row['begins']}" for row in self.records)])

    def _repr_html_(self) -> str:
        blocks = (
            f"<details open><summary><code>{escape(row['trust'])}</code></summary>"
            f'<pre style="text-align:left">{escape(row["begins"])}</pre></details>'
            for row in self.records
        )
        return super()._repr_html_() + without_math("".join(blocks))


def trust(line: CommandLine) -> Table:
    """``%tools trust``.

    Raises:
        InvalidArgumentsError: a name matches nothing that needs trust, or several things.
    """
    notebook = line.notebook
    options = [name for name in line.options if line.flag(name)]
    words = list(map(as_typed, line.rest))
    if len(options) > 1 or any(word.startswith("-") for word in words):
        raise InvalidArgumentsError(f"%tools trust takes names, or one of its options: {line.usage}")
    if options == ["--revoke"]:
        return _revoke(notebook, words)
    if options:
        line.end()
    if options == ["--list"]:
        return _list_trusted(notebook)
    prepare_all(notebook)
    waiting = untrusted(notebook.workspace)
    if options:
        subjects = waiting
    elif not words:
        rows = [_row(notebook, subject) for subject in waiting]
        need = "1 thing needs" if len(rows) == 1 else f"{len(rows)} things need"
        title = f"{need} your trust." if rows else ""
        return CodeTable(rows, _COLUMNS, title=title, notes=HOW, empty="Nothing here needs your trust.")
    else:
        subjects = [_subject_named(word, waiting, notebook) for word in words]
    notebook.workspace.trust.grant(*subjects)
    notebook.on_engine(partial(apply_trust, notebook.workspace))
    prepare_all(notebook)
    rows = [_row(notebook, subject) for subject in subjects]
    sources = {
        source
        for subject in subjects
        for source in (subject.name, subject.shown.get("label"), f"mcp: {subject.shown.get('server')}")
    }
    missing = [tool for tool in notebook.workspace.registry.unavailable() if tool.source in sources]
    notes = [f"{tool.id} of {tool.source}: {tool.reason}" for tool in missing]
    return CodeTable(rows, _COLUMNS, title="Trusted as it is now:", notes=notes, empty="Nothing here needs your trust.")


def _row(notebook: Notebook, subject: Subject) -> dict[str, Any]:
    shown = subject.shown
    text = shown.get("content") or shown.get("command") or ""
    text = text if isinstance(text, str) else " ".join(map(str, text))
    lines = text.splitlines()
    begins = "\n".join(lines[:LINES])[:CHARS]
    if len(begins) < len(text.rstrip()):
        begins += f"\n… {len(lines)} lines in all"
    size = shown.get("size", len(text.encode()))
    return {
        "trust": shown.get("label") or subject.name,
        "kind": subject.kind,
        "gives": ", ".join(shown.get("ids") or []),
        "size": f"{size:,} bytes" if size else "",
        "begins": visible(begins),
        "name": subject.name,
    }


def _subject_named(word: str, waiting: Sequence[Subject], notebook: Notebook, otherwise: str = "") -> Subject:
    """The one subject that a word means: its whole name, a path from here, a tool that it defines, a file's name."""
    for fits in (_is_name, _gives_tool, _is_file):
        matches = [subject for subject in waiting if fits(word, subject.name, subject.shown, notebook)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            names = ", ".join(subject.name for subject in matches)
            raise InvalidArgumentsError(f"{word} matches {names}; give the path.")
    names = ", ".join(str(subject.shown.get("label") or subject.name) for subject in waiting) or "nothing"
    raise InvalidArgumentsError(f"{word} {otherwise or 'does not need your trust'}. Choose from: {names}.")


def _is_name(word: str, name: str, details: dict[str, Any], notebook: Notebook) -> bool:
    path = os.path.normpath(os.path.join(notebook.workspace.directory, os.path.expanduser(word)))
    return word in (name, details.get("label")) or path == name or os.path.realpath(path) == name


def _gives_tool(word: str, name: str, details: dict[str, Any], notebook: Notebook) -> bool:
    ids = details.get("ids") or []
    return word in ids or any(id.endswith("*") and word.startswith(id[:-1]) for id in ids)


def _is_file(word: str, name: str, details: dict[str, Any], notebook: Notebook) -> bool:
    path = Path(name)
    return word in (path.name, path.stem) or name.startswith(f"{word} ")


def _list_trusted(notebook: Notebook) -> Table:
    entries = notebook.workspace.trust.entries()
    rows = [{"trust": name, "kind": kind} for kind, name in sorted(entries, key=lambda entry: entry[1])]
    notes = ["A file's content is compared at every use; a changed file needs your trust again."]
    return Table(rows, ("trust", "kind"), notes=notes if rows else (), empty="Nothing is trusted yet.")


def _revoke(notebook: Notebook, words: Sequence[str]) -> Table:
    if not words:
        raise InvalidArgumentsError("--revoke needs a name or a path: %tools trust --revoke PATH (--list shows them).")
    workspace = notebook.workspace
    trusted = [
        Subject(kind, name, "", {"label": label_of(Path(name), workspace)}) for kind, name in workspace.trust.entries()
    ]
    revoked = []
    for word in words:
        tool = workspace.registry.get(word)
        name = word if tool is None or tool.builtin else tool.source
        revoked.append(_subject_named(name, trusted, notebook, "is not trusted"))
    for subject in revoked:
        workspace.trust.revoke(subject)
    notebook.on_engine(partial(apply_trust, workspace))
    prepare_all(notebook)
    rows = [{"trust": subject.name, "kind": subject.kind} for subject in revoked]
    return Table(rows, ("trust", "kind"), title="Not trusted any more:")
