"""``%sessions``: lists, opens, shows, forks, exports, imports and deletes stored conversations."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...agent.sessions import AgentSession
from ...core.call_state import failure_of
from ...core.errors import InvalidArgumentsError, ToolError
from ...core.store.queries import DIRECT
from ...core.store.rows import EXTRA
from ...core.store.store import Store
from ...text.visible import visible
from ..cards.labels import label_of_wire
from ..cards.wording import duration
from ..tables import Notice, Table
from .command_line import CommandLine, as_typed
from .commands import SESSIONS
from .history import local_datetime, state_of

if TYPE_CHECKING:
    from ...core.sessions import Session
    from ...workspace import Workspace
    from ..notebook import Notebook

LISTED = 20
"""Sessions that ``%sessions`` lists by default."""
COLUMNS = ("#", "title", "changed", "messages", "calls", "model", "cost", "child of", "note")
PART_COLUMNS = ("#", "who", "part", "what", "state", "seconds")
PART_CHARS = 2000
"""Characters of a part that a row holds."""
OPTIONAL = ("folder", "cost", "model", "calls")
"""Columns that the text form leaves out where they do not fit."""
_HEAD = 4096
"""Bytes of a file that are checked before it is replaced."""


def run(notebook: Notebook, line: str) -> Any:
    """Run a ``%sessions`` line.

    Raises:
        ToolError: there is no such subcommand, or it cannot be done.
    """
    return SessionLine(notebook, SESSIONS, line).run(_HANDLERS)


class SessionLine(CommandLine):
    """One line, and the sessions it names."""

    @property
    def store(self) -> Store:
        """The store of sessions.

        Raises:
            ToolError: the workspace has no store.
        """
        if self.workspace.store is None:
            raise ToolError("This workspace keeps no sessions (it was opened without a store).")
        return self.workspace.store

    def rows(self, *, everywhere: bool, limit: int) -> list[dict[str, Any]]:
        """The sessions of this folder, or of all; rows as `Store.list_sessions` gives them."""
        directory = None if everywhere else str(self.workspace.directory)
        return self.wait(self.store.list_sessions(directory, limit))

    def last(self, question: str) -> str:
        """The last word; see `next`."""
        if not self.rest:
            raise InvalidArgumentsError(f"{question} {self.usage}")
        return as_typed(self.rest.pop())

    def current_id(self) -> str | None:
        """The id of the session that the next ``%%agent`` continues."""
        session = self.notebook.agent_session
        return None if session is None else session.id

    def note(self, info: dict[str, Any]) -> str:
        """Notes about a session in a list."""
        notes = []
        if info["id"] == self.current_id():
            notes.append("next %%agent")
        if any(session.id == info["id"] and session.run is not None for session in self.workspace.sessions.list()):
            notes.append("running")
        if info.get("title") == DIRECT and not info.get("model"):
            notes.append("calls by hand")
        if info.get("revert"):
            notes.append("partly undone")
        return ", ".join(notes)

    def session(self, *, required: bool = False) -> AgentSession:
        """The session that the first word names, which is removed; without a word, the one ``%%agent`` continues.

        Raises:
            InvalidArgumentsError: there is none, or the word means several.
        """
        if self.rest and not (as_typed(self.rest[0]).startswith("-") and not self.rest[0].quoted):
            return self.named_session(as_typed(self.rest.pop(0)))
        if required:
            raise InvalidArgumentsError(f"Which session? {self.usage}")
        current = self.current_id()
        if current is None:
            raise InvalidArgumentsError(f"No session was started in this notebook; name one. {self.usage}")
        return self._open(current)

    def named_session(self, name: str) -> AgentSession:
        """The session of a number, title or id.

        Raises:
            InvalidArgumentsError: there is none, or the name means several.
        """
        number = name.removeprefix("#")
        if number.isascii() and number.isdigit() and len(number) < 6:
            listed = self.notebook.agent.listed_sessions
            if listed is None:  # the list that would be shown now
                listed = [session["info"]["id"] for session in self.rows(everywhere=False, limit=100)]
            if 0 < int(number) <= len(listed):
                return self._open(listed[int(number) - 1])
        return self.wait(find_session(self.workspace, name))

    def _open(self, id: str) -> AgentSession:
        try:
            return self.wait(self.workspace.sessions.open(id))
        except KeyError:
            raise InvalidArgumentsError(f"The session {id} was deleted; %sessions lists the sessions.") from None


async def find_session(workspace: Workspace, name: str) -> AgentSession:
    """The session with this title or id, or whose id begins so.

    Raises:
        InvalidArgumentsError: there is none, or there are several.
    """
    folder = str(workspace.directory)  # the kernel may have worked in others before
    titles = {
        session.id: session.title
        for session in workspace.sessions.list()
        if name == session.id or (name == session.title and session.directory == folder)
    }
    if workspace.store is not None and name not in titles:
        stored = await workspace.store.find_sessions(name)
        of_folder = [info for info in stored if info.get("directory") == folder]
        for info in of_folder or ([] if titles else stored):
            titles.setdefault(str(info["id"]), str(info.get("title") or ""))
    matches = [id for id, title in titles.items() if name in (id, title)] or list(titles)
    if len(matches) == 1:
        return await workspace.sessions.open(matches[0])
    if not matches:
        raise InvalidArgumentsError(f"There is no session {name!r}; %sessions lists the sessions.")
    several = ", ".join(f"{id} ({titles[id]})" for id in matches[:5])
    raise InvalidArgumentsError(f"{name!r} matches several sessions: {several}. Use more of the id.")


def _display_rows(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with short times and numbers."""
    numbers = {row["id"]: f"#{row['#']}" for row in records}
    return [
        {
            **row,
            "#": numbers[row["id"]],
            "changed": short_time(row["changed"]),
            "child of": row["child of"] and numbers.get(row["child of"], "another session"),
        }
        for row in records
    ]


