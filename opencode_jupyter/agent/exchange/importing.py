"""Importing a session that OpenCode or this package exported: completely, or not at all."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...core.messages import Message, part_from_wire
from ...core.sessions import Session
from .session_data import EXTRA, NewIds, aborted_state, plain, read, without_extra
from .session_schema import SessionFileError, check_session

if TYPE_CHECKING:
    from ...core.host import ToolHost
    from ..sessions import AgentSession


Data = dict[str, Any]
MAX_BYTES = 256 * 1024 * 1024
"""Bytes of a file that is read: a session of 5,000 steps has some 50 MB, and reading takes ten times a file's size."""


@dataclass(frozen=True, slots=True)
class ImportedSession:
    """An imported session.

    Attributes:
        session: it.
        how: ``new``; ``same``: it was here already, unchanged, and was left alone; ``copy``: another session, a changed
            one or one of another folder has its ids, so it got new ones; ``replaced``: it replaced that one.
    """

    session: AgentSession
    how: Literal["new", "same", "copy", "replaced"]


async def import_(
    workspace: ToolHost, source: Mapping[str, Any] | str | os.PathLike[str], *, replace: bool = False
) -> AgentSession:
    """Import a session from a file or from data in OpenCode's export format.

    It belongs to the workspace's folder from then on, as with OpenCode's own import. See `import_session`.

    Args:
        workspace: where it goes.
        source: the file's path, or the data.
        replace: put it in place of a session with the same id whose content is another; without it, it becomes a copy.

    Raises:
        SessionFileError: it is no session, or not a whole one; the message names the place. Nothing was changed.
        ToolError: the session it would replace is running.
    """
    return (await import_session(workspace, source, replace=replace)).session


async def import_session(
    workspace: ToolHost, source: Mapping[str, Any] | str | os.PathLike[str], *, replace: bool = False
) -> ImportedSession:
    """`import_`, with how the session was imported."""
    data = await asyncio.to_thread(_load_and_check, source)
    info, messages = _as_local(data["info"], workspace), data["messages"]
    existing = await _read_existing(workspace, info["id"])
    how: Literal["new", "same", "copy", "replaced"] = "new"
    if existing is not None and _is_same(existing, (info, messages)):
        return ImportedSession(await workspace.sessions.open(info["id"]), "same")
    if await _has_foreign_ids(workspace, info["id"], messages) or (existing is not None and not replace):
        new_ids = NewIds(info["id"])
        messages = new_ids.messages(messages)
        info, how = new_ids.session(info), "copy"
    elif existing is not None:
        await _require_idle(workspace, info["id"])
        how = "replaced"
    return ImportedSession(await store_session(workspace, info, messages), how)


async def store_session(workspace: ToolHost, info: Data, messages: list[Data]) -> AgentSession:
    """Store a whole session in one transaction and add it to the workspace."""
    messages = workspace.masked(messages)
    session: AgentSession = workspace.sessions.session_type.from_wire(info)
    for message in messages:
        stored = Message(message["info"])
        for part in message["parts"]:
            wire = part_from_wire(part)
            if isinstance(wire, dict):
                wire.pop(EXTRA, None)
            stored.parts.append(wire)
        session.messages.append(stored)
    if workspace.store is not None:
        parts = [part for message in messages for part in message["parts"]]
        await workspace.store.write_session(session.to_wire(), [message["info"] for message in messages], parts)
    workspace.sessions.add(session)
    return session


# ---------------------------------------------------------------------- reading a file


def _load_and_check(source: Mapping[str, Any] | str | os.PathLike[str]) -> Data:
    name = "" if isinstance(source, Mapping) else f"{source}: "
    try:
        data = plain(source) if isinstance(source, Mapping) else _load(Path(source).expanduser())
        check_session(data)
        return {
            "info": data["info"],
            "messages": [_normalize_message(message, data["info"]) for message in data["messages"]],
        }
    except SessionFileError as error:
        raise SessionFileError(f"{name}{error} Nothing was imported.") from None
    except RecursionError:
        raise SessionFileError(f"{name}it is nested too deeply. Nothing was imported.") from None


