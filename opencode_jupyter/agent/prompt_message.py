"""The user's message of a prompt: its text, the agents and files that it names, reminders for the model."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import InvalidArgumentsError
from ..core.messages import Message, new_part, user_message
from ..core.result import Attachment
from .prompt.reminders import reminders
from .tools.plan import plan_file, plan_path

if TYPE_CHECKING:
    from ..core.host import ToolHost
    from .run import Run

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
    """Where the session's plan is, if there is one, or if it is to be made."""
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