def short_time(moment: datetime | None, now: datetime | None = None) -> str:
    """A local time as people write it: "today 11:20", "3 Nov", "3 Nov 2025"."""
    if moment is None:
        return ""
    now = now or datetime.now()  # noqa: DTZ005 - the user's own
    day = f"{moment.day} {moment:%b}"
    if moment.date() == now.date():
        return f"today {moment:%H:%M}"
    return day if moment.year == now.year else f"{day} {moment.year}"


def _list(line: SessionLine) -> Table:
    everywhere, limit = line.flag("--all"), line.count(LISTED)
    line.end()
    sessions = line.rows(everywhere=everywhere, limit=limit + 1)
    rows = [_row(line, number, session) for number, session in enumerate(sessions[:limit], 1)]
    line.notebook.agent.listed_sessions = [row["id"] for row in rows]
    display = _display_rows(rows)
    columns = [c for c in (*COLUMNS, *(["folder"] if everywhere else [])) if any(row[c] for row in display)]
    more = [f"There are more: %sessions list -n {limit * 5}"] if len(sessions) > limit else []
    problem = line.store.problem
    in_memory = [f"The history is kept in memory only: {problem}"] if problem else []
    empty = "No session in this folder yet. %%agent starts one; %sessions list --all shows those of other folders."
    notes = [*more, *in_memory, SESSIONS.pointer]
    return Table(rows, columns, notes=notes, empty=empty, display=display, optional=OPTIONAL)


def _row(line: SessionLine, number: int, session: dict[str, Any]) -> dict[str, Any]:
    info = session["info"]
    model = info.get("model") or {}
    return {
        "#": number,
        "title": info.get("title") or "",
        "changed": _local_datetime((info.get("time") or {}).get("updated")),
        "messages": session["messages"],
        "calls": session["calls"],
        "model": f"{model.get('providerID')}:{model.get('id')}" if model else "",
        "cost": max(session["cost"], info.get("cost") or 0) or None,
        "child of": info.get("parentID") or "",
        "note": line.note(info),
        "folder": info.get("directory") or "",
        "id": info["id"],
    }


def _open(line: SessionLine) -> Notice:
    session = line.session(required=True)
    line.end()
    line.notebook.agent_session = session
    count = len(session.messages)
    return Notice(f"{session.title} ({session.id}): {count} messages. The next %%agent continues it.")


def _show(line: SessionLine) -> Table:
    limit, session = line.count(100), line.session()
    line.end()
    rows = line.wait(_part_rows(line.workspace, session))
    notes = []
    if len(rows) > limit:
        notes = [f"The last {limit} of {len(rows)} parts: %sessions show {session.id} -n {len(rows)}"]
    rows = rows[-limit:]
    display = _readable_parts(rows)
    return Table(rows, PART_COLUMNS, title=session.title, notes=notes, empty="It has no messages.", display=display)


