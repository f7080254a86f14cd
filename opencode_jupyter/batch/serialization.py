"""A run's outcome on its way from a Dask worker, in plain data: errors, sessions with their messages, an answer."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..agent.answer import Answer
from ..agent.exchange.importing import store_session
from ..agent.exchange.session_data import message_data, part_data, plain
from ..agent.sessions import AgentSession
from ..core.call_state import ToolPart
from ..core.errors import ToolError
from ..core.result import ToolResult
from .results import Outcome

if TYPE_CHECKING:
    from ..core.host import ToolHost


class RemoteError(ToolError):
    """The error of a run on a worker, where the error itself can't be sent.

    Attributes:
        kind: the error's class, by its name.
    """

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass
class RunResult:
    """A run's outcome, as a worker sends it.

    Attributes:
        attempt: which attempt it was.
        outcome: without `error` and `answer`.
        error: see `pack_error`.
        answer: fields of the `Answer` that are no messages; None if there is none.
        sessions: the run's and those it began: info, messages in wire form, tasks.
    """

    attempt: str
    outcome: Outcome
    error: tuple[str, bytes] | None = None
    answer: dict[str, Any] | None = None
    sessions: list[dict[str, Any]] = field(default_factory=list)


def pack(workspace: ToolHost, attempt: str, outcome: Outcome) -> RunResult:
    """An outcome in plain data."""
    result = RunResult(attempt, outcome)
    result.error, outcome.error = None if outcome.error is None else pack_error(outcome.error), None
    answer, outcome.answer = outcome.answer, None
    if answer is not None:
        names = ("text", "model", "usage", "cost", "steps", "finish", "ended", "notes")
        result.answer = {name: getattr(answer, name) for name in names}
        result.answer["messages"] = [message.id for message in answer.messages]
    family = {outcome.session}
    for session in workspace.sessions.list():  # parents come before their children
        if session.id in family or session.parent_id in family:
            family.add(session.id)
            result.sessions.append(_pack_session(session, outcome))
    outcome.value = sendable_value(outcome.value)
    return result


def _pack_session(session: AgentSession, outcome: Outcome) -> dict[str, Any]:
    packed: dict[str, Any] = {"info": session.to_wire(), "messages": plain([*map(message_data, session.messages)])}
    direct: list[ToolPart] = outcome.extra.pop("direct", []) if session.id == outcome.session else []
    if direct:
        packed["direct"] = {"agent": direct[0].agent, "parts": plain([*map(part_data, direct)])}
    return packed


def sendable_value(value: Any) -> Any:
    """A call's value as it is if it can be pickled, else as plain data."""
    if _pickles(value):
        return value
    if isinstance(value, ToolResult):
        records = None if value.records is None else plain(value.records)
        return ToolResult(value.title, value.output, plain(value.metadata), value.attachments, records)
    return plain(value)


def pack_error(error: BaseException) -> tuple[str, bytes]:
    """An error as data: its text, and its class with all that can be sent of its state."""
    kind, text = type(error), str(error)
    message = f"{kind.__qualname__}: {text}" if text else kind.__qualname__
    state = {name: value for name, value in vars(error).items() if _pickles(value)}
    args = error.args if _pickles(error.args) else (text,)
    packed = (kind, args, state)
    return message, pickle.dumps(packed) if _pickles(packed) else b""


def _pickles(value: Any) -> bool:
    try:
        pickle.loads(pickle.dumps(value))  # noqa: S301 - what this process has made itself
    except Exception:
        return False
    return True


def unpack_error(packed: tuple[str, bytes]) -> BaseException:
    """The error that was packed; a `RemoteError` with its text if its class is unknown here."""
    message, data = packed
    try:
        kind, args, state = pickle.loads(data)  # noqa: S301 - from our own worker, as all that Dask sends
        error: BaseException = kind.__new__(kind, *args)  # its own __init__ may take other arguments
    except Exception:
        return RemoteError(message, message.partition(":")[0])
    error.args = args
    vars(error).update(state)
    return error


async def unpack(workspace: ToolHost, result: RunResult, job_request: Any) -> Outcome:
    """The outcome, its sessions taken into the workspace and its store."""
    outcome = result.outcome
    outcome.request = job_request
    outcome.error = None if result.error is None else unpack_error(result.error)
    stored = [await _store_session(workspace, packed) for packed in result.sessions]
    session = next((candidate for candidate in stored if candidate.id == outcome.session), None)
    if result.answer is not None and session is not None:
        fields = dict(result.answer)
        own_ids = set(fields.pop("messages"))
        messages = [message for message in session.messages if message.id in own_ids]
        outcome.answer = Answer(session=session, messages=messages, value=outcome.value, **fields)
    return outcome


async def _store_session(workspace: ToolHost, packed: Mapping[str, Any]) -> AgentSession:
    """Add a session to the workspace, with its messages and parts."""
    direct, store = packed.get("direct"), workspace.store
    if direct is None:
        return await store_session(workspace, packed["info"], packed["messages"])
    session = AgentSession.from_wire(packed["info"])
    session.message_id = ""
    workspace.sessions.add(session)
    message_id = workspace.sessions.open_message(session, direct["agent"])
    if store is not None:
        for part in direct["parts"]:
            store.put_part({**part, "messageID": message_id})
    return session
