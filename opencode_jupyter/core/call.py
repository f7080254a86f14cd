"""One call, from request to final state: the only way a tool runs, whoever calls it.

pending -> before-hooks -> validation -> doom loop -> running (the tool, its permission requests) -> truncation ->
after-hooks -> completed or error. Everything that can end a call early ends its one cancel scope.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from . import doom_loop, ids
from .call_approval import REVISED_NOTE, CallApproval
from .call_reporting import cancel_scope
from .call_state import FOR_PERSON, CallOutcome, Completed, Pending, Running, ToolPart, now_ms
from .card_spec import renew_description
from .context import AbortSignal, InitContext, ToolContext
from .errors import (
    ArgumentsRevisedError,
    DryRunEnd,
    InvalidArgumentsError,
    ToolAbortedError,
    ToolError,
    ToolTimeoutError,
    UnknownToolError,
)
from .hooks import AFTER, BEFORE
from .permission import Decision
from .project_trust import ask_for_project
from .repair import INVALID, correct_name, invalid_call, repair
from .result import ToolResult
from .schema import wire_names
from .sessions import Session
from .threads import call_on_loop
from .tool import Bound, Tool
from .validation_issues import MOST_LEVELS, SCALARS, is_nested_too_deeply

if TYPE_CHECKING:
    from .agents import Agent
    from .host import ToolHost

log = logging.getLogger(__name__)

FRESH_FOR = 0.02
"""Seconds after its creation in which a call need not check again whether tools came or went."""
GENERATOR_EXIT = "The tool raised GeneratorExit, which is for closing generators. Raise another exception."
"""The error in its place: it would end the call's caller without a trace."""

By = Literal["user", "python", "model"]
Executor = Callable[[Tool, Bound, Any, ToolContext], Awaitable[ToolResult]]


@dataclass(slots=True, kw_only=True)
class CallOptions:
    """The options of a call.

    Attributes:
        timeout: its limit in seconds; waiting for a person does not count.
        by: who wrote it.
        call_id: the model's id of it; that of its part if left out.
        extra: `ToolContext.extra` of its tool.
        parent_id: the part of the call that it belongs to.
        parent: that call itself, if it is made inside one of this workspace.
        on_update: called with the part after every change.
        dry_run: list its permission requests instead of running it.
        tool: the tool to run; looked up by its name if left out.
        streaming: a model is still writing its arguments.
    """

    timeout: float | None = None
    by: By = "python"
    call_id: str | None = None
    extra: dict[str, Any] | None = None
    parent_id: str | None = None
    parent: Call | None = None
    on_update: Callable[[ToolPart], None] | None = None
    dry_run: bool = False
    tool: Tool | None = None
    streaming: bool = False


