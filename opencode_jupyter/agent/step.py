"""One request to a model: its answer becomes parts, each call runs when it is complete, changed files are recorded.

See docs/opencode/core.md 8, 9.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import anyio
import anyio.abc

from ..core.call import Call, CallOptions
from ..core.errors import (
    HookRefusedError,
    PermissionRejectedError,
    QuestionRejectedError,
    ToolAbortedError,
)
from ..core.messages import Message
from ..core.tool import CHANGES_NO_FILES
from . import events
from .conversation import StreamedParts
from .errors import ModelError
from .masking import stream_masked
from .snapshots import Snapshots
from .tool_selection import AvailableTools

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from ..core.host import ToolHost
    from ..core.tool import Tool
    from .model import Request
    from .run import Run

log = logging.getLogger(__name__)

ABORTED = "Tool execution aborted"
"""The error of a call that its model never finished; OpenCode's text."""


class Step:
    """One step of a run: after `run`, the message holds its result.

    Attributes:
        finish: the stream's last event; None if it broke off.
        calls: those that were complete and were run.
        blocked: a person denied one, so the loop stops.
        broken: the error of the denial that ended it at once: a person denied a call that repeats itself.
    """

    def __init__(
        self, run: Run, message: Message, available_tools: AvailableTools, before_call: Callable[[Tool | None], Any]
    ) -> None:
        self._run = run
        self._message = message
        self._available_tools = available_tools
        self._before_call = before_call
        self._parts = StreamedParts(run.conversation, message, run.report)
        self._incomplete: dict[int, Call] = {}
        self.finish: events.Finish | None = None
        self.calls: list[Call] = []
        self.blocked = False
        self.broken = ""
        self._reading = anyio.CancelScope()

    async def run(self, request: Request) -> None:
        """Ask the model, and wait until its answer is whole and its calls have ended.

        A stream that breaks off when some calls had been whole already ends the step with these: they may have done
        something, so their results go to the model instead of the same request.

        Raises:
            ModelError: it broke off before that; its parts are removed.
        """
        failure: ModelError | None = None
        async with anyio.create_task_group() as group:
            try:
                with self._reading:
                    async with aclosing(stream_masked(self._run.workspace, self._run.model, request)) as stream:
                        async for event in stream:
                            self._handle(event, group)
            except ModelError as error:
                failure = error
            except Exception as error:
                log.exception("the stream of %s failed", self._run.model.info.full)
                failure = ModelError(
                    f"{type(error).__name__}: {error}", "other", provider=self._run.model.info.provider
                )
            if failure is not None and not self.calls:
                self._discard()
            else:
                self.close()
        if failure is not None and not (self.calls and failure.retryable):
            raise failure

    # ------------------------------------------------------------------ the stream

    def _handle(self, event: events.Event, group: anyio.abc.TaskGroup) -> None:
        match event:
            case events.CallStart(index, id, name):
                self._start_call(index, id, name)
            case events.CallDelta(index, text):
                call = self._incomplete.get(index)
                if call is not None:
                    call.receive_arguments(text)
            case events.CallEnd():
                call = self._incomplete.pop(event.index, None) or self._start_call(None, event.id, event.name)
                name, arguments, tool = self._available_tools.resolve_call(event.name, event.arguments)
                call.complete_arguments(name, arguments, tool, event.metadata)
                self.calls.append(call)
                group.start_soon(self._run_call, call)
            case events.Finish():
                self.finish = event
            case _:
                self._parts.handle(event)

    def _start_call(self, index: int | None, id: str, name: str) -> Call:
        run = self._run
        call = Call(
            run.workspace,
            name,
            {},
            agent=run.agent,
            session=run.session,
            message_id=self._message.id,
            options=CallOptions(
                call_id=run.tool_messages.free_call_id(id),
                by="model",
                extra={"model": run.model_wire, "bypassAgentCheck": run.mentions_agent},
                parent=run.parent,
                streaming=True,
            ),
        )
        call.ctx.messages = run.tool_messages
        if run.parent is not None:
            run.parent.children.append(call)
        if index is not None:
            self._incomplete[index] = call
        self._parts.ids.append(call.part.id)
        run.calls.append(call)
        run.conversation.put(self._message, call.part)
        run.report("call", call)
        return call

    # ------------------------------------------------------------------ calls

    async def _run_call(self, call: Call) -> None:
        try:
            wait = self._before_call(call.tool)
            if wait is not None:
                await wait
            try:
                await call.run()
            finally:
                for child in call.children:  # what a batch made; a task's calls belong to the session that it began
                    if child.session is call.session:
                        self._run.conversation.put(self._message, child.part)
        except (PermissionRejectedError, QuestionRejectedError) as error:
            if error.decision is not None and error.decision.permission == "doom_loop":
                self._end_at_once(call, error)
                return
            goes_on = self._run.workspace.config.get("experimental", "continue_loop_on_deny") is True
            if not goes_on and not isinstance(error, HookRefusedError):
                self.blocked = True
        except Exception as error:  # the part keeps it, and the model reads it there
            log.debug("a call of %s failed: %s", call.part.tool, error)

    def _end_at_once(self, refused: Call, error: Exception) -> None:
        """End the step at once: no more of the answer is read, and the other calls end (docs/opencode/core.md 8.1)."""
        self.blocked, self.broken = True, str(error)
        self._reading.cancel()
        for call in self.calls:
            if call is not refused and not call.part.outcome:
                call.abort("stopped")

    # ------------------------------------------------------------------ ends

    def close(self) -> None:
        """End what the stream left open: texts as they are, calls that were not whole as aborted."""
        self._parts.close()
        for call in self._incomplete.values():
            call.refuse(ToolAbortedError(ABORTED, reason=self._run.reason or "stopped"))
        self._incomplete.clear()

    def _discard(self) -> None:
        """Remove the parts of a broken stream, so that the next request does not double them."""
        arriving = list(self._incomplete.values())
        self.close()
        self._run.calls[:] = [call for call in self._run.calls if call not in arriving]
        if self._run.parent is not None:
            children = self._run.parent.children
            children[:] = [call for call in children if call not in arriving]
        self._parts.remove()


