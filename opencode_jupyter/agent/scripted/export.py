"""A session that was kept, as a script that plays it again."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from ...core.messages import Message
from ...core.repair import INVALID
from ...core.sessions import Session
from ...core.state import Completed, Failed, Pending, ToolPart
from ..errors import Kind, ModelError
from ..events import FinishReason, Usage
from .parts import FINISHES, Call, Part, Thought, Words
from .scrub import Scrubber, Secrets
from .seen import NOTICES, Result
from .turn_data import results_of, turn_of
from .writing import VERSION, WrittenBlock, WrittenTurn, script_text

ABORTED = "MessageAbortedError"
_WRITTEN = re.compile(r"JSON parsing failed: Text: (.*)\.\nError message", re.DOTALL)
_VALUE = re.compile(r"Type validation failed: Value: (.*)\.\nError message", re.DOTALL)
_KINDS: dict[str, Kind] = {"ProviderAuthError": "auth", "ContextOverflowError": "overflow"}


def script_of(session: Session, children: Iterable[Session] = (), *, secrets: Iterable[str] = ()) -> str:
    """A session as the text of a script, secrets taken out.

    Args:
        session: with its messages.
        children: sessions that its agents opened (the tool ``task``), with their messages.
        secrets: texts that must not be in it, beside those that look like secrets.
    """
    known = Secrets(secrets)
    first = _agent(session)
    models = [m.info for m in session.messages if m.role == "assistant"]
    made = models[0] if models else {}
    head = {
        "version": VERSION,
        "model": f"{made.get('providerID', '')}:{made.get('modelID', '')}",
        "date": datetime.fromtimestamp(session.created / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "session": session.id,
        "agent": first,
    }
    prompts: list[WrittenBlock] = []
    agents: dict[str, list[WrittenBlock]] = {}
    for one in (session, *children):
        scrubber = Scrubber(known, one.directory)
        for agent, block in _blocks(one, scrubber):
            if one is session and agent != "compaction":
                block.agent = agent if agent != first else ""
                prompts.append(block)
            else:
                agents.setdefault(agent, []).append(block)
    title = scrubber_title(session, known)
    return script_text({"about": title, "recording": head}, prompts, agents)


def scrubber_title(session: Session, known: Secrets) -> str:
    """A session's title without what must not be handed on."""
    return Scrubber(known, session.directory).text(session.title)


def _blocks(session: Session, scrubber: Scrubber) -> Iterable[tuple[str, WrittenBlock]]:
    """The prompts of a session, each with the agent that answered it."""
    block: WrittenBlock | None = None
    taken_back = str((session.extra.get("revert") or {}).get("messageID") or "")
    number = 0
    for message in session.messages:
        if message.id == taken_back:
            return
        if message.role == "user":
            text = _prompt(message)
            if text is None:
                continue
            number += 1
            where = {"session": session.id, "number": number}
            block = WrittenBlock(scrubber.text(text), where)
            yield str(message.info.get("agent") or ""), block
            continue
        turn = _turn(message, scrubber)
        if turn is None:
            continue
        if message.info.get("summary") is True:
            # In which words it was asked for is not kept.
            yield "compaction", WrittenBlock(None, {"session": session.id, "number": number}, [turn])
        elif block is not None:
            block.turns.append(turn)


def _prompt(message: Message) -> str | None:
    """A prompt's text; None for what the loop put in."""
    texts = [part for part in message.of_type("text") if part.get("text") and not part.get("ignored")]
    if any(True for _ in message.of_type("compaction")) or not texts:
        return None
    own = next((part for part in texts if not part.get("synthetic")), texts[0])
    text = str(own["text"])
    return None if own.get("synthetic") and text.startswith(NOTICES) else text


def _turn(message: Message, scrubber: Scrubber) -> WrittenTurn | None:
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolPart):
            parts.append(_call(part))
        elif part.get("type") == "text" and part.get("text") and not part.get("synthetic"):
            parts.append(Words(str(part["text"])))
        elif part.get("type") == "reasoning" and part.get("text"):
            parts.append(Thought(str(part["text"])))
    info = message.info
    wire = info.get("error") or {}
    error = _error(wire) if wire and wire.get("name") != ABORTED else None
    if not parts and error is None:
        return None
    finish: Any = info.get("finish")
    reason: FinishReason | None = finish if finish in FINISHES else None
    made = turn_of(parts, scrubber, usage=_usage(info), finish=None if error else reason, error=error)
    results = [_result(part) for part in message.calls]
    if results:
        made.set_results(results_of(results, scrubber))
    return made


def _call(part: ToolPart) -> Call:
    """A call as the model wrote it, as far as that is kept."""
    state = part.state
    if isinstance(state, Pending) and state.raw:
        return Call(part.tool, state.raw, part.call_id)
    if part.tool != INVALID or not isinstance(state.input.get("tool"), str):
        return Call(part.tool, state.input, part.call_id)
    said = str(state.input.get("error") or "")
    found = _WRITTEN.search(said) or _VALUE.search(said)
    return Call(state.input["tool"], found[1] if found else {}, part.call_id)


def _result(part: ToolPart) -> Result:
    state = part.state
    if isinstance(state, Completed):
        return Result(part.tool, state.output, "completed")
    return Result(part.tool, state.error if isinstance(state, Failed) else "", "failed")


def _usage(info: dict[str, Any]) -> Usage | None:
    tokens = info.get("tokens") or {}
    cache = tokens.get("cache") or {}
    made = Usage(
        tokens.get("input") or 0,
        tokens.get("output") or 0,
        tokens.get("reasoning") or 0,
        cache.get("read") or 0,
        cache.get("write") or 0,
        tokens.get("total"),
    )
    return made if made.whole else None


def _error(wire: dict[str, Any]) -> ModelError:
    data = wire.get("data") or {}
    status = data.get("statusCode")
    kind = _KINDS.get(str(wire.get("name")), "other")
    if wire.get("name") == "APIError" and isinstance(status, int):
        kind = "rate_limit" if status == 429 else "overloaded" if status >= 500 else "bad_request"
    return ModelError(str(data.get("message") or wire.get("name")), kind, status=status, retryable=False)


def _agent(session: Session) -> str:
    found = (str(m.info.get("agent") or "") for m in session.messages if m.role == "user")
    return next(found, session.agent)