def _readable_parts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows as people read them: without the beginnings of steps, which hold only the hash of a snapshot."""
    return [
        {**row, "seconds": "" if row["seconds"] is None else duration(row["seconds"] * 1000)}
        for row in rows
        if row["part"] != "step-start"
    ]


async def _part_rows(workspace: Workspace, session: Session) -> list[dict[str, Any]]:
    """The parts of a session's messages; ``#`` counts the messages from 1. A message without parts has a row, too."""
    from ...agent.exchange.session_data import read  # here: exports and this only

    session_info, messages = await read(workspace, session)
    hidden_from = (session_info.get("revert") or {}).get("messageID")
    rows, hidden = [], False
    for number, message in enumerate(messages, 1):
        info = message["info"]
        hidden = hidden or info["id"] == hidden_from
        author = "user" if info.get("role") == "user" else str(info.get("agent") or info.get("mode") or "assistant")
        head = {"#": number, "who": f"{author} (undone)" if hidden else author}
        rows += [{**head, **_part_row(part)} for part in message["parts"]]
        error = info.get("error")
        if error or not message["parts"]:
            error_text = (error.get("data") or {}).get("message") or error.get("name") if error else ""
            rows.append({**head, "part": "error" if error else "", "what": error_text, "state": "", "seconds": None})
    return rows


def _part_row(part: dict[str, Any]) -> dict[str, Any]:
    kind, state = str(part.get("type")), part.get("state") or {}
    times = (state if kind == "tool" else part).get("time") or {}
    start, end = times.get("start"), times.get("end")
    what = visible(_part_text(kind, part, state)[:PART_CHARS])
    seconds = (end - start) / 1000 if isinstance(start, int) and isinstance(end, int) else None
    row = {"part": kind, "what": what, "state": "", "seconds": seconds}
    return row | {"part": f"tool {part.get('tool')}", "state": _part_state(part, state)} if kind == "tool" else row


def _part_state(part: dict[str, Any], state: dict[str, Any]) -> str:
    outcome = str((part.get(EXTRA) or {}).get("outcome") or "")
    failure = failure_of(str(part.get("tool")), state.get("metadata"))
    return state_of(str(state.get("status", "")), outcome, failure)


def _part_text(kind: str, part: dict[str, Any], state: dict[str, Any]) -> str:
    if kind == "tool":
        label = label_of_wire(part)
        files = "".join(f" [{file.get('mime')}]" for file in state.get("attachments") or ())
        if state.get("status") == "error":
            return f"{label}: {state.get('error')}"
        return f"{label}: {state.get('output') or ''}{files}"
    if kind in ("text", "reasoning"):
        return str(part.get("text") or "")
    if kind == "file":
        return f"{part.get('filename') or ''} [{part.get('mime')}]"
    if kind == "patch":
        return ", ".join(map(str, part.get("files") or ()))
    if kind == "step-finish":
        tokens = part.get("tokens") or {}
        return f"{part.get('reason')}: {tokens.get('input', 0)} tokens in, {tokens.get('output', 0)} out"
    omitted = ("id", "sessionID", "messageID", "type", EXTRA)
    return " ".join(f"{key}={value}" for key, value in part.items() if key not in omitted)


def _fork(line: SessionLine) -> Notice:
    from ...agent.forking import fork

    at, session = line.option("--at"), line.session()
    line.end()
    before: str | int | None = at
    if at is not None and at.isascii() and at.isdigit():
        before = int(at) - 1
        if before < 0:
            raise InvalidArgumentsError("--at counts from 1, as %sessions show does.")
    copy = line.wait(fork(line.workspace, session, before))
    line.notebook.agent_session = copy
    count = len(copy.messages)
    return Notice(f"{copy.title} ({copy.id}): {count} messages. The next %%agent continues it; no file was changed.")


def _undo(line: SessionLine) -> Notice:
    from ...agent.revert import revert, unrevert

    redo, force, session = line.flag("--redo"), line.flag("--force"), line.session()
    line.end()
    workspace = line.workspace
    work = unrevert(workspace, session, force=force) if redo else revert(workspace, session, force=force)
    summary = line.wait(work)
    hint = "" if redo else "\n%sessions undo --redo restores it, until the next %%agent."
    return Notice(f"{session.title}: {summary}{hint}")


