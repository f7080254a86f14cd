"""Notebooks that are open in JupyterLab or Notebook 7, read and changed through the pages that show them.

A kernel can't call a page. So it publishes a notification on IOPub, ``{"kind": "notebook", "id": ...}``; a page that
has our extension takes the job by a request on the control channel, does it, and sends its answer the same
way: both work while a cell keeps the kernel's main thread busy. A withdrawn job cannot be taken any
more, so a page that is notified late (a sleeping laptop) does nothing. Messages of a page, on the control channel:

- ``{"kind": "notebook", "step": "take", "id", "page"}``, answered by ``{"job": ...}`` or ``{}``;
- ``{"kind": "notebook", "step": "done", "id", "page", "answer"}``.

Jobs (`labextension/src/notebook/protocol.ts` has their types): ``find`` for every page; ``read`` and ``change`` for one
document of one page. A page hands jobs on to other tabs of its browser, which may be connected to other kernels.
"""

from __future__ import annotations

import asyncio
import os
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...core.errors import ToolError
from ...core.threads import call_soon
from ...tools.notebook.open_documents import OpenContent, OpenDocument

KIND = "notebook"
SILENT_WAIT = 0.5
"""Seconds for a first reply of a page, when none has ever come."""
HEARD_WAIT = 3.0
"""Seconds for pages that have replied before; one in the background is slowed down by its browser."""
SILENT_ROUNDS = 2
"""After so many rounds without a reply, reading waits no more; a later page is found in the next round."""
TAKE_WAIT = 5.0
"""Seconds for a page to take a job that is meant for it."""
ANSWER_WAIT = 20.0
"""Seconds for a page to do what it took."""


class _Job:
    """A job for pages."""

    def __init__(self, content: dict[str, Any], via: str, loop: asyncio.AbstractEventLoop) -> None:
        self.content = content
        self.via = via
        self.loop = loop
        self.taken = asyncio.Event()
        self.answered = asyncio.Event()
        self.was_taken = False
        """Set on the control channel's thread, with the lock held."""
        self.answers: dict[str, Any] = {}
        """By page."""


