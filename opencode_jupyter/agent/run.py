"""One prompt on its way to its answer: what `Sessions.prompt` gives."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import anyio

from ..core.agents import Agent
from ..core.call import Call
from ..core.errors import InvalidArgumentsError, ToolAbortedError, ToolError
from ..core.messages import Message
from ..core.outcome import why_cancelled
from ..core.permission import Rule
from ..core.permission.modes import rules_of
from ..core.threads import call_on_loop, is_current, run_at_home
from .answer import Answer
from .conversation import Conversation
from .events import Usage
from .model import Model
from .prompt_options import listed, switched, validate_options
from .run_events import watch
from .sessions import AgentSession
from .structured import Structured
from .transcript import Transcript

if TYPE_CHECKING:
    from ..core.host import ToolHost

log = logging.getLogger(__name__)

RESTING = 0.5
"""Seconds that closing idle connections may take when a run is stopped."""
Status = Literal["waiting", "working", "retrying", "compacting", "done", "rejected", "stopped", "failed"]
Change = Callable[["Run", str, Any], None]


class Run:
    """The loop's work on one prompt. Await it for the `Answer`, or iterate over its events and await it then.

    Attributes:
        workspace: where it runs.
        session: the session it adds to; set when it begins, if it was given by its id.
        agent: whose rules, prompt and tools are used now; the plan tools change it on the way.
        model: who is asked; set when it begins, if it was given by its name.
        messages: what it added to the session, the prompt's own message first.
        calls: the calls of the model, in order; a call's ``children`` are the calls inside it.
        step: how many times the model was asked.
        usage: tokens so far.
        cost: in US dollars so far; None if the model's prices are not known.
        status: how it stands.
        retry: ``{"attempt", "message", "next"}`` (Unix ms) while it waits to ask again; else None.
        error: what ended it; None if nothing did.
        reason: why it was told to stop; None if it was not.
        parent: the call of ``task`` that it works for.
        notes: what a person should know besides.
        over: set when it has ended.
        on_change: told of every change, on the workspace's loop: ``(run, kind, thing)``. Kinds: ``message`` (new),
            ``part`` (new, or whole), ``delta`` ((part, text): it grew), ``call`` (a new call; its own ``on_update``
            tells the rest), ``dropped`` (ids of messages or parts that a broken stream had begun), ``status``, ``end``.
    """

    def __init__(
        self,
        workspace: ToolHost,
        text: str,
        *,
        model: str | Model | None = None,
        agent: str | None = None,
        session: str | AgentSession | None = None,
        files: Iterable[Any] = (),
        format: Any = None,
        max_steps: int | None = None,
        tools: Mapping[str, bool] | Iterable[str] | None = None,
        system: str | None = None,
        parent: Call | None = None,
        record: Any = None,
        title: str | None = None,
    ) -> None:
        if not isinstance(text, str):
            raise InvalidArgumentsError(f"the prompt must be a text, not {type(text).__name__}")
        if max_steps is not None and (type(max_steps) is not int or max_steps < 1):
            raise InvalidArgumentsError("max_steps must be a whole number above 0")
        validate_options(model, agent, session, system, title, record)
        self.workspace = workspace
        self.text = text
        self.wanted_model = model
        self.wanted_agent = agent
        self.wanted_session = session
        self.files = listed(files)
        self.structured = None if format is None else Structured(format)
        self.max_steps = max_steps
        self.switches, self.only = switched(tools)
        self.system = system
        self.parent = parent
        self.record = record
        self.title = title
        self.session: AgentSession = session if isinstance(session, AgentSession) else _NONE
        self.agent: Agent
        self.model: Model
        self.conversation: Conversation
        self.transcript = Transcript(self)
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
        self.answer: Answer | None = None
        self.on_change: Change | None = None
        self.over = asyncio.Event()
        self._scope: anyio.CancelScope | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Answer] | None = None

    # ------------------------------------------------------------------ running it

    async def run(self) -> Answer:
        """Do the work, once; on the workspace's loop.

        Raises:
            ModelError: the model could not be asked, or would not answer.
            ToolAbortedError: it was stopped; what had been done by then stands in the session.
            ToolError: there is no such agent, or the session is at work already.
        """
        if self._loop is not None:
            raise ToolError("this run has already started; await it, or create a new one with sessions.prompt(...)")
        from .loop import work  # here: what it needs is only loaded when there is something to do

        self._loop = asyncio.get_running_loop()
        try:
            with anyio.CancelScope() as self._scope:
                if self.reason is not None:
                    self._scope.cancel()
                self.answer = await work(self)
            if self.answer is None:
                raise ToolAbortedError(f"the run was {_said(self.reason)}", reason=self.reason or "stopped")  # noqa: TRY301
        except asyncio.CancelledError as error:
            self._ended("stopped", error)
            raise
        except ToolAbortedError as error:
            await self._rest()
            self._ended("stopped", error)
            raise
        except BaseException as error:
            self._ended("failed", error)
            raise
        self._ended("rejected" if self.answer.ended == "rejected" else "done", None)
        return self.answer

    async def _rest(self) -> None:
        """Let a stopped run leave no connection behind, not even one that only waits for the next request."""
        rest = getattr(getattr(self, "model", None), "rest", None)
        if rest is None:
            return
        with anyio.move_on_after(RESTING, shield=True):
            try:
                await rest()
            except Exception:
                log.debug("a model's connections would not close", exc_info=True)

    def _ended(self, status: Status, error: BaseException | None) -> None:
        if isinstance(error, asyncio.CancelledError) and self.reason is None:
            self.reason = why_cancelled(self.parent)
        self.error, self.retry = error, None
        if self.session.run is self:
            self.session.run = None
        if self._has_session():
            self.workspace.publish("session.idle", lambda: {"sessionID": self.session.id})
        self.set_status(status)
        self.over.set()
        self.tell("end", None)

    def _has_session(self) -> bool:
        """Return whether what is said of this run is said of its session: not while another run is at work in that."""
        return self.session is not _NONE and self.session.run in (None, self)

    def __await__(self) -> Generator[Any, None, Answer]:
        return self._awaited().__await__()

    async def _awaited(self) -> Answer:
        if is_current(self.workspace.loop):
            return await self._here()
        try:
            return await run_at_home(self.workspace, self._here())
        except asyncio.CancelledError:
            self.abort("interrupted")
            raise

    async def _here(self) -> Answer:
        if self._task is None:
            self._task = asyncio.create_task(self.run())
        try:
            return await asyncio.shield(self._task)
        except asyncio.CancelledError:
            if not self._task.done():  # whoever waits was cancelled: so is the work
                self.abort(why_cancelled(self.parent))
                with anyio.CancelScope(shield=True):
                    await asyncio.wait({self._task})
                if not self._task.cancelled():
                    self._task.exception()  # seen: nobody else waits for it, so asyncio is not to complain
            raise

    def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        return watch(self)

    def abort(self, reason: str = "stopped") -> None:
        """Stop it: the request, every call, every child session. Any thread may call it; twice is harmless."""
        if self.reason is None:
            self.reason = reason
        loop = self._loop
        if loop is None or loop.is_closed():
            return
        call_on_loop(loop, self._cancel)

    def _cancel(self) -> None:
        for call in self.calls:
            if not call.part.outcome:
                call.abort(self.reason or "stopped")
        if self._scope is not None:
            self._scope.cancel()

    # ------------------------------------------------------------------ what the loop's parts need

    @property
    def model_wire(self) -> dict[str, str]:
        """The model as OpenCode's messages name it."""
        return {"providerID": self.model.info.provider, "modelID": self.model.info.model}

    @property
    def rules(self) -> list[Rule]:
        """The rules for the model's calls."""
        return [*self.agent.model_permission, *self.workspace.rules, *rules_of(self.workspace, self.session)]

    @property
    def mentions_agent(self) -> bool:
        """True if the prompt itself names a sub-agent; then calling it needs no permission of its own."""
        return bool(self.messages) and any(self.messages[0].of_type("agent"))

    def tell(self, kind: str, thing: Any) -> None:
        """Tell whoever watches; what goes wrong there must not end the run."""
        if self.on_change is None:
            return
        try:
            self.on_change(self, kind, thing)
        except Exception:
            log.exception("a subscriber of a run failed")

    def set_status(self, status: Status) -> None:
        """Say how it stands."""
        self.status = status
        wire: dict[str, Any] = {"type": "busy" if status in ("working", "compacting") else "idle"}
        if self.retry is not None:
            wire = {"type": "retry", **self.retry}
        if self._has_session():
            self.workspace.publish("session.status", lambda: {"sessionID": self.session.id, "status": wire})
        self.tell("status", None)

    def add(self, message: Message) -> Message:
        """Put a message of this run at the end of its session."""
        self.messages.append(message)
        self.conversation.add(message)
        self.tell("message", message)
        return message

    def free_call_id(self, id: str) -> str:
        """A call's id as the provider gave it, or one like it if that is taken in the session or by a call at work."""
        taken = self.transcript.call_ids
        if not id:
            id = f"call_{uuid.uuid4().hex[:20]}"
        free, n = id, 1
        while free in taken or free in self.workspace.calls:
            n += 1
            free = f"{id}_{n}"
        taken.add(free)
        return free


def _said(reason: str | None) -> str:
    return {
        "interrupted": "interrupted",
        "timeout": "stopped at its time limit",
        "closed": "ended with its workspace",
    }.get(reason or "", "stopped")


_NONE = AgentSession("", "", "")
"""Stands for the session of a run that has not begun."""
