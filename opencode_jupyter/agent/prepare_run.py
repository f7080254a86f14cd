"""Prepares a run: session, agent, model, tools, and the user's message with the agents and files that it names.

See docs/opencode/core.md 6.5, 13.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import InvalidArgumentsError, ToolError
from ..core.messages import Message, new_part, user_message
from ..core.permission import Rule
from ..core.result import Attachment
from ..core.suggestions import did_you_mean
from ..core.wildcard import match
from .conversation import Conversation, LazyMessages
from .errors import ModelError
from .model import Model
from .models import resolve
from .prompt import reminders
from .revert import cleanup
from .title import title
from .tools.plan import plan_file, plan_path

if TYPE_CHECKING:
    from ..core.host import ToolHost
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
        ToolError: no such session, agent or tool, or the session is running.
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
    session.agent, session.model, session.prompted_model = _agent_key(run), run.model_wire, model
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
    sessions, requested = run.workspace.sessions, run.options.session
    session: AgentSession
    if requested is None:
        session = sessions.create(run.workspace.masked(run.options.title) or "")
    else:
        session = await sessions.open(requested)
    return session


async def _model(run: Run) -> Model:
    """The model that is asked: named by the prompt, the agent, the session, the configuration; in this order."""
    model = run.options.model
    if model is None and run.agent.model is None:
        model = run.session.prompted_model
    if model is None:
        configured = run.agent.model or run.session.model
        model = (
            f"{configured['providerID']}:{configured['modelID']}"
            if configured
            else run.workspace.config.data.get("model")
        )
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
    """Turn a list of selected tools into switches (all others are off), and patterns (``mcp_*``) into names.

    Raises:
        ToolError: a name is no tool's: a slip would leave on what was to be off.
    """
    tool_names, only = run.workspace.registry.names(), run.options.only
    selection = run.options.switches if only is None else dict.fromkeys(only, True)
    missing = [name for name in selection if name not in tool_names and "*" not in name]
    if missing and run.parent is None:
        tool_names = [name for name in tool_names if name != "invalid"]
        hint = did_you_mean(missing[0], tool_names) or f" There are {', '.join(tool_names)}."
        raise ToolError(f"tools= names no tool of this project: {', '.join(missing)}.{hint}")
    switches = {} if only is None else dict.fromkeys(tool_names, False)
    for name, is_on in selection.items():
        names = [tool for tool in tool_names if match(tool, name)] if "*" in name else [name]
        switches |= dict.fromkeys(names, is_on)
    run.switches = switches
    rules = [Rule(name, "*", "allow" if is_on else "deny", SWITCHES_ORIGIN) for name, is_on in switches.items()]
    run.session.tool_rules = rules if only is None else [Rule("*", "*", "deny", SWITCHES_ORIGIN), *rules]


# ---------------------------------------------------------------------- the user's message


LARGEST = 20 * 1024 * 1024
"""Bytes of one file; providers take no more."""
LONGEST_TEXT = 50 * 1024
"""Bytes of a text file; a longer one is to be read with the read tool."""
_MENTION = re.compile(r"(?<![\w@./`])@([A-Za-z][\w./-]*)")


def prompt_message(run: Run, agent_key: str) -> Message:
    """The message that a run begins with.

    `agent_key` is the key of the run's agent; the name that is shown may be another.

    Raises:
        InvalidArgumentsError: one of its files cannot be sent.
    """
    options, session = run.options, run.session
    info: dict[str, Any] = {}
    if options.system:
        info["system"] = options.system
    if run.switches and options.only is None:
        info["tools"] = dict(run.switches)
    if options.structured is not None:
        info["format"] = {"type": "json_schema", "schema": options.structured.schema}
    previous_agent = next((m.info.get("agent") for m in reversed(session.messages) if m.role == "user"), None)
    message = user_message(session.id, agent_key, run.model_wire, **info)
    message.parts.append(new_part(message, "text", text=options.text))
    message.parts += _mention_parts(run.workspace, message, options.text)
    message.parts += _file_parts(message, options.files, run.workspace.directory)
    for text in reminders(run.agent, previous_agent, plan=_plan(run)):
        message.parts.append(new_part(message, "text", text=text, synthetic=True))
    return message


def _plan(run: Run) -> str | None:
    """The path of the session's plan, if it exists or the plan agent is to write it."""
    if run.agent.name != "plan" and not plan_file(run.workspace, run.session).is_file():
        return None
    return plan_path(run.workspace, run.session)


def _mention_parts(workspace: ToolHost, message: Message, text: str) -> list[dict[str, Any]]:
    """The parts for the sub-agents that a prompt names (docs/opencode/core.md 2, 6.6).

    Other words after an ``@`` (decorators, addresses) are left alone.
    """
    parts: list[dict[str, Any]] = []
    for mention in _MENTION.finditer(text):
        name = mention[1].rstrip(".-/")
        agent = workspace.agents.get(name)
        if agent is None or agent.mode == "primary" or any(part.get("name") == name for part in parts):
            continue
        source = {"value": f"@{name}", "start": mention.start(), "end": mention.start() + len(name) + 1}
        parts.append(new_part(message, "agent", name=name, source=source))
    if parts:
        names = ", ".join(part["name"] for part in parts)
        instruction = (
            f"The user wants a sub-agent to do this: call the task tool with subagent_type {names} and write its prompt"
        )
        parts.append(new_part(message, "text", text=instruction, synthetic=True))
    return parts


def _file_parts(message: Message, files: Iterable[Any], directory: Path) -> list[dict[str, Any]]:
    """The parts for files: pictures and PDF files as they are, texts as text.

    Raises:
        InvalidArgumentsError: a file cannot be read, or is too large; the message names it.
    """
    parts: list[dict[str, Any]] = []
    for file in files:
        if isinstance(file, Attachment):
            parts.append(new_part(message, "file", mime=file.mime, url=file.url, filename=file.filename or "file"))
        elif isinstance(file, (str, os.PathLike)):
            parts += _parts_of_path(message, Path(directory, os.path.expanduser(file)))
        else:
            raise InvalidArgumentsError(f"a file must be a path or an Attachment, not {type(file).__name__}")
    return parts


def _parts_of_path(message: Message, path: Path) -> list[dict[str, Any]]:
    try:
        if path.stat().st_size > LARGEST:
            raise InvalidArgumentsError(f"{path} is larger than {LARGEST // 1024**2} MB; it cannot be sent to a model")
        data = path.read_bytes()
    except OSError as error:
        raise InvalidArgumentsError(f"{path} can't be read: {error.strerror or error}") from error
    mime = _mime(path, data)
    if mime is not None:
        attachment = Attachment.from_bytes(data, mime, path.name)
        return [new_part(message, "file", mime=mime, url=attachment.url, filename=path.name)]
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidArgumentsError(
            f"{path} is neither a picture, a PDF file nor text; it cannot be sent to a model"
        ) from None
    if len(data) > LONGEST_TEXT:
        raise InvalidArgumentsError(
            f"{path} is longer than {LONGEST_TEXT // 1024} KB; name it in the prompt, and the model reads what it needs"
        )
    return [new_part(message, "text", text=f"<file path={str(path)!r}>\n{text}\n</file>", synthetic=True)]


def _mime(path: Path, data: bytes) -> str | None:
    for start, mime in ((b"\x89PNG", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif")):
        if data.startswith(start):
            return mime
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return "application/pdf" if data.startswith(b"%PDF-") else None