def _load(path: Path) -> Any:
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise SessionFileError(f"it has {size / 1e6:,.0f} MB; a session's file may have {MAX_BYTES // 1024**2} MB.")
        raw = path.read_bytes()
    except IsADirectoryError:
        raise SessionFileError("it is a folder; name the file of a session.") from None
    except FileNotFoundError:
        raise SessionFileError("There is no file of this name.") from None
    except (OSError, ValueError) as error:
        raise SessionFileError(f"it can't be read: {getattr(error, 'strerror', None) or error}.") from None
    if not raw.strip(b"\0 \t\r\n"):
        raise SessionFileError("it is empty.")
    try:
        # Windows' shells write what a command prints as UTF-16; the decoder detects it.
        return json.loads(raw, parse_constant=lambda _: None)
    except json.JSONDecodeError as error:
        cut = error.pos >= len(error.doc.rstrip()) or "Unterminated" in error.msg
        problem = "the file ends there in the middle; it seems to be cut" if cut else error.msg
        raise SessionFileError(f"invalid JSON at line {error.lineno}, column {error.colno}: {problem}.") from None
    except UnicodeDecodeError as error:
        raise SessionFileError(f"not text at byte {error.start}: {error.reason}.") from None
    except ValueError as error:  # a number of thousands of digits
        raise SessionFileError(f"not JSON: {error}.") from None


def _normalize_message(message: Data, session: Data) -> Data:
    """A message whose parts all name their owners, and whose calls have all ended."""
    info = message["info"]
    by = "user" if info.get("providerID") == "opencode_jupyter" else "model"
    agent = info.get("agent") or info.get("mode") or ""
    updated = session["time"].get("updated") or session["time"]["created"]
    parts = []
    for part in message["parts"]:
        settled = {**part, "sessionID": info["sessionID"], "messageID": info["id"]}
        settled.pop(EXTRA, None)
        if part["type"] == "tool":
            if part["state"]["status"] in ("pending", "running"):
                settled["state"] = aborted_state(part["state"], info["time"]["created"], updated)
            settled[EXTRA] = {"agent": agent, "by": by}
        parts.append(settled)
    return {**message, "parts": parts}


# ---------------------------------------------------------------------- what is here already


def _as_local(info: Data, workspace: ToolHost) -> Data:
    """A session's info as one of this folder's."""
    folder, root = str(workspace.directory), str(workspace.worktree)
    local = {**info, "directory": folder}
    if "path" in info:
        inside = os.path.relpath(folder, root).replace(os.sep, "/")
        local["path"] = "" if inside == "." else inside
    return {**local, "time": {"updated": info["time"]["created"], **info["time"]}}


async def _read_existing(workspace: ToolHost, id: str) -> tuple[Data, list[Data]] | None:
    try:
        return await read(workspace, id)
    except KeyError:
        return None


def _is_same(existing: tuple[Data, list[Data]], imported: tuple[Data, list[Data]]) -> bool:
    # As a `Session` writes it, since that is what is kept.
    imported_info = plain(Session.from_wire(imported[0]).to_wire())
    existing_info = {k: v for k, v in existing[0].items() if not k.startswith("opencode_jupyter")}
    return existing_info == imported_info and without_extra(existing[1]) == without_extra(imported[1])


async def _has_foreign_ids(workspace: ToolHost, id: str, messages: list[Data]) -> bool:
    """Return whether ids of the messages or parts belong to another session here."""
    ids = {message["info"]["id"] for message in messages}
    ids |= {part["id"] for message in messages for part in message["parts"]}
    if workspace.store is not None:
        return bool(await workspace.store.ids_of_others(id, ids))
    others = [session for session in workspace.sessions.list() if session.id != id]
    return any(message.id in ids for session in others for message in session.messages)


async def _require_idle(workspace: ToolHost, id: str) -> None:
    session = await workspace.sessions.open(id)
    if session.run is not None:
        raise SessionFileError(
            f"{id} ({session.title}) is running; stop it before it is replaced. Nothing was imported."
        )
