"""One prompt on its way to its answer: what `Sessions.prompt` gives."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import anyio

from ..core.agents import Agent
from ..core.call import Call
from ..core.call_reporting import why_cancelled
from ..core.errors import ToolAbortedError, ToolError
from ..core.messages import Message
from ..core.permission import Rule
from ..core.sessions import Session
from ..core.threads import call_on_loop, call_soon, is_current, run_on_loop
from .answer import Answer
from .conversation import Conversation, LazyMessages
from .events import Usage
from .model import Model, ModelInfo
from .prompt.system import model_rules
from .prompt_options import PromptOptions

if TYPE_CHECKING:
    from ..core.host import ToolHost
    from .sessions import AgentSession

log = logging.getLogger(__name__)

Status = Literal["waiting", "working", "retrying", "compacting", "done", "rejected", "stopped", "failed"]
OnChange = Callable[["Run", str, Any], None]


class Run:
    """The loop's work on one prompt. Await it for the `Answer`, or iterate over its events and await it then.

    Attributes:
        workspace: where it runs.
        options: the prompt, and how it is to be answered.
        session: the session it adds to; set when it begins, if it was given by its id.
        agent: whose rules, prompt and tools are used now; the plan tools change it on the way.
        model: the model that answers; set when it begins, if it was given by its name.
        messages: what it added to the session, the prompt's own message first.
        calls: the calls of the model, in order; a call's ``children`` are the calls inside it.
        step: the number of requests to the model.
        usage: tokens so far.
        cost: in US dollars so far; None if the model's prices are not known.
        status: of the work.
        retry: ``{"attempt", "message", "next"}`` (Unix ms) while it waits to ask again; else None.
        error: what ended it; None if nothing did.
        reason: why it was stopped; None if it was not.
        parent: the call of ``task`` that it works for.
        notes: remarks for a person.
        full_after: the id of the answer after which the window was almost full though a summary had just been made.
        over: set when it has ended.
        on_change: called at every change, on the workspace's loop: ``(run, kind, thing)``. Kinds: ``message`` (new),
            ``part`` (new, or complete), ``delta`` ((part, text): it grew), ``call`` (a new call; its own ``on_update``
            reports the rest), ``dropped`` (ids of messages or parts of a broken stream), ``status``, ``end``.
    """

    def __init__(self, workspace: ToolHost, options: PromptOptions) -> None:
        self.workspace = workspace
        self.options = options
        self.parent = options.parent
        self.switches = options.switches
        session = options.session if isinstance(options.session, Session) else None
        self.session: AgentSession = session or workspace.sessions.session_type("", "", "")
        self.agent: Agent
        self.model: Model
        self.conversation: Conversation
        self.tool_messages: LazyMessages
        self.messages: list[Message] = []
        self.calls: list[Call] = []
        self.step = 0
        self.usage = Usage()
        self.cost: float | None = None
        self.status: Status = "waiting"
        self.retry: dict[str, Any] | None = None
        self.error: BaseException | None = None
        self.reason: str | None = None
        self.notes: list[str] = []
        self.nearly_full_after = ""
        self.answer: Answer | None = None
        self.on_change: OnChange | None = None
        self.over = asyncio.Event()
        self.execution = Execution(self)

    async def run(self) -> Answer:
        """Do the work, once; on the workspace's loop.

        Raises:
            ModelError: the model could not be asked, or would not answer.
            ToolAbortedError: it was stopped; the session keeps what was finished.
            ToolError: there is no such agent, or the session is running another prompt.
        """
        return await self.execution.run()

    def __await__(self) -> Generator[Any, None, Answer]:
        return self.execution.wait().__await__()

    def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        return watch(self)

    def abort(self, reason: str = "stopped") -> None:
        """Stop it: the request, every call, every child session. Any thread may call it; twice is harmless."""
        self.execution.abort(reason)

    # ------------------------------------------------------------------ what the loop's parts need

    @property
    def model_wire(self) -> dict[str, str]:
        """The model as OpenCode's messages name it."""
        return {"providerID": self.model.info.provider, "modelID": self.model.info.model}

    @property
    def rules(self) -> list[Rule]:
        """The rules for the model's calls."""
        return model_rules(self.workspace, self.agent, self.session)

    @property
    def represents_session(self) -> bool:
        """True if the session's status is this run's: not while another run uses it."""
        return bool(self.session.id) and self.session.run in (None, self)

    @property
    def mentions_agent(self) -> bool:
        """True if the prompt itself names a sub-agent; then calling it needs no permission of its own."""
        return bool(self.messages) and any(self.messages[0].of_type("agent"))

    def report(self, kind: str, thing: Any) -> None:
        """Report a change to `on_change`; its errors must not end the run."""
        if self.on_change is None:
            return
        try:
            self.on_change(self, kind, thing)
        except Exception:
            log.exception("a subscriber of a run failed")

    def set_status(self, status: Status) -> None:
        """Set the status and report it."""
        self.status = status
        wire: dict[str, Any] = {"type": "busy" if status in ("working", "compacting") else "idle"}
        if self.retry is not None:
            wire = {"type": "retry", **self.retry}
        if self.represents_session:
            self.workspace.publish("session.status", lambda: {"sessionID": self.session.id, "status": wire})
        self.report("status", None)

    def add_usage(self, message: Message, info: ModelInfo, usage: Usage) -> float:
        """Add a request's tokens and price to its message, the run and the session.

        Returns:
            What it cost, in US dollars; 0 if the model's prices are not known.
        """
        cost = info.cost.of(usage) if info.cost is not None else 0.0
        self.usage = self.usage + usage
        if info.cost is not None:
            self.cost = (self.cost or 0.0) + cost
        message.info["tokens"] = usage.to_wire()
        message.info["cost"] = message.info.get("cost", 0) + cost
        extra = self.session.extra
        extra["cost"] = extra.get("cost", 0) + cost
        extra["tokens"] = replace(Usage.from_wire(extra.get("tokens")) + usage, total=None).to_wire()
        return cost

    def add(self, message: Message) -> Message:
        """Put a message of this run at the end of its session."""
        self.messages.append(message)
        self.conversation.add(message)
        self.report("message", message)
        return message


