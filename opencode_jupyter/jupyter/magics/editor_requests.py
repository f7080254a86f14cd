"""Completion and help for lines that are being typed, on the control channel: a busy kernel hears it there.

IPython's completer is asked on the shell channel, which waits until the running cell is over. A page with our extension
asks here instead. The control channel's thread also carries answers to asks and interrupts, so nothing may hold it up:
each question is worked out on a thread of its own, which is given up on (not ended) after `LIMIT`. Requests, replies:

- ``{"kind": "complete", "code", "cursor_pos"}`` → ``{"matches": [{"text", "type", "help"?}], "start", "end"}``;
- ``{"kind": "help", "code", "cursor_pos"}`` → ``{"found": true, "start", "end", ...}`` (`completion.explain`).

What takes too long is answered with ``{"late": true}``. Positions count code points, as in Jupyter's own messages.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..notebook import Notebook

log = logging.getLogger(__name__)

LIMIT = 0.15
"""Seconds that a question may hold the control channel up."""
AT_ONCE = 2
"""Questions that are worked on side by side: one that blocks (a tool's own completions, a slow disk) leaves another."""
EXPLAINED = 50
"""Suggestions that come with what they mean."""
LONGEST = 20_000
"""Characters of a line beyond which nothing is offered."""


class Editing:
    """Answers the pages of one notebook."""

    def __init__(self, notebook: Notebook) -> None:
        self._notebook = notebook
        self._free = threading.BoundedSemaphore(AT_ONCE)

    @property
    def requests(self) -> dict[str, Callable[[dict[str, Any]], dict[str, Any]]]:
        """The kinds of request, and what answers them."""
        return {"complete": self.complete, "help": self.help}

    def complete(self, asked: dict[str, Any]) -> dict[str, Any]:
        """What may stand at a place in a cell."""
        code, position = _place(asked)
        return self._within(LIMIT, lambda: self._complete(code, position))

    def help(self, asked: dict[str, Any]) -> dict[str, Any]:
        """What the word at a place in a cell means."""
        code, position = _place(asked)
        return self._within(LIMIT, lambda: self._help(code, position))

    def _complete(self, code: str, position: int) -> dict[str, Any]:
        from .completion import complete
        from .word_help import explain_match

        line, number = line_at(code, position)
        if len(line) > LONGEST:
            return {"matches": [], "start": position, "end": position}
        shell = self._notebook.shell
        hidden = shell.user_ns_hidden
        # a copy in one step: the cell that runs may be changing it
        own = {name: value for name, value in dict(shell.user_ns).items() if hidden.get(name, hidden) is not value}
        found = complete(self._notebook, own, code, number, line, follow=False)
        fragment = found.get("matched_fragment", "")
        before = line.removesuffix(fragment)
        registry = self._notebook.workspace.registry
        matches: list[dict[str, Any]] = [{"text": one.text, "type": one.type} for one in found["completions"]]
        for match in matches[:EXPLAINED]:
            match.update(explain_match(registry, before, match["text"], match["type"]))
        return {"matches": matches, "start": position - len(fragment), "end": position}

    def _help(self, code: str, position: int) -> dict[str, Any]:
        from .word_help import explain

        return explain(self._notebook.workspace.registry, code, position)

    def _within(self, seconds: float, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What `work` gives, or that it is late; what it raises is logged, and nothing is offered."""
        if not self._free.acquire(blocking=False):
            return {"late": True}
        future: Future[dict[str, Any]] = Future()

        def run() -> None:
            try:
                future.set_result(work())
            except Exception:
                log.debug("a line that is being typed could not be completed", exc_info=True)
                future.set_result({"failed": True})
            finally:
                self._free.release()

        threading.Thread(target=run, name="opencode-editing", daemon=True).start()
        try:
            return future.result(seconds)
        except TimeoutError:
            return {"late": True}


def line_at(code: str, position: int) -> tuple[str, int]:
    """The line that a place is on, up to it, and the line's number from 0."""
    before = code[:position]
    return before.rpartition("\n")[2], before.count("\n")


def _place(asked: dict[str, Any]) -> tuple[str, int]:
    code, position = asked.get("code"), asked.get("cursor_pos")
    code = code if isinstance(code, str) else ""
    inside = isinstance(position, int) and 0 <= position <= len(code)
    return code, position if inside and isinstance(position, int) else len(code)
