"""Prepares a run: its session, agent, model and tools, and the user's message (docs/opencode/core.md 6.5, 13)."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import ToolError
from ..core.permission import Rule
from ..core.suggestions import did_you_mean
from ..core.wildcard import match
from .compaction.title import title
from .conversation import Conversation
from .errors import ModelError
from .lazy_messages import LazyMessages
from .model import Model
from .models import resolve
from .prompt_message import prompt_message
from .revert import cleanup

if TYPE_CHECKING:
    from .run import Run
    from .sessions import AgentSession

STOP_SECONDS = 10.0
"""Seconds that a stopped run may take to end before the session's next one is refused."""
LOOP_TURNS = 3
"""Turns of the event loop until Python closes a generator that was left."""
NEW_TITLE = "New session"
"""The title of a session that has none yet."""


async def prepare_run(run: Run) -> None:
    """Open the session, find agent and model, and put the user's message into it.

    Raises:
        ToolError: no such session, agent or tool, or the session is at work.
        ModelError: there is no such model, or none is named anywhere.
    """
    workspace = run.workspace
    run.status = "working"
    run.report("status", None)
    if not workspace.registry.is_fresh():
        await workspace.registry.prepare()  # plugins may bring agents and tools
    run.session = await _session(run)
    await _wait_for_stopped_run(run.session)
    if run.session.run is not None and run.session.run is not run:
        raise ToolError(
            f"the session {run.session.title!r} is running another prompt; wait for it, stop it, or use another session"
        )
    run.session.run = run
    run.set_status("working")  # again: now there is a session to say it of
    run.conversation = Conversation(workspace, run.session)
    run.tool_messages = LazyMessages(workspace, run.session)
    run.agent = workspace.agent(run.options.agent or run.session.agent or None)
    model = await _model(run)
    run.model = model if run.options.record is None else _recording_model(run, model)
    await cleanup(workspace, run.session)
    _select_tools(run)
    message = prompt_message(run, _agent_key(run))
    session = run.session
    session.agent, session.model, session.asked = _agent_key(run), run.model_wire, model
    first = not session.messages
    masked_title = workspace.masked(run.options.title)
    run.add(message)
    if first and session.title in ("", NEW_TITLE):
        session.title = masked_title or await title(workspace, session, workspace.masked(run.options.text))
    workspace.sessions.save(session)


async def _wait_for_stopped_run(session: AgentSession) -> None:
    """Let a stopped run of this session end first: after leaving ``async for`` there is no way to wait for it, and it
    is stopped a few turns of the event loop later.
    """
    for _ in range(LOOP_TURNS):
        if session.run is None or session.run.reason is not None:
            break
        await asyncio.sleep(0)
    other = session.run
    if other is not None and other.reason is not None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await other.over.wait()


async def _session(run: Run) -> AgentSession:
    sessions, known = run.workspace.sessions, run.options.session
    session: AgentSession
    if known is None:
        session = sessions.create(run.workspace.masked(run.options.title) or "")
    else:
        session = await sessions.open(known)
    return session


async def _model(run: Run) -> Model:
    """The model that is asked: named by the prompt, the agent, the session, the configuration; in this order."""
    model = run.options.model
    if model is None and run.agent.model is None:
        model = run.session.asked
    if model is None:
        known = run.agent.model or run.session.model
        model = f"{known['providerID']}:{known['modelID']}" if known else run.workspace.config.data.get("model")
        if isinstance(model, str) and model.startswith("scripted") and model.endswith(".py"):
            raise ModelError(
                f"the configured model, {model}, is a Python file, which runs code: name it in the prompt: -m {model}",
                "setup",
            )
    if model is None:
        raise ModelError(
            "No model is named. Give one (model='openai:gpt-5', %%agent -m openai:gpt-5), or set `model` in "
            "opencode.json. Without a key, use a scripted model: model='scripted:FILE'.",
            "setup",
        )
    return await resolve(run.workspace, model) if isinstance(model, str) else model


def _recording_model(run: Run, model: Model) -> Model:
    from .scripted import Recorder
    from .scripted.scrub import secrets_of

    keys = secrets_of(run.workspace.config.data)
    return Recorder(model, Path(run.workspace.directory, run.options.record), secrets=keys)


def _agent_key(run: Run) -> str:
    """The key that the agent is found by; its shown name may be another."""
    return next((key for key, agent in run.workspace.agents.items() if agent is run.agent), run.agent.name)


SWITCHES_ORIGIN = "the prompt's tools"
"""Origin of the rules that a prompt's ``tools`` makes."""


def _select_tools(run: Run) -> None:
    """Turn a list of wanted tools into switches (all others are off), and patterns (``mcp_*``) into what they mean.

    Raises:
        ToolError: a name is no tool's: a slip would leave on what was to be off.
    """
    known, only = run.workspace.registry.names(), run.options.only
    selection = run.options.switches if only is None else dict.fromkeys(only, True)
    missing = [name for name in selection if name not in known and "*" not in name]
    if missing and run.parent is None:
        known = [name for name in known if name != "invalid"]
        hint = did_you_mean(missing[0], known) or f" There are {', '.join(known)}."
        raise ToolError(f"tools= names no tool of this project: {', '.join(missing)}.{hint}")
    switches = {} if only is None else dict.fromkeys(known, False)
    for name, is_on in selection.items():
        names = [tool for tool in known if match(tool, name)] if "*" in name else [name]
        switches |= dict.fromkeys(names, is_on)
    run.switches = switches
    rules = [Rule(name, "*", "allow" if is_on else "deny", SWITCHES_ORIGIN) for name, is_on in switches.items()]
    run.session.tool_rules = rules if only is None else [Rule("*", "*", "deny", SWITCHES_ORIGIN), *rules]
