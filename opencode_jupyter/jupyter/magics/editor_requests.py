"""Completion and help for lines that are being typed, on the control channel, which a busy kernel reads too.

IPython's completer is queried on the shell channel, which waits until the running cell has ended. A page with our
extension sends its requests here instead. The control channel's thread also handles approvals and interrupts, so
nothing may block it: each request is worked out on a thread of its own, which is abandoned (not ended) after `LIMIT`.
Requests, replies:

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

    def complete(self, request: dict[str, Any]) -> dict[str, Any]:
        """The completions at a place in a cell."""
        return self._answer(request, self._complete)

    def help(self, request: dict[str, Any]) -> dict[str, Any]:
        """What the word at a place in a cell means."""
        return self._answer(request, self._help)

    def _complete(self, code: str, position: int) -> dict[str, Any]:
        from .completion import complete
        from .line_help import explain_match

        line, number = line_at(code, position)
        if len(line) > LONGEST:
            return {"matches": [], "start": position, "end": position}
        shell = self._notebook.shell
        hidden = shell.user_ns_hidden
        # a copy in one step: the cell that runs may be changing it
        own = {name: value for name, value in dict(shell.user_ns).items() if hidden.get(name, hidden) is not value}
        result = complete(self._notebook, own, code, number, line, follow=False)
        fragment = result.get("matched_fragment", "")
        before = line.removesuffix(fragment)
        registry = self._notebook.workspace.registry
        matches: list[dict[str, Any]] = [{"text": choice.text, "type": choice.type} for choice in result["completions"]]
        for match in matches[:EXPLAINED]:
            match.update(explain_match(registry, before, match["text"], match["type"]))
        return {"matches": matches, "start": position - len(fragment), "end": position}

    def _help(self, code: str, position: int) -> dict[str, Any]:
        from .line_help import explain

        return explain(self._notebook.workspace.registry, code, position)

    def _answer(self, request: dict[str, Any], work: Callable[[str, int], dict[str, Any]]) -> dict[str, Any]:
        """What `work` returns, or that it is late; what it raises is logged, and nothing is offered."""
        code, position = request.get("code"), request.get("cursor_pos")
        code = code if isinstance(code, str) else ""
        position = position if isinstance(position, int) and 0 <= position <= len(code) else len(code)
        if not self._free.acquire(blocking=False):
            return {"late": True}
        future: Future[dict[str, Any]] = Future()

        def run() -> None:
            try:
                future.set_result(work(code, position))
            except Exception:
                log.debug("a line that is being typed could not be completed", exc_info=True)
                future.set_result({"failed": True})
            finally:
                self._free.release()

        threading.Thread(target=run, name="opencode-editing", daemon=True).start()
        try:
            return future.result(LIMIT)
        except TimeoutError:
            return {"late": True}


def line_at(code: str, position: int) -> tuple[str, int]:
    """The line that a place is on, up to it, and the line's number from 0."""
    before = code[:position]
    return before.rpartition("\n")[2], before.count("\n")
