"""Diagnostics of language servers about files that a tool has changed (docs/opencode/tools.md 6.7, 8, 9.6)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.context import ToolContext
from ..text.encoding import printable

log = logging.getLogger(__name__)

PER_FILE = 20
"""Errors shown of one file."""
OTHER_FILES = 5
"""Other files whose errors are shown after a write."""
KEPT = 100
"""Diagnostics of one file, and files, that ``metadata.diagnostics`` carries: it is saved with the notebook."""
SEVERITIES = {1: "ERROR", 2: "WARN", 3: "INFO", 4: "HINT"}


@dataclass(slots=True)
class Diagnostics:
    """The diagnostics of all files the servers know.

    Attributes:
        by_file: path to the protocol's Diagnostic objects.
    """

    by_file: dict[Path, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def metadata(self) -> dict[str, list[dict[str, Any]]]:
        """For ``metadata.diagnostics``."""
        files = sorted(self.by_file.items(), key=lambda pair: not errors(pair[1]))[:KEPT]
        return {printable(str(path)): items[:KEPT] for path, items in files}

    def this_file(self, path: Path) -> str:
        """The text that edit and write append about the file they changed; empty if it has no errors."""
        return self._about(path, "LSP errors detected in this file, please fix:")

    def named_file(self, path: Path, name: str) -> str:
        """The text that apply_patch appends about one of its files, named by its path from the worktree."""
        return self._about(path, f"LSP errors detected in {name}, please fix:")

    def other_files(self, path: Path) -> str:
        """The text that write appends about other files: the first five with errors."""
        blocks = [
            self._about(other, "LSP errors detected in other files:")
            for other, items in self.by_file.items()
            if other != path and errors(items)
        ]
        return "".join(blocks[:OTHER_FILES])

    def _about(self, path: Path, heading: str) -> str:
        faults = errors(self.by_file.get(path, ()))
        if not faults:
            return ""
        lines = [pretty(item) for item in faults[:PER_FILE]]
        if len(faults) > PER_FILE:
            lines.append(f"... and {len(faults) - PER_FILE} more")
        body = "\n".join(lines)
        return printable(f'\n\n{heading}\n<diagnostics file="{path}">\n{body}\n</diagnostics>')


async def diagnostics_after(ctx: ToolContext, paths: Sequence[Path]) -> Diagnostics:
    """Show changed files to the language servers that serve them and collect what is wrong. Waits at most 3 s.

    Empty if no server is there: see `LanguageServers.diagnose` for which are started. Never fails: the change is made.
    """
    from .language_servers.service import LanguageServers

    try:
        return Diagnostics(await ctx.workspace.service(LanguageServers).diagnose(paths))
    except Exception:
        log.exception("no diagnostics")
        return Diagnostics()


def errors(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of severity 1."""
    return [item for item in items if item.get("severity") == 1]


def pretty(item: dict[str, Any]) -> str:
    """One diagnostic as a line: ``ERROR [line:column] message``, counted from 1; no severity counts as an error's.

    Of a message that goes on after a blank line (ty adds where it has searched) only the first part; the metadata has
    the whole.
    """
    start = (item.get("range") or {}).get("start") or {}
    severity = SEVERITIES.get(item.get("severity") or 1, "ERROR")
    message = str(item.get("message", "")).split("\n\n", 1)[0]
    return f"{severity} [{start.get('line', 0) + 1}:{start.get('character', 0) + 1}] {message}"
