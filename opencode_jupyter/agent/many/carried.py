"""What a worker sends back, in plain data: errors, sessions with their messages, an answer."""

from __future__ import annotations

import contextlib
import importlib
import pickle
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ...core.errors import ToolError
from ...core.messages import Message, Part, part_from_wire
from ...core.result import ToolResult
from ...core.sessions import Session
from ...core.state import ToolPart
from ..answer import Answer
from .outcome import Outcome

if TYPE_CHECKING:
    from ...core.workspace import Workspace

EXTRA = "opencode_jupyter"
"""The key of a part's wire form that the store has its own columns under."""
OURS = __name__.partition(".")[0]


class RemoteError(ToolError):
    """What ended a run on a worker, where the error itself can't be sent.

    Attributes:
        kind: the error's class, by its name.
    """

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass
class Carried:
    """A run's outcome on its way from a worker.

    Attributes:
        attempt: which attempt it was.
        outcome: without `error` and `answer`.
        error: see `pack_error`.
        answer: fields of the `Answer` that are no messages; None if there is none.
        sessions: the run's and those it began: info, messages in wire form, tasks.
    """

    attempt: str
    outcome: Outcome
    error: dict[str, Any] | None = None
    answer: dict[str, Any] | None = None
    sessions: list[dict[str, Any]] = field(default_factory=list)


def pack(workspace: Workspace, attempt: str, outcome: Outcome) -> Carried:
    """What is sent of an outcome; the workspace forgets its sessions."""
    carried = Carried(attempt, outcome)
    carried.error, outcome.error = None if outcome.error is None else pack_error(outcome.error), None
    answer, outcome.answer = outcome.answer, None
    if answer is not None:
        names = ("text", "model", "usage", "cost", "steps", "finish", "ended", "notes")
        carried.answer = {name: getattr(answer, name) for name in names}
        carried.answer["messages"] = [message.id for message in answer.messages]
    family = {outcome.session}
    for session in workspace.sessions.list():  # parents come before their children
        if session.id in family or session.parent_id in family:
            family.add(session.id)
            carried.sessions.append(_pack_session(session, outcome))
    outcome.value = _sendable(outcome.value)
    return carried


def _pack_session(session: Session, outcome: Outcome) -> dict[str, Any]:
    messages = [{"info": dict(m.info), "parts": [_part(part) for part in m.parts]} for m in session.messages]
    packed: dict[str, Any] = {"info": session.to_wire(), "messages": messages}
    direct: list[ToolPart] = outcome.extra.pop("direct", []) if session.id == outcome.session else []
    if direct:
        packed["direct"] = {"id": session.message_id, "agent": direct[0].agent, "parts": [_part(p) for p in direct]}
    return packed


def _part(part: Part) -> dict[str, Any]:
    if not isinstance(part, ToolPart):
        return dict(part)
    extra = {
        "agent": part.agent,
        "by": part.by,
        "outcome": part.outcome,
        "waited": part.waited,
        "decisions": [asdict(decision) for decision in part.decisions],
        "parentID": part.parent_id,
    }
    return {**_plain(part.to_wire()), EXTRA: extra}


def _plain(value: Any) -> Any:
    """The same of what JSON knows: a tool's metadata may hold anything."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def _sendable(value: Any) -> Any:
    try:
        pickle.loads(pickle.dumps(value))  # noqa: S301 - what this process has made itself
    except Exception:
        if isinstance(value, ToolResult):
            records = None if value.records is None else _plain(value.records)
            return ToolResult(value.title, value.output, _plain(value.metadata), value.attachments, records)
        return _plain(value)
    return value


def pack_error(error: BaseException) -> dict[str, Any]:
    """An error as data: ours by class, words and what else it says; others whole, if they can be."""
    kind = type(error)
    packed: dict[str, Any] = {"module": kind.__module__, "name": kind.__qualname__, "text": str(error)}
    if kind.__module__.partition(".")[0] == OURS:
        packed["state"] = {name: value for name, value in vars(error).items() if _pickles(value)}
    else:
        with contextlib.suppress(Exception):
            whole = pickle.dumps(error)
            pickle.loads(whole)  # noqa: S301 - as above
            packed["whole"] = whole
    return packed


def _pickles(value: Any) -> bool:
    try:
        pickle.loads(pickle.dumps(value))  # noqa: S301 - as above
    except Exception:
        return False
    return True


def unpack_error(packed: Mapping[str, Any]) -> BaseException:
    """The error that `pack_error` was given, or one that says as much."""
    with contextlib.suppress(Exception):
        if "whole" in packed:
            error = pickle.loads(packed["whole"])  # noqa: S301 - from our own worker, as all that Dask carries
            if isinstance(error, BaseException):
                return error
        elif packed["module"].partition(".")[0] == OURS:
            kind = getattr(importlib.import_module(packed["module"]), packed["name"])
            if issubclass(kind, ToolError):
                made: BaseException = kind.__new__(kind)  # its own __init__ may want other things than the text
                made.args = (packed["text"],)
                vars(made).update(packed["state"])
                return made
    name, text = packed["name"], packed["text"]
    return RemoteError(f"{name}: {text}" if text else name, name)


def unpack(workspace: Workspace, carried: Carried, job_request: Any) -> Outcome:
    """The outcome, its sessions taken into the workspace and its store."""
    outcome = carried.outcome
    outcome.request = job_request
    outcome.error = None if carried.error is None else unpack_error(carried.error)
    kept = [_keep(workspace, packed) for packed in carried.sessions]
    session = next((one for one in kept if one.id == outcome.session), None)
    if carried.answer is not None and session is not None:
        fields = dict(carried.answer)
        own = set(fields.pop("messages"))
        messages = [message for message in session.messages if message.id in own]
        outcome.answer = Answer(session=session, messages=messages, value=outcome.value, **fields)
    return outcome


def _keep(workspace: Workspace, packed: Mapping[str, Any]) -> Session:
    """Take a session into the workspace, with its messages and parts."""
    session, store = Session.from_wire(packed["info"]), workspace.store
    direct = packed.get("direct")
    if direct is not None:
        session.message_id = ""
        workspace.sessions.add(session)
        message_id = workspace.sessions.open_message(session, direct["agent"])
        for wire in direct["parts"]:
            if store is not None:
                store.put_part({**wire, "messageID": message_id})
        return session
    workspace.sessions.add(session)
    for wire in packed["messages"]:
        if store is not None:
            store.put_message(wire["info"])
            for part in wire["parts"]:
                store.put_part(part)
        parts = [part_from_wire(part) for part in wire["parts"]]
        session.messages.append(Message(dict(wire["info"]), parts))
    return session
