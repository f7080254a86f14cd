"""``%sessions``: the conversations that are kept; opening, forking, exporting, importing, deleting them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ...core.errors import InvalidArgumentsError, ToolError
from ..notebook import working_folder
from ..tables import Message, Table, cell
from .sessions_request import SessionRequest
from .tools import unknown
from .usage import pointer
from .words import words

if TYPE_CHECKING:
    from ..notebook import Notebook

LISTED = 20
"""Sessions that ``%sessions`` lists by default."""
COLUMNS = ("#", "title", "changed", "messages", "calls", "model", "cost", "child of", "note")
DROPPED_FIRST = ("folder", "cost", "model", "calls")
"""Columns that the text form leaves out where they do not fit."""
TEXT_COLUMNS = 80
TITLE_CHARS = 24
"""What the text form keeps of a title at least."""
COMMANDS = ("list", "open", "show", "fork", "undo", "export", "import", "rename", "delete")


class SessionTable(Table):
    """Sessions with short times and numbers; full ids and times are in `records`. The text form fits 80 columns."""

    def __repr__(self) -> str:
        rows, columns = self._shown()
        if not rows:
            return super().__repr__()
        for name in (*DROPPED_FIRST, ""):
            width = sum(2 + max(len(cell(row[c])) for row in [*rows, {c: c}]) for c in columns if c != "title")
            if width + TITLE_CHARS <= TEXT_COLUMNS or not name:
                break
            columns = [c for c in columns if c != name]
        room = max(TITLE_CHARS, TEXT_COLUMNS - width)
        rows = [{**row, "title": cell(row["title"], room)} for row in rows]
        return repr(Table(rows, columns, notes=self.notes))

    def _repr_html_(self) -> str:
        rows, columns = self._shown()
        return Table(rows, columns, notes=self.notes, empty=self.empty)._repr_html_()

    def _shown(self) -> tuple[list[dict[str, Any]], list[str]]:
        """The rows as text for a person, and the columns that are not empty."""
        numbers = {row["id"]: f"#{row['#']}" for row in self.records}
        rows = []
        for row in self.records:
            parent = row["child of"] and numbers.get(row["child of"], "another session")
            rows.append({**row, "#": f"#{row['#']}", "changed": short_time(row["changed"]), "child of": parent})
        columns = [c for c in self.columns if any(row[c] not in ("", None) for row in rows)]
        return rows, columns


def short_time(moment: datetime | None, now: datetime | None = None) -> str:
    """A local time as a person says it: "today 11:20", "3 Nov", "3 Nov 2025"."""
    if moment is None:
        return ""
    now = now or datetime.now()  # noqa: DTZ005 - the user's own
    day = f"{moment.day} {moment:%b}"
    if moment.date() == now.date():
        return f"today {moment:%H:%M}"
    return day if moment.year == now.year else f"{day} {moment.year}"


def run(notebook: Notebook, line: str) -> Any:
    """What a ``%sessions`` line asks for.

    Raises:
        ToolError: there is no such sub-command, or it can't be done.
    """
    found = words(line)
    here = working_folder()
    if here != notebook.workspace.directory:
        notebook.on_engine(notebook.workspace.change_directory, here)
    command = found[0].text if found else "list"
    if command.startswith("-"):
        command, found = "list", [found[0], *found]
    if command not in COMMANDS:
        raise unknown("%sessions", command, COMMANDS)
    return _commands()[command](SessionRequest(notebook, line, found[1:]))


def _commands() -> dict[str, Callable[[SessionRequest], Any]]:
    from . import sessions_files

    return {
        "list": listed,
        "open": open_,
        "show": show,
        "fork": fork,
        "undo": undo,
        "export": sessions_files.export,
        "import": sessions_files.import_,
        "rename": rename,
        "delete": delete,
    }


def listed(request: SessionRequest) -> Table:
    """``%sessions [list] [-n N] [--all]``."""
    usage = "%sessions list [-n 20] [--all]"
    everywhere, limit = request.flag("--all"), request.count("-n", LISTED)
    request.end(usage)
    found = request.rows(everywhere=everywhere, limit=limit + 1)
    rows = [_row(request, number, one) for number, one in enumerate(found[:limit], 1)]
    request.numbered([row["id"] for row in rows])
    columns = (*COLUMNS, "folder") if everywhere else COLUMNS
    more = [f"There are more: %sessions list -n {limit * 5}"] if len(found) > limit else []
    problem = request.store.problem
    kept = [f"The history is kept in memory only: {problem}"] if problem else []
    empty = "No session in this folder yet. %%agent starts one; %sessions list --all shows those of other folders."
    return SessionTable(rows, columns, notes=[*more, *kept, pointer("%sessions")], empty=empty)


def _row(request: SessionRequest, number: int, one: dict[str, Any]) -> dict[str, Any]:
    info = one["info"]
    model = info.get("model") or {}
    return {
        "#": number,
        "title": info.get("title") or "",
        "changed": _moment((info.get("time") or {}).get("updated")),
        "messages": one["messages"],
        "calls": one["calls"],
        "model": f"{model.get('providerID')}:{model.get('id')}" if model else "",
        "cost": max(one["cost"], info.get("cost") or 0) or None,
        "child of": info.get("parentID") or "",
        "note": request.note(info),
        "folder": info.get("directory") or "",
        "id": info["id"],
    }


def open_(request: SessionRequest) -> Message:
    """``%sessions open NAME``."""
    usage = "%sessions open NAME makes it the session that the next %%agent continues."
    session = request.session(usage, required=True)
    request.end(usage)
    request.notebook.agent_session = session
    count = len(session.messages)
    return Message(f"{session.title} ({session.id}): {count} messages. The next %%agent continues it.")


def show(request: SessionRequest) -> Table:
    """``%sessions show [NAME] [-n N]``."""
    from .session_rows import COLUMNS as SHOWN
    from .session_rows import display_rows, rows_of

    usage = "%sessions show [NAME] [-n 100]"
    limit = request.count("-n", 100)
    session = request.session(usage)
    request.end(usage)
    rows = request.wait(rows_of(request.workspace, session))
    notes = []
    if len(rows) > limit:
        notes = [f"The last {limit} of {len(rows)} parts: %sessions show {session.id} -n {len(rows)}"]
    rows = rows[-limit:]
    display = display_rows(rows)
    return Table(rows, SHOWN, title=session.title, notes=notes, empty="It has no messages.", display=display)


def fork(request: SessionRequest) -> Message:
    """``%sessions fork [NAME] [--at N]``."""
    from ...agent.forking import fork as forked

    usage = "%sessions fork [NAME] [--at N] makes a new session with the messages before message N."
    at = request.option("--at")
    session = request.session(usage)
    request.end(usage)
    place: str | int | None = at
    if at is not None and at.isascii() and at.isdigit():
        place = int(at) - 1
        if place < 0:
            raise InvalidArgumentsError("--at counts from 1, as %sessions show does.")
    made = request.wait(forked(request.workspace, session, place))
    request.notebook.agent_session = made
    count = len(made.messages)
    return Message(f"{made.title} ({made.id}): {count} messages. The next %%agent continues it; no file was changed.")


def undo(request: SessionRequest) -> Message:
    """``%sessions undo [NAME] [--redo] [--force]``."""
    from ...agent.revert import revert, unrevert

    usage = "%sessions undo [NAME] [--redo] [--force]"
    redo, force = request.flag("--redo"), request.flag("--force")
    session = request.session(usage)
    request.end(usage)
    workspace = request.workspace
    work = unrevert(workspace, session, force=force) if redo else revert(workspace, session, force=force)
    done = request.wait(work)
    again = "" if redo else "\n%sessions undo --redo restores it, until the next %%agent."
    return Message(f"{session.title}: {done}{again}")


def rename(request: SessionRequest) -> Message:
    """``%sessions rename [NAME] TITLE``."""
    usage = "%sessions rename [NAME] TITLE; put a title of several words in quotes."
    if not request.rest:
        raise InvalidArgumentsError(f"What title? {usage}")
    title = request.last().strip()
    session = request.session(usage)
    request.end(usage)
    if not title:
        raise InvalidArgumentsError(f"A title needs a letter. {usage}")
    before, session.title = session.title, title
    request.notebook.on_engine(request.workspace.sessions.save, session)
    return Message(f"{before} is now called {title} ({session.id}).")


def delete(request: SessionRequest) -> Message:
    """``%sessions delete NAME... [--yes]``."""
    usage = "%sessions delete NAME... [--yes]"
    sure = request.flag("--yes")
    chosen = []
    while request.rest:
        chosen.append(request.session(usage, required=True))
    unique = list({session.id: session for session in chosen}.values())
    if not unique:
        raise InvalidArgumentsError(f"Which sessions? {usage}")
    if len(unique) > 1 and not sure:
        names = ", ".join(session.title for session in unique)
        raise ToolError(f"That deletes {len(unique)} sessions ({names}) for good. Add --yes to do it.")
    children = 0
    for session in unique:
        children += request.wait(_gone(request, session.id))
        if request.current_id() == session.id:
            request.notebook.agent_session = None
    also = f", and {children} that {'it' if len(unique) == 1 else 'they'} started" if children else ""
    return Message(f"Deleted: {', '.join(session.title.rstrip('.') for session in unique)}{also}. No file was changed.")


async def _gone(request: SessionRequest, id: str) -> int:
    """Delete a session; says how many of its children went along."""
    left, children = [id], 0
    while left:
        below = [info["id"] for info in await request.store.children(left.pop())]
        children += len(below)
        left += below
    try:
        await request.workspace.sessions.delete(id)
    except KeyError:
        return 0  # it went along with another one
    return children


def _moment(milliseconds: Any) -> datetime | None:
    if not isinstance(milliseconds, (int, float)):
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000).replace(microsecond=0)  # noqa: DTZ006 - the user's own
    except (ValueError, OverflowError, OSError):
        return None  # a time of another program's, after the year 9999