# ---------------------------------------------------------------------- files changed by a step


class StepFiles:
    """The snapshots of one run. One is only taken where files may have changed since the last."""

    def __init__(self, workspace: ToolHost) -> None:
        self._snapshots = workspace.service(Snapshots)
        self._last: str | None = None
        self._is_current = False
        self._tracking: asyncio.Task[str | None] | None = None
        self._changed = False
        self.first: str | None = None
        """The files as they were when the run began."""

    def track_before(self) -> None:
        """A step begins: look at the files, in the background, if they may have changed since the last look."""
        self._changed = False
        if not self._is_current and self._tracking is None:
            self._tracking = asyncio.create_task(self._snapshots.track())

    def before_call(self, tool: Tool | None) -> Awaitable[None] | None:
        """The snapshot that a call must wait for before it changes files; None for nothing."""
        if tool is not None and tool.builtin and tool.manifest.effect in CHANGES_NO_FILES:
            return None
        if not self._changed and self._is_current and self._tracking is None:
            # Since the last look a person may have changed something, which is not to be taken for the model's doing.
            self._tracking = asyncio.create_task(self._snapshots.track())
        self._changed = True
        return None if self._tracking is None else self._wait()

    async def _wait(self) -> None:
        taking = self._tracking
        if taking is not None:
            await asyncio.shield(taking)

    async def snapshot_before(self) -> str | None:
        """The snapshot from before the step."""
        if self._tracking is not None:
            self._last = await asyncio.shield(self._tracking)
            self._tracking, self._is_current = None, True
            self.first = self.first or self._last
        return self._last

    async def snapshot_after(self) -> tuple[str | None, list[str]]:
        """The snapshot after the step, and the files that it changed (absolute)."""
        before = await self.snapshot_before()
        if not self._changed or before is None:
            return before, []
        self._last = await self._snapshots.track()
        if self._last is None or self._last == before:
            return self._last, []
        return self._last, await self._snapshots.changed(before, self._last)

    async def diffs(self) -> list[dict[str, Any]]:
        """The run's changes of each file so far, in OpenCode's form."""
        if self.first is None or self._last is None or self.first == self._last:
            return []
        return await self._snapshots.diffs(self.first, self._last)

    async def close(self) -> None:
        """Let a look that is still going on end."""
        if self._tracking is not None:
            self._tracking.cancel()
            await asyncio.gather(self._tracking, return_exceptions=True)
            self._tracking = None
