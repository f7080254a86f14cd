"""The kernel's side of the panels: requests on the control channel, and notifications of changes.

A page sends ``{"kind": "panel", "what": NAME, ...}`` on the control channel, which a busy kernel reads too, and gets
the reply of the handler of that name, or ``{"error": ...}``, a text for a person. Handlers run on its thread,
so each takes a bounded time. After a change the kernel publishes ``{"kind": "panel", "topics": [...]}`` on
IOPub, and pages query again: a notification has no content, so a lost or late one shows nothing wrong.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import logging
import threading
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from ...core.errors import ToolError, full_text
from ...core.threads import call_soon
from ..kernel.engine import awaited

if TYPE_CHECKING:
    from ..notebook import Notebook

log = logging.getLogger(__name__)
T = TypeVar("T")

KIND = "panel"
SOON = 0.1
"""Seconds within which changes are notified together; pending requests are notified at once."""
PATIENCE = 2.0
"""Seconds that a request may wait for the engine, which a tool may keep busy."""

Handler = Callable[["Panel", dict[str, Any]], dict[str, Any]]


def _hello(panel: Panel, request: dict[str, Any]) -> dict[str, Any]:
    """Note what a page that has just connected reports about itself: ``server``, see `Panel.cell_server`."""
    panel.cell_server = str(request.get("server") or "")
    return {}


@cache
def handlers() -> dict[str, Handler]:
    """By the request's ``what``. Each module of this package has its own; the first page's request imports them."""
    from . import approvals, calls, rules, servers, tools

    modules = (approvals, calls, tools, rules, servers)
    return {"hello": _hello, **{what: handler for module in modules for what, handler in module.HANDLERS.items()}}


class ServerActions:
    """What pages had done with MCP servers, by the servers' names.

    Attributes:
        running: what is being done.
        outcomes: how the last action ended, for a person.
    """

    def __init__(self) -> None:
        self.running: dict[str, str] = {}
        self.outcomes: dict[str, str] = {}


URGENT = frozenset({"asks"})
ASKING = ("permission.asked", "permission.replied", "question.asked", "question.replied", "question.rejected")
"""Events after which the pending requests have changed."""


class Panel:
    """Answers the pages of one notebook's kernel.

    Args:
        notebook: its calls, tools and rules are shown.
        publish: sends content to all front ends.
    """

    def __init__(self, notebook: Notebook, publish: Callable[[dict[str, Any]], bool]) -> None:
        self.notebook = notebook
        self._publish = publish
        self._topics: set[str] = set()
        self._scheduled = False
        self._unsubscribe: list[Callable[[], None]] = []
        self._watched: set[tuple[str, str]] = set()
        self.server_actions = ServerActions()
        self.cell_server = ""
        """The package by which the server runs the cells of the open page; empty where the page runs them itself."""

    def connect(self) -> None:
        """Begin to notify pages of pending requests, and make this kernel known to open ones."""
        for event in ASKING:
            self.watch(event, "asks")
        self.changed("hello", "asks")

    def disconnect(self) -> None:
        """Stop notifying."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._unsubscribe, self._watched = [], set()
        with contextlib.suppress(Exception):
            self._publish({"kind": KIND, "topics": ["bye"]})

    def watch(self, event: str, topic: str) -> None:
        """Notify pages of `topic` at each `event` of the bus from now on; a second time does nothing.

        For events that are costly to listen to: a handler calls it at a page's first request.
        """
        if (event, topic) in self._watched:
            return
        self._watched.add((event, topic))
        self._unsubscribe.append(self.notebook.workspace.bus.subscribe(event, lambda _: self.changed(topic)))

    def changed(self, *topics: str) -> None:
        """Notify pages that something of these topics has changed; on any thread."""
        self._topics.update(topics)
        loop = self.notebook.engine.loop
        if not URGENT.isdisjoint(topics):
            call_soon(loop, self._notify)
        elif not self._scheduled:
            self._scheduled = True
            call_soon(loop, loop.call_later, SOON, self._notify)

    def _notify(self) -> None:
        self._scheduled = False
        topics, self._topics = sorted(self._topics), set()
        if topics:
            self._publish({"kind": KIND, "topics": topics})

    # ------------------------------------------------------------------ on the control channel's thread

    def on_message(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer a page. Never raises."""
        handler = handlers().get(str(request.get("what")))
        if handler is None:
            return {"error": "This kernel has another version of opencode_jupyter than this page; restart the kernel."}
        try:
            return self.notebook.workspace.masked(handler(self, request))
        except ToolError as error:
            return {"error": full_text(error, for_person=True)}
        except ValueError as error:
            return {"error": str(error)}
        except TimeoutError:
            return {"error": "The kernel is too busy to answer; try again in a moment."}
        except Exception as error:  # the page must get a reply
            log.exception("a panel's request failed: %r", request.get("what"))
            return {"error": f"{type(error).__name__}: {error}"}

    def on_engine(self, fn: Callable[..., Any], *args: Any, patience: float = PATIENCE) -> Any:
        """Run `fn` (plain or async) on the workspace's loop and return its result.

        Raises:
            TimeoutError: it took longer than `patience` seconds; it is cancelled.
        """
        return _in_time(self.notebook.engine.submit(awaited(fn, *args)), patience)

    def run_on_thread(self, fn: Callable[..., T], *args: Any, patience: float = PATIENCE) -> T:
        """Run `fn` on a thread of its own: for work that may block, such as a tool that is slow to describe itself.

        Raises:
            TimeoutError: it took longer than `patience` seconds; it is abandoned, not ended.
        """
        future: concurrent.futures.Future[T] = concurrent.futures.Future()

        def run() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(fn(*args))
                except BaseException as error:
                    future.set_exception(error)

        threading.Thread(target=run, name="opencode-panel", daemon=True).start()
        return _in_time(future, patience)


def _in_time(future: concurrent.futures.Future[T], patience: float) -> T:
    try:
        return future.result(patience)
    except concurrent.futures.TimeoutError:
        if future.done():
            raise
        future.cancel()
        raise TimeoutError from None
