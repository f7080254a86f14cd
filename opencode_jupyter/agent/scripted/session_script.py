"""A stored session as a script that replays it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from ...core.call_state import Completed, Failed, Pending, ToolPart
from ...core.messages import Message
from ...core.repair import INVALID
from ...core.sessions import Session
from ..conversation import ABORTED, is_notice
from ..errors import Kind, ModelError
from ..events import FinishReason, Usage
from .answers import FINISHES, Call, Part, ReasoningPart, TextPart
from .recorder import VERSION, Data, results_data, script_text, turn_data
from .script_conversation import CallResult
from .scrub import Scrubber, Secrets

_UNPARSED = re.compile(r"JSON parsing failed: Text: (.*)\.\nError message", re.DOTALL)
_INVALID = re.compile(r"Type validation failed: Value: (.*)\.\nError message", re.DOTALL)
_KINDS: dict[str, Kind] = {"ProviderAuthError": "auth", "ContextOverflowError": "overflow"}


def script_of(session: Session, children: Iterable[Session] = (), *, secrets: Iterable[str] = ()) -> str:
    """A session as the text of a script, without secrets.

    Args:
        session: with its messages.
        children: sessions that its agents opened (the tool ``task``), with their messages.
        secrets: texts to remove, beside those that look like secrets.
    """
    known_secrets = Secrets(secrets)
    first = next((str(m.info.get("agent") or "") for m in session.messages if m.role == "user"), session.agent)
    model: dict[str, Any] = next((m.info for m in session.messages if m.role == "assistant"), {})
    head = {
        "version": VERSION,
        "model": f"{model.get('providerID', '')}:{model.get('modelID', '')}",
        "date": datetime.fromtimestamp(session.created / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "session": session.id,
        "agent": first,
    }
    prompts: list[Data] = []
    agents: dict[str, list[Data]] = {}
    for source in (session, *children):
        for agent, entry in _entries(source, Scrubber(known_secrets, source.directory)):
            if source is session and agent != "compaction":
                prompts.append(entry | ({"agent": agent} if agent and agent != first else {}))
            else:
                agents.setdefault(agent, []).append(entry)
    title = Scrubber(known_secrets, session.directory).text(session.title)
    return script_text({"about": title, "recording": head}, prompts, agents)


def _entries(session: Session, scrubber: Scrubber) -> Iterator[tuple[str, Data]]:
    """The prompts of a session, each with the agent that answered it."""
    entry: Data | None = None
    reverted = str((session.extra.get("revert") or {}).get("messageID") or "")
    number = 0
    for message in session.messages:
        if message.id == reverted:
            return
        if message.role == "user":
            text = _prompt(message)
            if text is not None:
                number += 1
                entry = {"prompt": scrubber.text(text), "recorded": {"session": session.id, "number": number}}
                entry["turns"] = []
                yield str(message.info.get("agent") or ""), entry
            continue
        turn = _turn(message, scrubber)
        if turn is not None and message.info.get("summary") is True:
            # The prompt that requested it is not stored.
            yield "compaction", {"recorded": {"session": session.id, "number": number}, "turns": [turn]}
        elif turn is not None and entry is not None:
            entry["turns"].append(turn)


def _prompt(message: Message) -> str | None:
    """A prompt's text; None for what the agent loop inserted."""
    texts = [part for part in message.of_type("text") if part.get("text") and not part.get("ignored")]
    if any(True for _ in message.of_type("compaction")) or not texts:
        return None
    own = next((part for part in texts if not part.get("synthetic")), texts[0])
    return None if is_notice(own) else str(own["text"])


def _turn(message: Message, scrubber: Scrubber) -> Data | None:
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolPart):
            parts.append(_call(part))
        elif part.get("type") == "text" and part.get("text") and not part.get("synthetic"):
            parts.append(TextPart(str(part["text"])))
        elif part.get("type") == "reasoning" and part.get("text"):
            parts.append(ReasoningPart(str(part["text"])))
    info = message.info
    wire = info.get("error") or {}
    error = _error(wire) if wire and wire.get("name") != ABORTED else None
    if not parts and error is None:
        return None
    finish: Any = info.get("finish")
    reason: FinishReason | None = finish if finish in FINISHES else None
    usage = Usage.from_wire(info.get("tokens"))
    turn = turn_data(
        parts, scrubber, usage=usage if usage.whole else None, finish=None if error else reason, error=error
    )
    results = [_result(part) for part in message.calls]
    return turn | ({"results": results_data(results, scrubber)} if results else {})


def _call(part: ToolPart) -> Call:
    """A call as the model wrote it, as far as that is kept."""
    state = part.state
    if isinstance(state, Pending) and state.raw:
        return Call(part.tool, state.raw, part.call_id)
    if part.tool != INVALID or not isinstance(state.input.get("tool"), str):
        return Call(part.tool, state.input, part.call_id)
    error = str(state.input.get("error") or "")
    match = _UNPARSED.search(error) or _INVALID.search(error)
    return Call(state.input["tool"], match[1] if match else {}, part.call_id)


def _result(part: ToolPart) -> CallResult:
    state = part.state
    if isinstance(state, Completed):
        return CallResult(part.tool, state.output, "completed")
    return CallResult(part.tool, state.error if isinstance(state, Failed) else "", "failed")


def _error(wire: dict[str, Any]) -> ModelError:
    data = wire.get("data") or {}
    status = data.get("statusCode")
    kind = _KINDS.get(str(wire.get("name")), "other")
    if wire.get("name") == "APIError" and isinstance(status, int):
        kind = "rate_limit" if status == 429 else "overloaded" if status >= 500 else "bad_request"
    return ModelError(str(data.get("message") or wire.get("name")), kind, status=status, retryable=False)
