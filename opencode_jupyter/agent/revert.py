"""Undo messages of a session and their changes of files; redo both while no prompt has come after.

As in OpenCode: the messages stay, hidden by the mark ``revert`` in the session's info, until the next prompt
removes them (`cleanup`). Files are restored from the snapshots that the steps' ``patch`` parts name. Unlike there, a
file that somebody else has changed since is reported and kept, and no file is touched that the messages did not change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..core.call_state import Completed, ToolPart
from ..core.errors import ToolError
from ..core.messages import Message, part_id
from ..core.sessions import Session
from ..text.diff import shorten
from .conversation import Conversation
from .snapshots import Snapshots
from .snapshots.restore import RestoredFiles, StepChange, restore_files

if TYPE_CHECKING:
    from ..core.host import ToolHost

KEY = "revert"
"""Of a session's info: ``{"messageID", "partID"?, "snapshot"?, "diff"?}``, as OpenCode has it."""
_WITHOUT_GIT = "revert:"
"""Prefix of the call id under which files restored without git are kept."""


@dataclass
class Reverted:
    """The result of `revert` or `unrevert`.

    Attributes:
        messages: how many messages are hidden now, or are shown again.
        files: those that were restored, absolute.
        kept: those that were not, each with the reason.
        diff: the change of the files, as git writes it.
        note: a remark for a person; "" for none.
    """

    messages: int = 0
    files: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    diff: str = ""
    note: str = ""

    def __str__(self) -> str:
        messages, files = self.messages, len(self.files)
        lines = [f"{messages} message{'s' * (messages != 1)}, {files} file{'s' * (files != 1)} put back"]
        lines += [f"kept: {file}: {why}" for file, why in self.kept.items()]
        return "\n".join([*lines, self.note] if self.note else lines)


@dataclass(frozen=True, slots=True)
class _Point:
    """The first thing that is hidden: a message, or a part of it."""

    message: int
    part: int = 0


async def revert(
    workspace: ToolHost,
    session: Session,
    to: str | int | Message | None = None,
    *,
    force: bool = False,
    files: bool = True,
) -> Reverted:
    """Hide a message and all that comes after it, and restore the files that these changed.

    Args:
        workspace: whose.
        session: whose messages.
        to: the first message that goes: itself, its id or its place; or a part's id, then what comes before it in its
            message stays. The first answer to a message of the user's takes that along. None: the last message of the
            user's after which files were changed.
        force: restore also files that somebody else has changed since.
        files: False reverts the messages alone.

    Raises:
        ToolError: there is no such message, the session is running, or the files can't be restored; then nothing has
            happened.
    """
    _require_idle(session)
    if to is None:
        to = last_change(workspace, session)
        if to is None:
            raise ToolError("No message of this session changed a file.")
    point = _find_point(session, to)
    before = session.extra.get(KEY)
    old = _hidden_from(session)
    mark: dict[str, Any] = {"messageID": session.messages[point.message].id}
    if point.part:
        mark["partID"] = part_id(session.messages[point.message].parts[point.part])
    result = Reverted(messages=len(session.messages) - point.message - bool(point.part))
    if files:
        snapshot = (before or {}).get("snapshot")
        moved = await _restore(workspace, session, old, point, snapshot, force, result)
        if moved is not None:
            mark |= {"snapshot": moved.snapshot, "diff": shorten(moved.diff)}
    elif before:
        mark |= {key: before[key] for key in ("snapshot", "diff") if key in before}
    session.extra = {**session.extra, KEY: mark}
    workspace.sessions.save(session)
    return result