CLOSE_SECONDS = 0.5
"""Seconds that closing idle connections may take when a run is stopped."""
STOPPED = {
    "interrupted": "interrupted",
    "timeout": "stopped at its time limit",
    "closed": "ended with its workspace",
}
"""Texts of errors for a stop, by its reason."""


class Execution:
    """The work on one run, from its start to its end."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._scope: anyio.CancelScope | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Answer] | None = None

    async def run(self) -> Answer:
        """See `Run.run`."""
        if self._loop is not None:
            raise ToolError("this run has already started; await it, or create a new one with sessions.prompt(...)")
        from .loop import run_loop  # here: what it needs is only loaded when there is something to do

        run = self._run
        self._loop = asyncio.get_running_loop()
        try:
            with anyio.CancelScope() as self._scope:
                if run.reason is not None:
                    self._scope.cancel()
                run.answer = await run_loop(run)
            if run.answer is None:
                text = f"the run was {STOPPED.get(run.reason or '', 'stopped')}"
                raise ToolAbortedError(text, reason=run.reason or "stopped")  # noqa: TRY301
        except asyncio.CancelledError as error:
            self._end("stopped", error)
            raise
        except ToolAbortedError as error:
            await self._close_connections()
            self._end("stopped", error)
            raise
        except BaseException as error:
            self._end("failed", error)
            raise
        self._end("rejected" if run.answer.ended == "rejected" else "done", None)
        return run.answer

    async def _close_connections(self) -> None:
        """Close the connections of a stopped run, those kept for the next request too."""
        close_idle = getattr(getattr(self._run, "model", None), "close_idle", None)
        if close_idle is None:
            return
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            try:
                await close_idle()
            except Exception:
                log.debug("a model's connections would not close", exc_info=True)

    def _end(self, status: Status, error: BaseException | None) -> None:
        run = self._run
        if isinstance(error, asyncio.CancelledError) and run.reason is None:
            run.reason = why_cancelled(run.parent)
        run.error, run.retry = error, None
        if run.session.run is run:
            run.session.run = None
        if run.represents_session:
            run.workspace.publish("session.idle", lambda: {"sessionID": run.session.id})
        run.set_status(status)
        run.over.set()
        run.report("end", None)

    async def wait(self) -> Answer:
        """Start it if that was not done, and wait for its answer, on any event loop."""
        if is_current(self._run.workspace.loop):
            return await self._wait_here()
        try:
            return await run_on_loop(self._run.workspace.loop, self._wait_here())
        except asyncio.CancelledError:
            self.abort("interrupted")
            raise

    async def _wait_here(self) -> Answer:
        if self._task is None:
            self._task = asyncio.create_task(self.run())
        try:
            return await asyncio.shield(self._task)
        except asyncio.CancelledError:
            if not self._task.done():  # the waiter was cancelled: so is the work
                self.abort(why_cancelled(self._run.parent))
                with anyio.CancelScope(shield=True):
                    await asyncio.wait({self._task})
                if not self._task.cancelled():
                    self._task.exception()  # seen: nobody else waits for it, so asyncio is not to complain
            raise

    def abort(self, reason: str) -> None:
        """See `Run.abort`."""
        if self._run.reason is None:
            self._run.reason = reason
        loop = self._loop
        if loop is not None and not loop.is_closed():
            call_on_loop(loop, self._cancel)

    def _cancel(self) -> None:
        for call in self._run.calls:
            if not call.part.outcome:
                call.abort(self._run.reason or "stopped")
        if self._scope is not None:
            self._scope.cancel()


async def watch(run: Run) -> AsyncGenerator[dict[str, Any], None]:
    """Begin a run and yield its events, ``{"type", "properties"}`` in OpenCode's names, until it is over.

    Those of its child sessions are among them. What ended the run is raised when the run itself is awaited, not here.
    Leaving the loop early stops the run.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
    sessions: set[str] = set()

    def handle_event(event: dict[str, Any]) -> None:
        if _belongs_to_run(run, event, sessions):
            call_soon(loop, queue.put_nowait, event)

    unsubscribe = run.workspace.bus.subscribe("*", handle_event)
    work = asyncio.ensure_future(run.execution.wait())
    work.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (event := await queue.get()) is not None:
            yield event
    finally:
        unsubscribe()
        if not work.done():
            run.abort("stopped")
        with contextlib.suppress(BaseException):
            await work


def _belongs_to_run(run: Run, event: dict[str, Any], sessions: set[str]) -> bool:
    properties = event["properties"]
    info = properties.get("info") or {}
    id = properties.get("sessionID") or (properties.get("part") or {}).get("sessionID") or info.get("sessionID")
    if id is None and event["type"].startswith("session."):
        id = info.get("id")
        if info.get("parentID") in sessions:
            sessions.add(str(id))
    sessions.add(run.session.id)
    return id is not None and id in sessions
