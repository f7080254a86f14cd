"""``%sessions export`` and ``%sessions import``."""

from __future__ import annotations

from pathlib import Path

from ...core.errors import InvalidArgumentsError, ToolError
from ...core.sessions import Session
from ..tables import Message
from .sessions_request import SessionRequest

EXPORT = "%sessions export [NAME] FILE [--jsonl | --otel] [--content] [--force]"
IMPORT = "%sessions import FILE [--replace]"
_HEAD = 4096
"""Bytes of a file that are looked at before it is replaced."""


def export(request: SessionRequest) -> Message:
    """``%sessions export``."""
    from ...agent import exchange

    jsonl, otel = request.flag("--jsonl"), request.flag("--otel")
    content, force = request.flag("--content"), request.flag("--force")
    if jsonl and otel:
        raise InvalidArgumentsError(f"--jsonl or --otel, not both. {EXPORT}")
    if content and not otel:
        raise InvalidArgumentsError("--content goes with --otel: texts and calls, not only times.")
    if not request.rest:
        raise InvalidArgumentsError(f"Name the file to export to: {EXPORT}")
    path = _path(request.last(), request)
    session = request.session(EXPORT)
    request.end(EXPORT)
    _replaceable(path, session, force=force)
    workspace = request.workspace
    if jsonl:
        request.wait(exchange.export_jsonl(workspace, session, path))
        return Message(f"Exported the events of {session.title} to {path}, one JSON object per line.")
    if otel:
        request.wait(exchange.export_otlp(workspace, session, path, content=content))
        return Message(f"Exported the spans of {session.title} to {path} as OTLP JSON, for OpenTelemetry collectors.")
    request.wait(exchange.export_file(workspace, session, path))
    return Message(f"Exported {session.title} to {path}. In OpenCode: opencode import {path.name}")


def import_(request: SessionRequest) -> Message:
    """``%sessions import``."""
    from ...agent import exchange

    replace = request.flag("--replace")
    if not request.rest:
        raise InvalidArgumentsError(f"Name the file to import: {IMPORT}")
    path = _path(request.last(), request)
    request.end(IMPORT)
    taken = request.wait(exchange.take_in(request.workspace, path, replace=replace))
    session = taken.session
    if taken.how == "replaced" and request.current_id() == session.id:
        request.notebook.agent_session = session
    said = {
        "new": "was imported",
        "same": "was already imported, and is unchanged",
        "copy": "was imported as a copy with new ids, since a session with its ids exists",
        "replaced": "was imported in place of the one with its id",
    }[taken.how]
    count = len(session.messages)
    return Message(f"{session.title} ({session.id}) {said}: {count} messages. %sessions open {session.id}")


def _path(text: str, request: SessionRequest) -> Path:
    if not text.strip():
        raise InvalidArgumentsError("Give the name of a file.")
    return request.workspace.directory / Path(text).expanduser()


def _replaceable(path: Path, session: Session, *, force: bool) -> None:
    """A file that is there is only replaced if it is an earlier export of the same session, or if told."""
    if force or not path.exists():
        return
    if path.is_dir():
        raise ToolError(f"{path} is a folder; give the name of a file.")
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEAD)
    except OSError as error:
        raise ToolError(f"{path} exists and cannot be read: {error.strerror or error}.") from None
    if session.id.encode() not in head:
        raise ToolError(f"{path} already exists and is not an export of this session. Add --force to replace it.")