async def unrevert(workspace: ToolHost, session: Session, *, force: bool = False) -> Reverted:
    """Show again what `revert` hid, and bring the files back that it replaced.

    Raises:
        ToolError: nothing is hidden, the session is running, or the files can't be restored; then nothing has
            happened.
    """
    _require_idle(session)
    mark = session.extra.get(KEY)
    old = _hidden_from(session)
    if mark is None or old is None:
        raise ToolError("Nothing was reverted in this session, or a prompt has been sent since.")
    result = Reverted(messages=len(session.messages) - old.message - bool(old.part))
    await _restore(workspace, session, old, None, mark.get("snapshot"), force, result)
    _unmark(workspace, session)
    return result


async def cleanup(workspace: ToolHost, session: Session) -> list[str]:
    """Remove the hidden messages for good: a new prompt continues from before them.

    Returns:
        The ids of what was removed, messages and parts.
    """
    if KEY not in session.extra:
        return []
    point = _hidden_from(session)
    removed: list[str] = []
    if point is not None:
        conversation = Conversation(workspace, session)
        first = session.messages[point.message]
        if point.part:
            parts = [part_id(part) for part in first.parts[point.part :]]
            conversation.drop(first, parts)
            removed += parts
        messages = [message.id for message in session.messages[point.message + bool(point.part) :]]
        conversation.remove(messages)
        removed += messages
        if session.message_id in messages:
            session.message_id = ""
        session.recent.clear()  # calls that were reverted are no loop
    _unmark(workspace, session)
    return removed


def visible(session: Session) -> list[Message]:
    """The messages that are not hidden; the one that is cut in the middle is given with the parts that stay."""
    point = _hidden_from(session)
    if point is None:
        return list(session.messages)
    shown = session.messages[: point.message]
    if point.part:
        cut = session.messages[point.message]
        shown.append(Message(cut.info, cut.parts[: point.part]))
    return shown


def last_change(workspace: ToolHost, session: Session) -> Message | None:
    """The last visible message of the user's after which files were changed; None if there is none."""
    request: Message | None = None
    changing: Message | None = None
    for message in visible(session):
        if message.role == "user":
            request = message
        elif request is not None and _changed_files(workspace, message):
            changing = request
    return changing


def _changed_files(workspace: ToolHost, message: Message) -> bool:
    """Return whether files were changed; where there are no snapshots, the calls of tools that write decide."""
    completed = (call.tool for call in message.calls if isinstance(call.state, Completed))
    tools = map(workspace.registry.get, completed)
    writes = any(tool and tool.builtin and tool.manifest.effect == "writes" for tool in tools)
    return writes or any(message.of_type("patch"))


# ---------------------------------------------------------------------- points


def _require_idle(session: Session) -> None:
    if session.run is not None:
        raise ToolError(f"the session {session.title!r} is running; stop it first, or wait for it")


def _find_point(session: Session, to: str | int | Message) -> _Point:
    messages = session.messages
    if isinstance(to, int):
        if not -len(messages) <= to < len(messages):
            raise ToolError(f"there is no message {to}; the session has {len(messages)}")
        return _whole_message(messages, to % len(messages))
    id = to.id if isinstance(to, Message) else to
    for at, message in enumerate(messages):
        if message.id == id:
            return _whole_message(messages, at)
        for index, part in enumerate(message.parts):
            if part_id(part) == id:
                stays = message.parts[:index]
                if message.role == "user" or not any(_is_text_or_call(part) for part in stays):
                    return _whole_message(messages, at)
                return _Point(at, index)
    raise ToolError(f"there is no message or part {id} in the session {session.title!r}")


def _whole_message(messages: list[Message], at: int) -> _Point:
    """A message; a question whose first answer goes is not left alone."""
    if at and messages[at].role == "assistant" and messages[at - 1].role == "user":
        at -= 1
    return _Point(at)


def _is_text_or_call(part: Any) -> bool:
    return isinstance(part, ToolPart) or part.get("type") == "text"


