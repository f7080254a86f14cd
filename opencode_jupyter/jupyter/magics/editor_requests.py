"""Completion and help for lines in the editor, on the control channel, which a busy kernel reads too.

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
"""Seconds that a request may block the control channel."""
AT_ONCE = 2
"""Simultaneous requests: one that blocks (a tool's own completions, a slow disk) leaves another."""
EXPLAINED = 50
"""Suggestions that come with an explanation."""
LONGEST = 20_000
"""Characters of a line beyond which nothing is suggested."""


class Editing:
    """Answers the pages of one notebook."""

    def __init__(self, notebook: Notebook) -> None:
        self._notebook = notebook
        self._free = threading.BoundedSemaphore(AT_ONCE)

    @property
    def requests(self) -> dict[str, Callable[[dict[str, Any]], dict[str, Any]]]:
        """The handlers of requests by their kind."""
        return {"complete": self.complete, "help": self.help}

    def complete(self, request: dict[str, Any]) -> dict[str, Any]:
        """The completions at a position in a cell."""
        return self._answer(request, self._complete)

    def help(self, request: dict[str, Any]) -> dict[str, Any]:
        """An explanation of the word at a position in a cell."""
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
        """The reply of `work`, or that it is late; an exception is logged, and nothing is suggested."""
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
    """The line up to a position, and the line's number from 0."""
    before = code[:position]
    return before.rpartition("\n")[2], before.count("\n")