class NotebookPages:
    """The pages of one kernel (`tools.notebook.open_documents.OpenNotebooks`).

    Args:
        publish: sends content to all front ends; False if it can't.
        attended: whether a person may be present.
        running: the notebook that this kernel was started for, if known.
        started_in: the folder that the kernel was started in: that of its notebook.
    """

    def __init__(
        self,
        publish: Callable[[dict[str, Any]], bool],
        attended: Callable[[], bool],
        running: Callable[[], str | None],
        started_in: str = "",
    ) -> None:
        self._publish = publish
        self._attended = attended
        self._running = running
        self.started_in = started_in
        self._lock = threading.Lock()
        self._jobs: dict[str, _Job] = {}
        self._pages: set[str] = set()
        self._silent = 0

    def greet(self) -> None:
        """Have open pages report themselves, without waiting for them."""
        self._publish({"kind": KIND, "id": ""})

    # ------------------------------------------------------------------ requests of tools, on the engine's loop

    async def find(self, path: Path, *, quick: bool = False) -> list[OpenDocument]:
        """Find where the notebook `path` is open.

        Args:
            path: absolute; links are followed.
            quick: do not wait for a first reply of a page where none has ever come.
        """
        known = set(self._pages)
        if not known and not self._attended():
            return []
        wait = HEARD_WAIT if known else 0.0 if quick and self._silent >= SILENT_ROUNDS else SILENT_WAIT
        id, job = self._publish_job({"op": "find", "name": path.name}, "")
        try:
            deadline = job.loop.time() + wait
            while not job.answers or known - set(job.answers):
                job.answered.clear()
                if not await _set_within(job.answered, deadline - job.loop.time()):
                    break
        finally:
            self._withdraw(id)
        answered = set(job.answers)
        with self._lock:
            self._pages -= known - answered
        self._silent = 0 if answered else self._silent + 1
        return self._matching(job.answers, path)

    async def read(self, document: OpenDocument, first: int = 0, count: int = 0) -> OpenContent:
        """Read an open document; outputs of `count` cells from `first` on, long ones cut.

        Raises:
            ToolError: it was closed meanwhile, or its page does not answer.
        """
        request = {"op": "read", "page": document.page, "document": document.id, "first": first, "count": count}
        answer = await self._ask(document, request, changes=False)
        head, cells = answer.get("head"), answer.get("cells")
        return OpenContent(head if isinstance(head, dict) else {}, _cells(cells), bool(answer.get("dirty")))

    async def change(self, document: OpenDocument, change: dict[str, Any]) -> list[dict[str, Any]]:
        """Change an open document; returns its cells after the change.

        Raises:
            ToolError: the document is not what the change was made for, was closed, or its page does not answer.
        """
        request = {"op": "change", "page": document.page, "document": document.id, "change": change}
        return _cells((await self._ask(document, request, changes=True)).get("cells"))

    def runs(self, path: Path) -> bool:
        """Whether `path` is the notebook that runs here and no page is known."""
        running = self._running()
        return not self._pages and running is not None and os.path.realpath(running) == os.path.realpath(path)

    # ------------------------------------------------------------------ jobs

    async def _ask(self, document: OpenDocument, content: dict[str, Any], *, changes: bool) -> dict[str, Any]:
        id, job = self._publish_job(content, document.via)
        try:
            await _set_within(job.taken, TAKE_WAIT)
        finally:
            if not job.was_taken:
                self._withdraw(id)
        if not job.was_taken:
            raise ToolError(
                "The page in which the notebook is open does not answer (closed, asleep or disconnected). Nothing was "
                "changed. Reload or close it, then try again."
            )
        try:
            await _set_within(job.answered, ANSWER_WAIT)
        finally:
            self._withdraw(id)
        answer = job.answers.get(document.via)
        if not isinstance(answer, dict):
            what = "change the notebook" if changes else "read the notebook"
            uncertainty = " Whether the change was made is not known." if changes else ""
            raise ToolError(
                f"JupyterLab did not answer the request to {what} within {ANSWER_WAIT:g} s.{uncertainty} The file "
                "was not touched. Read it with notebook_read to see how it is before anything else."
            )
        if answer.get("error"):
            raise ToolError(_error_text(answer))
        return answer

    def _publish_job(self, content: dict[str, Any], via: str) -> tuple[str, _Job]:
        id = uuid.uuid4().hex
        job = _Job(content, via, asyncio.get_running_loop())
        with self._lock:
            self._jobs[id] = job
        self._publish({"kind": KIND, "id": id, "page": via})
        return id, job

    def _withdraw(self, id: str) -> None:
        with self._lock:
            self._jobs.pop(id, None)

    # ------------------------------------------------------------------ messages, on the control channel's thread

    def on_message(self, data: dict[str, Any]) -> dict[str, Any]:
        """Handle a page's message that it takes a job or has finished it. Any thread; returns the reply."""
        page, id = str(data.get("page", "")), str(data.get("id", ""))
        if not page:
            return {}
        with self._lock:
            job = self._jobs.get(id)
            self._pages.add(page)
            if job is None or (job.via and job.via != page):
                return {}
            if data.get("step") == "take":
                if job.via and job.was_taken:
                    return {}  # the same notification, received twice
                job.was_taken = True
            elif data.get("step") == "done":
                job.answers[page] = data.get("answer")
        event = job.taken if data.get("step") == "take" else job.answered
        if not call_soon(job.loop, event.set):
            return {}
        return {"job": job.content} if data.get("step") == "take" else {}

    # ------------------------------------------------------------------ which file a document is

    def _matching(self, answers: dict[str, Any], path: Path) -> list[OpenDocument]:
        reported = [
            (via, document)
            for via, answer in answers.items()
            if isinstance(answer, dict)
            for document in answer.get("documents") or ()
            if isinstance(document, dict)
        ]
        roots = self._roots([document for _, document in reported])
        documents: dict[tuple[str, str], OpenDocument] = {}
        for via, document in reported:
            name = str(document.get("path", ""))
            if name and any(_is_same_file(os.path.join(root, name), path) for root in roots):
                key = (str(document.get("page", "")), str(document.get("document", "")))
                if key in documents and documents[key].via == key[0]:
                    continue  # reported by its own page already
                documents[key] = OpenDocument(
                    id=key[1],
                    page=key[0],
                    via=via,
                    dirty=bool(document.get("dirty")),
                    shared=bool(document.get("shared")),
                    text=bool(document.get("text")),
                )
        return list(documents.values())

    def _roots(self, documents: list[dict[str, Any]]) -> set[str]:
        """Folders that may be the server's root: as pages report it, or inferred from the kernel's own notebook."""
        roots = {os.path.expanduser(str(document["root"])) for document in documents if document.get("root")}
        running = (self._running() or "").replace(os.sep, "/")
        own = ["/" + str(document.get("path", "")) for document in documents if document.get("own")]
        roots |= {running.removesuffix(path) or "/" for path in own if running.endswith(path)}
        if not roots:  # Notebook 7 does not report it, and a notebook that was renamed is not `running` any more
            start = self.started_in.replace(os.sep, "/").rstrip("/")
            folders = [os.path.dirname(path).rstrip("/") for path in own]
            roots = {start.removesuffix(folder) or "/" for folder in folders if start.endswith(folder)}
        return roots


async def _set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), max(0.0, seconds))
    except TimeoutError:
        return False
    return True


def _is_same_file(path: str, other: Path) -> bool:
    if os.path.realpath(path) == os.path.realpath(other):
        return True
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


def _cells(cells: Any) -> list[dict[str, Any]]:
    return [cell for cell in cells if isinstance(cell, dict)] if isinstance(cells, list) else []


def _error_text(answer: dict[str, Any]) -> str:
    """A page's error as a sentence, with what to do."""
    advice = "Nothing was changed. Read the notebook again with notebook_read before changing it."
    errors = {
        "closed": "The notebook was closed in JupyterLab meanwhile. Nothing was changed. Try again.",
        "changed": f"Conflict: the cell was changed in JupyterLab meanwhile, by hand or by another call. {advice}",
        "gone": f"Conflict: the cell was deleted in JupyterLab meanwhile. {advice}",
        "neighbour": f"Conflict: the cell before the new place was deleted in JupyterLab meanwhile. {advice}",
        "read-only": "The notebook is open read-only in JupyterLab. Nothing was changed.",
        "lost": (
            "The browser tab in which the notebook is open does not answer. Whether the change was made is not known; "
            "the file was not touched. Look at the notebook, or read it with notebook_read, before anything else."
        ),
    }
    code = str(answer.get("error"))
    return errors.get(code, f"JupyterLab could not do it: {code}. {advice}")


__all__ = ["NotebookPages"]
