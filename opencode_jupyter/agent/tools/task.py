"""task: let another agent work on something, in a session of its own. See docs/opencode/core.md 15.6."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, Field, model_validator

from ...core.agents import Agent, list_agents
from ...core.call_state import Completed, Running
from ...core.card_spec import CardSpec
from ...core.context import InitContext, ToolContext
from ...core.errors import ToolAbortedError, ToolError
from ...core.host import ToolHost
from ...core.permission import EDIT_TOOLS, Rule, evaluate
from ...core.permission.modes import replace_rules
from ...core.result import ToolResult
from ...core.schema import Arguments
from ...core.sessions import Session
from ...core.tool import Definition, Manifest, Tool
from ...tools.builtin import description_file
from ..sessions import AgentSession, sessions_of

if TYPE_CHECKING:
    from ...core.call import Call
    from ...core.call_state import ToolPart

DEEPEST = 5
"""Tasks within tasks: how many levels there may be."""
ORIGIN = "task"
_RESULT = re.compile(r"task_id: [^\n]*\n\n<task_result>\n(.*)\n</task_result>(.*)", re.DOTALL)
NO_DESCRIPTION = "This subagent should only be called manually by the user."


class Parameters(Arguments):
    """What is to be done, and by whom."""

    model_config = ConfigDict(alias_generator=None)  # subagent_type on the wire too

    description: str = Field(description="A short name for the task (3-5 words)")
    prompt: str = Field(description="The task, with all that the agent needs to know")
    subagent_type: str = Field(description="Which agent is to do it")
    task_id: str | None = Field(
        default=None, description="Only to go on with an earlier task: the task_id that its result began with"
    )
    command: str | None = Field(default=None, description="The command that led to this task, if one did")

    @model_validator(mode="before")
    @classmethod
    def _older_name(cls, arguments: Any) -> Any:
        """Take ``session_id``, as releases before February 2026 called it."""
        if isinstance(arguments, dict) and arguments.get("session_id") and not arguments.get("task_id"):
            return {**arguments, "task_id": arguments["session_id"]}
        return arguments


async def run(args: Parameters, ctx: ToolContext) -> ToolResult:
    """Hand a task to another agent."""
    workspace = ctx.workspace
    if not ctx.extra.get("bypassAgentCheck"):
        about = {"description": args.description, "subagent_type": args.subagent_type}
        await ctx.ask("task", [args.subagent_type], ["*"], about)
    agent = workspace.agents.get(args.subagent_type)
    if agent is None:
        names = ", ".join(_task_agent_names(workspace))
        raise ToolError(
            f"Unknown agent type: {args.subagent_type} is not a valid agent type. Agents that take tasks: {names}",
            for_person=f"There is no agent {args.subagent_type}. Agents that take tasks: {names}.",
        )
    caller = workspace.sessions.get(ctx.session_id)
    _check_depth(workspace, caller)
    child, note = await _session(args, ctx, caller)
    ctx.proceed()
    off = _disabled_tools(workspace, agent, workspace.agents.get(ctx.agent))
    child = child or sessions_of(workspace).create(
        f"{args.description} (@{args.subagent_type} subagent)", parent_id=caller.id
    )
    replace_rules(child, [Rule(name, "*", "deny", ORIGIN) for name in off])
    call = workspace.calls[ctx.call_id]
    work = sessions_of(workspace).prompt(
        args.prompt,
        model=_model(workspace, agent, caller),
        agent=args.subagent_type,
        session=child,
        tools=dict.fromkeys(off, False),
        parent=call,
    )
    report = _Report(ctx, args.description, child, work)
    work.on_change = report.changed
    report.publish()
    try:
        answer = await work
    except ToolAbortedError as error:
        if ctx.abort.aborted:
            raise
        raise ToolError(f"The agent was stopped before it had finished. {_resume_hint(child)}") from error
    except Exception as error:
        problem = str(error) or type(error).__name__
        raise ToolError(f"The agent could not finish: {problem}\n{_resume_hint(child)}") from error
    texts = [str(part.get("text", "")) for part in answer.messages[-1].of_type("text")]
    notes = [note, _ENDED.get(answer.ended, "")]
    output = (
        f"task_id: {child.id} (to go on with this task later, give it as task_id)\n\n"
        f"<task_result>\n{texts[-1].strip() if texts else ''}\n</task_result>"
    )
    return ToolResult(args.description, "\n\n".join([output, *filter(None, notes)]), report.metadata())


_ENDED = {
    "rejected": "Note: the user refused what the agent wanted to do, and it ended there.",
    "max-steps": "Note: the agent had used up its steps; the task might be unfinished.",
    "length": "Note: the agent's answer was cut: it had reached the most tokens it may have.",
    "refused": "Note: the provider held the agent's answer back.",
}
"""Notes for the caller about an unusual end."""


def _resume_hint(child: Session) -> str:
    return f"What it had done by then is kept; to let it go on: task_id: {child.id}"


def _check_depth(workspace: ToolHost, session: Session) -> None:
    """Refuse a task that is nested too deeply in other tasks.

    Raises:
        ToolError: it is.
    """
    if len(_ancestors(workspace, session)) > DEEPEST:
        raise ToolError(
            f"Tasks may be {DEEPEST} levels deep within each other, and this one would be deeper. Do it yourself."
        )


def _ancestors(workspace: ToolHost, session: Session) -> list[str]:
    """The ids of a session and of those that began it."""
    sessions_by_id = {other.id: other for other in workspace.sessions.list()}
    chain: list[str] = []
    at: Session | None = session
    while at is not None and at.id not in chain:
        chain.append(at.id)
        at = sessions_by_id.get(at.parent_id or "")
    return chain


async def _session(args: Parameters, ctx: ToolContext, caller: Session) -> tuple[AgentSession | None, str]:
    """The session of an earlier task, if one is named; None for a new one. And what to say about it.

    Raises:
        ToolError: the named one cannot be continued.
    """
    task_id = args.task_id
    if not task_id:
        return None, ""
    anew = f"Note: there is no task {task_id}; the agent started a new one."
    try:
        session = await sessions_of(ctx.workspace).open(task_id)
    except (KeyError, ValueError):
        return None, anew
    if session.id in _ancestors(ctx.workspace, caller):
        raise ToolError(f"{task_id} is the conversation that this call belongs to, so it can't be given a task.")
    if session.parent_id is None:  # a model must not write into a person's own conversation
        return None, anew
    if session.run is not None:
        raise ToolError(f"The task {task_id} is still running. Wait for its result, or leave task_id out.")
    return session, ""


def _disabled_tools(workspace: ToolHost, agent: Agent, caller: Agent | None) -> list[str]:
    """The tools that the agent must not use within a task."""
    off = ["todowrite", "todoread"]  # as in OpenCode: the list of tasks is the caller's
    if not any(rule.permission == "task" for rule in agent.permission):
        off.append("task")
    off += [str(name) for name in workspace.config.get("experimental", "primary_tools", default=()) or ()]
    if caller is not None and evaluate("edit", "*", caller.permission).action == "deny":
        # an agent that cannot change files must not have another one do it
        tools = map(workspace.registry.get, workspace.registry.names())
        off += [*sorted(EDIT_TOOLS), *(tool.id for tool in tools if tool is not None and tool.permission == "edit")]
    return list(dict.fromkeys(off))


def _model(workspace: ToolHost, agent: Agent, caller: Session) -> Any:
    """The agent's own model, else the caller's; None leaves it to the configuration."""
    if agent.model is not None:
        return _name(agent.model)
    if caller.run is not None:
        return caller.run.model
    if caller.model is not None:
        return _name(caller.model)
    if workspace.config.data.get("model"):
        return None
    used = [session for session in workspace.sessions.list() if session.model is not None]
    last = max(used, key=lambda session: session.updated, default=None)
    return _name(last.model) if last is not None and last.model is not None else None


def _name(model: dict[str, str]) -> str:
    return f"{model['providerID']}:{model['modelID']}"


class _Report:
    """Shows in the task's part what the agent does."""

    def __init__(self, ctx: ToolContext, title: str, child: Session, work: Any) -> None:
        self._ctx = ctx
        self._title = title
        self._child = child
        self._work = work

    def changed(self, work: Any, kind: str, thing: Any) -> None:
        """Something happened in the agent's run."""
        if kind == "call":
            self._follow(thing)
        if kind in ("call", "dropped", "status"):
            self.publish()

    def _follow(self, call: Call) -> None:
        before = call.on_update

        def updated(part: ToolPart) -> None:
            if before is not None:
                before(part)
            self.publish()

        call.on_update = updated

    def publish(self) -> None:
        """Put the progress into the part."""
        self._ctx.metadata(self._title, self.metadata())

    def metadata(self) -> dict[str, Any]:
        """``sessionId``, ``model`` and, as ``summary``, the agent's calls with their states."""
        model = self._child.model
        with contextlib.suppress(AttributeError):  # it has not started
            model = self._work.model_wire
        metadata: dict[str, Any] = {"sessionId": self._child.id}
        if model is not None:
            metadata["model"] = {"providerID": model["providerID"], "modelID": model["modelID"]}
        metadata["summary"] = [_row(call.part) for call in self._work.calls]
        return metadata