def _hidden_from(session: Session) -> _Point | None:
    """The start of the hidden messages; None if there are none, or the mark names a missing one."""
    mark = session.extra.get(KEY)
    if not isinstance(mark, dict):
        return None
    for at, message in enumerate(session.messages):
        if message.id == mark.get("messageID"):
            parts = [part_id(part) for part in message.parts]
            return _Point(at, parts.index(mark["partID"]) if mark.get("partID") in parts else 0)
    return None


def _unmark(workspace: ToolHost, session: Session) -> None:
    session.extra = {key: value for key, value in session.extra.items() if key != KEY}
    workspace.sessions.save(session)


# ---------------------------------------------------------------------- files


def _parts_from(session: Session, point: _Point | None) -> Iterator[tuple[Message, int]]:
    """The parts from a point on: message and place."""
    if point is not None:
        for at in range(point.message, len(session.messages)):
            message = session.messages[at]
            for index in range(point.part if at == point.message else 0, len(message.parts)):
                yield message, index


def _changes(session: Session, point: _Point | None) -> list[StepChange]:
    """The changes of files by the steps from a point on, oldest first."""
    changes = []
    for message, index in _parts_from(session, point):
        part = message.parts[index]
        if isinstance(part, ToolPart) or part.get("type") != "patch" or not part.get("hash"):
            continue
        ends = [end for end in message.of_type("step-finish") if end.get("snapshot")]
        changes.append(
            StepChange(str(part["hash"]), tuple(part.get("files") or ()), ends[-1]["snapshot"] if ends else None)
        )
    return changes


async def _restore(
    workspace: ToolHost,
    session: Session,
    old: _Point | None,
    new: _Point | None,
    snapshot: str | None,
    force: bool,
    result: Reverted,
) -> RestoredFiles | None:
    """Make the files what they were at `new` (None: the end), where they are what they were at `old`."""
    hidden, hide = _changes(session, old), _changes(session, new)
    if not hidden and not hide:
        _restore_without_git(workspace, session, old, new, force, result)
        return None
    snapshots = workspace.service(Snapshots)
    problem = snapshots.why_not()
    if problem is not None:
        result.note = f"The files were not restored: {problem}."
        return None
    try:
        moved = await snapshots.run_exclusive(lambda shadow: restore_files(shadow, hidden, hide, snapshot, force))
    except ToolError as error:
        raise ToolError(f"{error} With files=False only the messages are reverted.") from error
    result.files, result.kept, result.diff = moved.files, moved.kept, moved.diff
    return moved


def _restore_without_git(
    workspace: ToolHost,
    session: Session,
    old: _Point | None,
    new: _Point | None,
    force: bool,
    result: Reverted,
) -> None:
    """Without git: what tools that write files kept in this process (`core.file_changes`)."""
    changes = workspace.changes
    if new is None:
        calls, name = {_WITHOUT_GIT + session.id}, None
    else:
        calls, name = set(_call_ids(workspace, session, new)), _WITHOUT_GIT + session.id
    taken, kept = changes.revert_calls(calls, force=force, kept_as=name, session_id=session.id)
    result.files = list(dict.fromkeys(str(change.path) for change in taken))
    result.kept = {str(path): why for path, why in kept.items()}
    problem = workspace.service(Snapshots).why_not()
    wrote = any(_changed_files(workspace, message) for message in session.messages[(new or old or _Point(0)).message :])
    if problem is not None and wrote:
        result.note = f"Only changes that tools made in this kernel can be undone here: {problem}."


def _call_ids(workspace: ToolHost, session: Session, point: _Point) -> Iterator[str]:
    """The ids of the calls from a point on, those of child sessions among them."""
    sessions_by_id = {other.id: other for other in workspace.sessions.list()}
    for message, index in _parts_from(session, point):
        part = message.parts[index]
        if not isinstance(part, ToolPart):
            continue
        yield part.call_id
        metadata = getattr(part.state, "metadata", None) or {}
        child = sessions_by_id.get(str(metadata.get("sessionId")))
        if child is not None and child.messages:
            yield from _call_ids(workspace, child, _Point(0))