class Call(CallApproval):
    """One call in progress; make it with `Workspace.start`, then await `run` once.

    Attributes:
        part: its state as data.
        arguments: those it runs with; in `part` their secrets are masked.
        tool: the tool it runs; None if there is none of that name. One that is passed in is not looked up.
        waiting: how many times it, or a call it made, waits for a person right now.
        parent: the call inside which this one was made (batch; task, in the session it started); None for the others.
        children: the calls it made, in order; each has a part and a state of its own.
        on_update: called after every change of `part` (at most 20 a second while it runs, and the last one always).
    """

    __slots__ = ("_fresh_at", "_has_tool", "_nested", "_too_deep", "children")

    def __init__(
        self,
        workspace: ToolHost,
        name: str,
        arguments: dict[str, Any],
        *,
        agent: Agent,
        session: Session,
        message_id: str,
        options: CallOptions,
    ) -> None:
        by, parent, tool = options.by, options.parent, options.tool
        self._workspace = workspace
        self._agent = agent
        self._by = by
        self.session = session
        self.timeout = options.timeout
        self.on_update = options.on_update
        self.signal = AbortSignal()
        self.waiting = 0
        self._call_approval, self._earlier = None, []
        self.revised = False
        self.error = None
        self.dry_run = options.dry_run
        self.parent = parent
        self.children: list[Call] = []
        self._has_tool = tool is not None
        self._nested = parent is not None and parent.session is session
        self._pieces, self._last_parse = [], 0.0
        self._fresh_at = 0.0
        self._too_deep = (
            type(arguments) is dict
            and not SCALARS.issuperset(map(type, arguments.values()))  # most calls; nothing is called
            and is_nested_too_deeply(arguments)
        )
        if self._too_deep:
            arguments = {}
        if by == "user":
            workspace.registry.invalidate()
        if tool is None and not options.streaming and workspace.registry.is_fresh(name):
            self._fresh_at = time.monotonic()
            name, arguments = self._corrected(name, arguments)
        self.tool = tool if tool is not None else workspace.registry.get(name)
        part_id = ids.create("part")
        self.arguments = arguments
        self.part = ToolPart(
            part_id,
            session.id,
            message_id,
            options.call_id or part_id,
            name,
            Pending(arguments) if (masker := workspace.masker()) is None else masker.value(Pending(arguments)),
            agent.name,
            "model" if by == "model" else "user",
            parent_id=options.parent_id if parent is None else parent.part.id,
        )
        self.ctx = ToolContext(
            session.id,
            message_id,
            self.part.call_id,
            agent.name,
            workspace.directory,
            workspace.worktree,
            self.signal,
            workspace,
            part_id,
            {} if options.extra is None else options.extra,
            dry_run=options.dry_run,
            by=by,
        )
        self._scope = self._loop = self._timer = None
        self._last_update = 0.0
        self._waiting_since = 0.0
        self.waits = []
        self._remaining = None

    # ------------------------------------------------------------------ the pipeline

    async def run(self) -> ToolResult:
        """Take the call through the pipeline.

        Raises:
            ToolError: see `core.errors`; or whatever the tool itself raises.
        """
        self._loop = self.ctx._loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        self.ctx._call = self
        workspace, part = self._workspace, self.part
        workspace.calls[part.call_id] = self
        self._publish_change()
        try:
            with cancel_scope() as self._scope:
                if self.signal.reason is not None:
                    self._scope.cancel()
                if self.timeout is not None:
                    self._scope.deadline = self._loop.time() + self.timeout
                while True:
                    try:
                        result = await self._stages()
                        break
                    except ArgumentsRevisedError as revised:
                        self._restart(revised)
            if self._scope.cancelled_caught:
                raise self._cancelled()  # noqa: TRY301 - one handler for every ending
        except BaseException as error:
            failure = error
            if isinstance(error, GeneratorExit):
                if asyncio.current_task() is not task:
                    self.refuse(error)  # the coroutine is being closed: it can't wait any more
                    raise
                failure = ToolError(GENERATOR_EXIT)
            self._fail(failure)
            await self._report_end(failure)
            if failure is not error:
                raise failure from error
            raise
        else:
            await self._report_end()
        finally:
            workspace.calls.pop(part.call_id, None)
            self.ctx._call = self.ctx._report = None
            if self._timer is not None:
                self._timer.cancel()
        return result

    def _corrected(self, name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        if self._by == "model" and not self._nested:
            return repair(self._workspace.registry, name, arguments)
        return correct_name(self._workspace.registry, name), arguments

    @property
    def _is_resolved(self) -> bool:
        """True if the call has its tool, and no source has to be checked for another."""
        registry, name = self._workspace.registry, self.part.tool
        if self._has_tool:
            return True
        if time.monotonic() - self._fresh_at > FRESH_FOR and not registry.is_fresh(name):
            return False
        return self.tool is not None and self.tool is registry.get(name)

    async def _resolve(self) -> None:
        """Have the sources load the tool of this name.

        Raises:
            ToolError: a person denied what loading it needs.
        """
        registry, part = self._workspace.registry, self.part
        before, agents = (part.tool, self.arguments, self.tool), self._workspace.agents
        if not registry.is_fresh(part.tool):  # else another call had it loaded in the meantime
            await registry.prepare(part.tool, self)
        self._renew_agent(agents)
        part.tool, self.arguments = self._corrected(part.tool, self.arguments)
        self._set_state(Pending(self.arguments))
        self.tool = registry.get(part.tool)
        if (part.tool, self.arguments, self.tool) != before:
            self._publish_change()

    def _renew_agent(self, before: dict[str, Agent]) -> None:
        """Use the agent's present rules, if a plugin or a person's trust changed the configuration."""
        if self._workspace.agents is not before:
            key = next((name for name, agent in before.items() if agent is self._agent), "")
            self._agent = self._workspace.agents.get(key, self._agent)

    async def _stages(self) -> ToolResult:
        if self._workspace.config.withheld and not self._has_tool:
            agents = self._workspace.agents
            await ask_for_project(self._workspace, self)
            self._renew_agent(agents)
        if not self._is_resolved:
            await self._resolve()
        workspace, part = self._workspace, self.part
        hook_input = {"tool": part.tool, "sessionID": part.session_id, "callID": part.call_id}
        tool, bound, arguments, validated = await self._prepare(hook_input)
        await self._approve_tool(tool, bound.definition.asks, arguments)
        if not self.dry_run and self._by != "user" and not self._nested:
            # A person runs a cell again on purpose; the guard is for models and for code. A batch counts as one call:
            # its calls were made at once, without a result in between.
            recent = self.session.recent
            recent.append(doom_loop.key(part.tool, arguments))
            if doom_loop.is_looping(recent):
                await self._ask("doom_loop", [part.tool], [part.tool], {"tool": part.tool, "input": arguments})
        before = round(part.waited * 1000) if part.waited else 0
        start = now_ms() - before  # what it waited for before it ran is part of its time
        self._set_state(Running(arguments, start))
        self._publish_change()
        if workspace.execute is None:
            result = await bound.execute(validated, self.ctx)
        else:
            result = await workspace.execute(tool, bound, validated, self.ctx)
        if self.revised and self._by == "model":
            result.output += REVISED_NOTE.format(arguments=json.dumps(arguments, ensure_ascii=False, default=str))
        if (masker := workspace.masker()) is not None:
            masker.mask_result(result)
        if "truncated" not in result.metadata:
            result.metadata = {**result.metadata, "truncated": False}
            if not workspace.truncation.fits(result.output):
                cut = workspace.truncation.output(result.output, agent=self._agent)
                result.output = cut.content
                if cut.truncated:
                    result.metadata |= {"truncated": True, "outputPath": cut.output_path}
        for attachment in result.attachments:
            attachment.id = ids.create("part")
            attachment.session_id, attachment.message_id = part.session_id, part.message_id
        if workspace.hooks.has_hooks(AFTER):
            await self._after(hook_input, arguments, result)
            if (masker := workspace.masker()) is not None:
                masker.mask_result(result)
        part.result = result.without_value()
        part.outcome = CallOutcome.COMPLETED
        end = now if (now := now_ms()) > start else start  # the clock may have been set back
        state = Completed(arguments, start, end, result.title, result.output, result.metadata, result.attachments)
        part.state = state if masker is None else masker.value(state)
        return result

    async def _prepare(self, hook_input: dict[str, Any]) -> tuple[Tool, Bound, dict[str, Any], Any]:
        """The tool, its definition, its arguments for the record, and the same validated, after the hooks.

        Raises:
            ToolError: there is no such tool, or the arguments do not fit.
        """
        workspace, part, tool = self._workspace, self.part, self.tool
        arguments = self.arguments
        if tool is None:
            raise UnknownToolError(part.tool, workspace.registry.names(), workspace.registry.why_not(part.tool))
        if not isinstance(arguments, dict):
            raise InvalidArgumentsError(
                f"The {part.tool} tool takes a dict of names and values, not {type(arguments).__name__}",
                tool=part.tool,
            )
        if self._too_deep:
            raise InvalidArgumentsError(
                f"The arguments of {part.tool} are nested more than {MOST_LEVELS} levels deep. Flatten them, or pass "
                "deeply nested data as text or in a file.",
                tool=part.tool,
            )
        if workspace.hooks.has_hooks(BEFORE):
            arguments = copy.deepcopy(arguments)
            arguments = (await workspace.hooks.trigger(BEFORE, hook_input, {"args": arguments}))["args"]
            arguments = renew_description(self.arguments, arguments)
        bound = tool.static or await tool.init(InitContext(self._agent, workspace))
        arguments = wire_names(bound.definition.parameters, arguments)
        try:
            return tool, bound, arguments, bound.validate(arguments)
        except InvalidArgumentsError as error:
            fallback = workspace.registry.get(INVALID)
            if self._by != "model" or self._nested or fallback is None:
                raise
            # The model gets the reason as a result, and its turn continues.
            part.tool, arguments = invalid_call(part.tool, str(error))
            self.ctx.extra = {**self.ctx.extra, FOR_PERSON: error.for_person}
        hook_input["tool"] = part.tool
        self.tool = fallback
        bound = await fallback.init(InitContext(self._agent, workspace))
        return fallback, bound, arguments, bound.validate(arguments)

    async def _after(self, hook_input: dict[str, Any], arguments: dict[str, Any], result: ToolResult) -> None:
        output = {name: getattr(result, name) for name in ("title", "output", "metadata", "attachments")}
        output = await self._workspace.hooks.trigger(AFTER, {**hook_input, "args": arguments}, output)
        result.title, result.output, result.metadata = output["title"], output["output"], output["metadata"]
        result.attachments = output["attachments"]

    # ------------------------------------------------------------------ progress

    def complete_arguments(
        self, name: str, arguments: dict[str, Any], tool: Tool, metadata: dict[str, Any] | None
    ) -> None:
        """Set the tool and all arguments of a streaming call; now it can be run.

        Args:
            name: the tool's id, corrected.
            arguments: parsed.
            tool: what the model was offered under that name.
            metadata: the provider's own data about the call.
        """
        self.part.tool, self.tool, self._has_tool = name, tool, True
        self.part.provider_metadata = metadata
        self.arguments = arguments
        self._set_state(Pending(arguments))

    # ------------------------------------------------------------------ calls that this one makes

    def child(self, name: str, arguments: dict[str, Any]) -> Call:
        """A call made by this one, for the same agent, in the same message; it joins `children`. Await its `run`.

        It has its own part, permission requests and card. What ends this call ends it too; it has no time limit of its
        own.
        """
        call = Call(
            self._workspace,
            name,
            arguments,
            agent=self._agent,
            session=self.session,
            message_id=self.part.message_id,
            options=CallOptions(by=self._by, extra=self.ctx.extra, parent=self, dry_run=self.dry_run),
        )
        call.ctx.messages = self.ctx.messages
        self.children.append(call)
        return call

    def refuse(self, error: BaseException) -> None:
        """End a call that does not run (any further) with this error."""
        self._fail(error)
        self._publish_change()

    async def preview(self) -> list[Decision]:
        """The requests that a call made with ``dry_run`` would make, each with its decision.

        Raises:
            ToolError: no such tool, or the arguments do not fit.
        """
        with contextlib.suppress(DryRunEnd):
            if not self._is_resolved:
                await self._resolve()
        if self.part.decisions:  # those before its code is loaded; the rest can't be known
            return self.part.decisions
        if self.tool is not None and not self.tool.builtin:
            bound = await self.tool.init(InitContext(self._agent, self._workspace))
            bound.validate(dict(self.arguments))
            return [await self._ask(self.part.tool, ["*"], [], {})]
        with contextlib.suppress(DryRunEnd):
            await self.run()
        return [*self.part.decisions, *(decision for child in self.children for decision in child.part.decisions)]

    # ------------------------------------------------------------------ endings

    def abort(self, reason: str = "stopped") -> None:
        """End the call: its scope is cancelled, child processes with it. Any thread may call it; twice is harmless."""
        self.signal.abort(reason)
        for child in list(self.children):
            child.abort(reason)
        if self._loop is None or self._loop.is_closed():
            return
        call_on_loop(self._loop, self._cancel)

    def _cancel(self) -> None:
        if self._scope is not None:
            self._scope.cancel()

    def _cancelled(self) -> ToolAbortedError:
        if self.signal.reason is None and self.timeout is not None:
            self.signal.abort("timeout")
            return ToolTimeoutError(self.part.tool, self.timeout)
        return ToolAbortedError(reason=self.signal.reason or "stopped")

    @property
    def overdue(self) -> bool:
        """True if its time is up."""
        return self._scope is not None and self._loop is not None and self._scope.deadline <= self._loop.time()