def _rename(line: SessionLine) -> Notice:
    title = line.last("What title?").strip()
    session = line.session()
    line.end()
    if not title:
        raise InvalidArgumentsError(f"A title needs a letter. {line.usage}")
    before, session.title = session.title, title
    line.notebook.on_engine(line.workspace.sessions.save, session)
    return Notice(f"{before} is now called {title} ({session.id}).")


def _delete(line: SessionLine) -> Notice:
    is_confirmed = line.flag("--yes")
    sessions = []
    while line.rest:
        sessions.append(line.session(required=True))
    unique = list({session.id: session for session in sessions}.values())
    if not unique:
        raise InvalidArgumentsError(f"Which sessions? {line.usage}")
    if len(unique) > 1 and not is_confirmed:
        names = ", ".join(session.title for session in unique)
        raise ToolError(f"That deletes {len(unique)} sessions ({names}) for good. Add --yes to do it.")
    children = 0
    for session in unique:
        children += line.wait(_delete_with_children(line, session.id))
        if line.current_id() == session.id:
            line.notebook.agent_session = None
    also = f", and {children} that {'it' if len(unique) == 1 else 'they'} started" if children else ""
    return Notice(f"Deleted: {', '.join(session.title.rstrip('.') for session in unique)}{also}. No file was changed.")


async def _delete_with_children(line: SessionLine, id: str) -> int:
    """Delete a session; returns the number of its children, which are deleted too."""
    to_visit, children = [id], 0
    while to_visit:
        child_ids = [info["id"] for info in await line.store.children(to_visit.pop())]
        children += len(child_ids)
        to_visit += child_ids
    try:
        await line.workspace.sessions.delete(id)
    except KeyError:
        return 0  # it went along with another one
    return children


def _local_datetime(milliseconds: Any) -> datetime | None:
    if not isinstance(milliseconds, (int, float)):
        return None
    try:
        return local_datetime(milliseconds)
    except (ValueError, OverflowError, OSError):
        return None  # a time of another program's, after the year 9999


def _export(line: SessionLine) -> Notice:
    from ...agent import exchange

    jsonl, otel = line.flag("--jsonl"), line.flag("--otel")
    content, force = line.flag("--content"), line.flag("--force")
    if jsonl and otel:
        raise InvalidArgumentsError(f"--jsonl or --otel, not both. {line.usage}")
    if content and not otel:
        raise InvalidArgumentsError("--content goes with --otel: texts and calls, not only times.")
    path = _path(line, line.last("Name the file to export to:"))
    session = line.session()
    line.end()
    _check_replaceable(path, session, force=force)
    workspace = line.workspace
    if jsonl:
        line.wait(exchange.export_jsonl(workspace, session, path))
        return Notice(f"Exported the events of {session.title} to {path}, one JSON object per line.")
    if otel:
        line.wait(exchange.export_otlp(workspace, session, path, content=content))
        return Notice(f"Exported the spans of {session.title} to {path} as OTLP JSON, for OpenTelemetry collectors.")
    line.wait(exchange.export_file(workspace, session, path))
    return Notice(f"Exported {session.title} to {path}. In OpenCode: opencode import {path.name}")


def _import(line: SessionLine) -> Notice:
    from ...agent import exchange

    replace = line.flag("--replace")
    path = _path(line, line.last("Name the file to import:"))
    line.end()
    imported = line.wait(exchange.import_session(line.workspace, path, replace=replace))
    session = imported.session
    if imported.how == "replaced" and line.current_id() == session.id:
        line.notebook.agent_session = session
    result_text = {
        "new": "was imported",
        "same": "was already imported, and is unchanged",
        "copy": "was imported as a copy with new ids, since a session with its ids exists",
        "replaced": "was imported in place of the one with its id",
    }[imported.how]
    count = len(session.messages)
    return Notice(f"{session.title} ({session.id}) {result_text}: {count} messages. %sessions open {session.id}")


def _path(line: SessionLine, text: str) -> Path:
    if not text.strip():
        raise InvalidArgumentsError("Give the name of a file.")
    return line.workspace.directory / Path(text).expanduser()


def _check_replaceable(path: Path, session: Session, *, force: bool) -> None:
    """Refuse to replace an existing file, unless it is an earlier export of the same session or `force` is set."""
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


_HANDLERS = {
    "list": _list,
    "open": _open,
    "show": _show,
    "fork": _fork,
    "undo": _undo,
    "export": _export,
    "import": _import,
    "rename": _rename,
    "delete": _delete,
}