def _row(part: ToolPart) -> dict[str, Any]:
    state: dict[str, Any] = {"status": part.state.status}
    if isinstance(part.state, (Completed, Running)) and part.state.title:
        state["title"] = part.state.title
    return {"id": part.id, "tool": part.tool, "state": state}


# ---------------------------------------------------------------------- the tool's description


async def init(ctx: InitContext) -> Definition:
    """The tool as an agent sees it: with the agents that its rules do not deny."""
    text = description_file(__file__, "task")
    if ctx.workspace is None:
        return Definition(text.replace("{agents}", "(none)"), Parameters, run)
    agents = [
        (name, agent)
        for name, agent in _task_agents(ctx.workspace)
        if ctx.agent is None or evaluate("task", name, ctx.agent.permission).action != "deny"
    ]
    lines = "\n".join(f"- {name}: {agent.description or NO_DESCRIPTION}" for name, agent in agents) or "(none)"
    return Definition(text.replace("{agents}", lines), Parameters, run)


def _task_agents(workspace: ToolHost) -> list[tuple[str, Agent]]:
    """The agents that take tasks, in order."""
    keys = {id(agent): key for key, agent in workspace.agents.items()}
    ordered = list_agents(workspace.agents, workspace.config.data)
    return [(keys[id(agent)], agent) for agent in ordered if agent.mode != "primary"]


def _task_agent_names(workspace: ToolHost) -> list[str]:
    return [name for name, _ in _task_agents(workspace)]


def complete_agent_names(workspace: ToolHost, parameter: str) -> Iterable[str]:
    """Completions of a parameter: the agents that take tasks."""
    return _task_agent_names(workspace) if parameter == "subagent_type" else ()


def _answer(state: Completed) -> str | None:
    """The answer and the notes below it, without what a model needs to continue the task."""
    match = _RESULT.fullmatch(state.output)
    return "\n\n".join(filter(None, map(str.strip, match.groups()))) if match else None


task = Tool(
    "task",
    init,
    body="prompt",
    manifest=Manifest(
        builtin=True, group="agent", effect="acts", card=CardSpec(text=_answer, question="Run this agent?")
    ),
    completions=complete_agent_names,
    source=__name__,
)
task.__doc__ = run.__doc__
