"""The loop: ask the model, run its calls, ask again with their results (docs/opencode/core.md 6 to 8, 23)."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..core.call_state import now_ms
from ..core.messages import Message, assistant_message, new_part, user_message
from .answer import Answer, RunEnd
from .compaction import compact, overflows, prune
from .conversation import ABORTED, NOTICE
from .errors import ModelError
from .events import Finish, Usage
from .model import Request, agent_request
from .prepare_run import prepare_run
from .prompt import LAST_STEP, Instructions, system_prompt
from .retry import pause, wait_before
from .step import Step, StepFiles
from .structured import NUDGE, NUDGES
from .tool_selection import ToolSelector
from .turns import TextPiece, Turn

if TYPE_CHECKING:
    from .run import Run


async def run_loop(run: Run) -> Answer:
    """Take a run from its prompt to its answer.

    Raises:
        ModelError: see `agent.errors`.
        ToolError: it could not begin.
    """
    await prepare_run(run)
    loop = _Loop(run)
    try:
        return await loop.run_steps()
    finally:
        await asyncio.shield(loop.files.close())
        run.workspace.sessions.save(run.session)


class _Loop:
    """The state of one run that only the loop needs."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.selector = ToolSelector(run.workspace)
        self.files = StepFiles(run.workspace)
        self.limit = run.options.max_steps or run.agent.steps
        self.nudged = 0

    async def run_steps(self) -> Answer:
        run = self.run
        await self._compact_if_full()
        while True:
            self._follow_agent()
            message = await self._step()
            step = self.last
            finish = step.finish
            replay = ((finish.metadata if finish is not None else None) or {}).get("replay") or {}
            run.notes += [str(difference) for difference in replay.get("differences", ())]
            if run.options.structured is not None and run.options.structured.has_value:
                return await self._answer(message, "done")
            if step.blocked:
                return await self._answer(message, "rejected")
            goes_on = bool(step.calls) or finish is None
            if not goes_on and run.options.structured is not None:
                goes_on = self._request_structured_answer(message)
            if not goes_on:
                return await self._answer(message, _answer_end(finish))
            if self.limit is not None and run.step >= self.limit:
                return await self._answer(message, "max-steps")
            if finish is not None and overflows(finish.usage, run.model.info, run.workspace.config.data):
                await self._compact()

    def _follow_agent(self) -> None:
        """Continue as the agent that the last user's message is for: the plan tools change it."""
        run = self.run
        last = next((m for m in reversed(run.session.messages) if m.role == "user"), None)
        key = last.info.get("agent") if last is not None else None
        agent = run.workspace.agents.get(str(key))
        if agent is not None and agent is not run.agent:
            run.agent, run.session.agent = agent, str(key)
            run.report("status", None)

    # ------------------------------------------------------------------ one step

    async def _step(self) -> Message:
        run = self.run
        last_step = self.limit is not None and run.step + 1 >= self.limit
        for attempt in itertools.count(1):
            request = await self._request(last_step)
            message = self._open_message()
            step = self.last = Step(run, message, self.available_tools, self.files.before_call)
            try:
                self.files.track_before()
                await step.run(request)
                await self._close_step(message, step)
            except ModelError as error:
                if error.kind == "overflow" and attempt == 1 and self._can_compact():
                    self._remove_message(message)
                    await self._compact()
                    continue
                wait = wait_before(error, attempt)
                if wait is None:
                    error.add_attempts(attempt)
                    self._fail_step(message, step, error.to_wire())
                    raise
                self._remove_message(message)
                await pause(self.run, error, attempt, wait)
            except BaseException:
                text = "The run was stopped."
                self._fail_step(message, step, {"name": ABORTED, "data": {"message": text}})
                raise
            else:
                run.step += 1
                return message
        raise AssertionError

    async def _request(self, last_step: bool) -> Request:
        run = self.run
        info, agent, structured = run.model.info, run.agent, run.options.structured
        extra = () if structured is None else ((structured.tool, structured.bound),)
        self.available_tools = await self.selector.select(info, agent, run.rules, run.switches, extra)
        specs = self.available_tools.specs
        system = await system_prompt(run.workspace, agent, info, run.session, specs, run.options.system)
        turns: Sequence[Turn] = run.conversation.turns()
        choice = "auto" if structured is None else "required"
        if last_step and structured is None and self.limit != 1:
            turns = [*turns, Turn("user", (TextPiece(LAST_STEP),), purpose="notice")]
            choice = "none"
            self.available_tools = self.available_tools.without_tools()  # some servers ignore the choice
        choice = choice if specs else "auto"
        fields = {"system": system, "turns": turns, "tools": specs, "tool_choice": choice}
        return agent_request(run.workspace, run.session, agent.name, agent, **fields)

    def _open_message(self) -> Message:
        run = self.run
        parent = next(m for m in reversed(run.session.messages) if m.role == "user")
        message = assistant_message(
            run.session.id,
            parent.id,
            run.session.agent or run.agent.name,
            run.model_wire,
            cwd=str(run.workspace.directory),
            root=str(run.workspace.worktree),
        )
        message.parts.append(new_part(message, "step-start"))
        return run.add(message)

    async def _close_step(self, message: Message, step: Step) -> None:
        """The step is over: what it took, and which files it changed."""
        run, finish = self.run, step.finish or Finish("unknown")
        before = await self.files.snapshot_before()
        after, changed = await self.files.snapshot_after()
        if before is not None:
            start = next(message.of_type("step-start"))
            start["snapshot"] = before
            run.conversation.put(message, start)
        cost = run.add_usage(message, run.model.info, finish.usage)
        if step.broken:
            self._fail_step(message, step, {"name": "UnknownError", "data": {"message": step.broken}})
            return
        reason = "tool-calls" if step.calls and finish.reason in ("stop", "unknown", "other") else finish.reason
        end = new_part(message, "step-finish", reason=reason, tokens=finish.usage.to_wire(), cost=cost)
        if after is not None:
            end["snapshot"] = after
        run.conversation.put(message, end)
        if changed:
            patch = new_part(message, "patch", hash=before, files=changed)
            run.conversation.put(message, patch)
            run.report("part", patch)
        message.info["finish"] = reason
        message.info["time"] = {**message.info["time"], "completed": now_ms()}
        run.conversation.changed(message)
        run.report("part", end)

    def _fail_step(self, message: Message, step: Step, error: dict[str, Any]) -> None:
        """End a step with an error: its parts are kept, in a form that the conversation can continue with."""
        run = self.run
        step.close()
        message.info["error"] = error
        message.info["time"] = {**message.info["time"], "completed": now_ms()}
        run.conversation.changed(message)
        run.workspace.publish("session.error", lambda: {"sessionID": run.session.id, "error": error})

    def _remove_message(self, message: Message) -> None:
        """Remove the message of a request that failed before its answer began."""
        run = self.run
        run.messages.remove(message)
        run.conversation.remove({message.id})
        run.report("dropped", {message.id})

    # ------------------------------------------------------------------ between steps

    def _can_compact(self) -> bool:
        """Return whether a conversation that was too long may be summarised: the user can have switched it off."""
        run = self.run
        automatic = run.workspace.config.get("compaction", "auto") is not False
        if not automatic:
            run.notes.append("the conversation is too long for the model, and compaction.auto is false")
        return automatic and len(run.session.messages) > 2

    async def _compact_if_full(self) -> None:
        """Summarise before the first request if the last answer nearly filled the window: some cut silently."""
        run = self.run
        last = next((m for m in reversed(run.session.messages) if m.role == "assistant"), None)
        if last is None or last.info.get("summary") or not last.info.get("finish"):
            return
        used = Usage.from_wire(last.info.get("tokens"))
        if overflows(used, run.model.info, run.workspace.config.data):
            await self._compact()

    async def _compact(self) -> None:
        run = self.run
        run.set_status("compacting")
        await compact(run, auto=True)
        run.set_status("working")

    def _request_structured_answer(self, message: Message) -> bool:
        """Ask once more for the answer in its form.

        Raises:
            ModelError: that was done often enough.
        """
        run = self.run
        if self.nudged >= NUDGES:
            text = "the model did not give its answer in the requested form"
            raise ModelError(f"{text}; its answer: {message.text[:500]}", "protocol", provider=run.model.info.provider)
        self.nudged += 1
        nudge = user_message(run.session.id, run.session.agent, run.model_wire)
        nudge.parts.append(new_part(nudge, "text", text=NUDGE, synthetic=True, metadata=NOTICE))
        run.add(nudge)
        return True

    async def _answer(self, message: Message, ended: RunEnd) -> Answer:
        run = self.run
        prune(run.conversation)
        await self._summarise_changes()
        run.notes += run.workspace.service(Instructions).problems
        structured = run.options.structured
        return Answer(
            message.text,
            messages=list(run.messages),
            session=run.session,
            model=run.model.info,
            usage=run.usage,
            cost=run.cost,
            steps=run.step,
            finish=str(message.info.get("finish") or ""),
            ended=ended,
            value=structured.value if structured is not None and structured.has_value else None,
            notes=list(run.notes),
        )

    async def _summarise_changes(self) -> None:
        """Record in the user's message how the files changed, as OpenCode does."""
        run = self.run
        diffs = await self.files.diffs()
        if not diffs:
            return
        prompt = run.messages[0]
        prompt.info["summary"] = {"diffs": diffs}
        run.conversation.changed(prompt)
        run.session.extra["summary"] = {
            "additions": sum(diff["additions"] for diff in diffs),
            "deletions": sum(diff["deletions"] for diff in diffs),
            "files": len(diffs),
        }


def _answer_end(finish: Finish | None) -> RunEnd:
    if finish is not None and finish.reason == "length":
        return "length"
    return "refused" if finish is not None and finish.reason == "content-filter" else "done"
