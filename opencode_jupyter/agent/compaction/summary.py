"""Compaction: the conversation so far becomes a summary and continues from it (docs/opencode/core.md 8, 9).

As in OpenCode a user's message with a ``compaction`` part asks for it and an assistant's with ``summary: true``
answers; what a model is sent later begins there. A summary that fails leaves no trace in the session.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal

from ...core.call_state import ToolPart, now_ms
from ...core.errors import HookRefusedError
from ...core.messages import Message, assistant_message, new_part, user_message
from ..conversation import StreamedParts, after_summary
from ..errors import ModelError
from ..events import Finish, ReasoningEnd, TextEnd, Usage
from ..masking import stream_masked
from ..model import Model, ModelInfo, Request, agent_request
from ..retry import pause, wait_before
from ..turns import CallPiece, MediaPiece, Piece, ReasoningPiece, ResultPiece, TextPiece, Turn
from .limits import estimate, estimate_turns, usable_tokens

if TYPE_CHECKING:
    from ...core.agents import Agent
    from ..run import Run

log = logging.getLogger(__name__)

AGENT = "compaction"
COMPACTING_HOOK = "experimental.session.compacting"
"""The plugins' hook: they may add to the request for a summary (``context``), or word it themselves (``prompt``)."""
REQUEST = """Write the summary from which this work goes on. Whoever reads it knows nothing else of the conversation.
Use these headings, and leave out those with nothing under them:

## Asked for
What the user wants, with every constraint, correction and preference they gave, in their own words where it matters.
## Done
What was done and found out: paths, names, numbers, commands with their outcome, decisions with their reason.
## As it stands
Files that were changed and how; variables in the user's kernel that matter and what they hold; what still runs.
## Open
The next steps in order, what does not work yet with its error word for word, questions that nobody has answered.

Write in the user's language. Do not answer the user, and do no work now: write the summary and nothing else."""
CONTINUE = (
    "The conversation was summarised because it had become too long. Go on with what is still to be done; if nothing "
    "is, say so, and if you are not sure what is wanted, ask."
)
STILL_TOO_LONG = (
    "the conversation does not fit into the window{window} even after a summary: the system "
    "prompt, the tools and the last request take too much of it. Use a model with a larger window, offer fewer tools "
    "(tools=[...]), or shorten the instructions (AGENTS.md) or the request"
)

NO_SUMMARY = (
    "the conversation has almost filled its model's context window and must be summarised to continue, but "
    "{model} gave no summary: {error}. Nothing is lost: prompt again to retry. The agent `compaction` of the "
    'configuration may have another model; {{"compaction": {{"auto": false}}}} continues without a summary'
)


async def compact(run: Run, *, auto: bool) -> None:
    """Summarise a run's conversation, so that it continues from the summary.

    With `auto` (nobody requested it) a message follows that asks the model to continue. If the user's last message has
    no answer yet, it is repeated instead.

    Raises:
        ModelError: there is no summary, and the session is as it was. Kind ``overflow`` if none could help.
    """
    messages = run.session.messages
    pending = _unanswered_prompt(messages) if auto else None
    if pending is not None:
        limit = usable_tokens(run.model.info, run.workspace.config.data)
        if limit and estimate("".join(str(part["text"]) for part in pending.of_type("text"))) > limit:
            raise _overflow_error(run.model.info)
    if auto and _summarised_just_now(run, pending):
        return
    agent = run.workspace.agents.get(AGENT)
    model = await _summary_model(run, agent)
    turns = run.conversation.turns()
    if pending is not None:
        turns = turns[: len(turns) - len(pending.turns or ())]
    request = await _summary_request(run)
    question = user_message(run.session.id, run.session.agent or run.agent.name, run.model_wire)
    question.parts.append(new_part(question, "compaction", auto=auto))
    message = assistant_message(
        run.session.id,
        question.id,
        AGENT,
        {"providerID": model.info.provider, "modelID": model.info.model},
        cwd=str(run.workspace.directory),
        root=str(run.workspace.worktree),
        summary=True,
    )
    run.add(question)
    run.add(message)
    try:
        finish = await Summariser(run, model, agent, message).summarise(turns, request)
    except (ModelError, asyncio.CancelledError) as error:
        _remove_messages(run, {question.id, message.id})
        if not isinstance(error, ModelError):
            raise
        if error.kind == "overflow":
            raise _overflow_error(model.info, error) from error
        # It must say that it was the summary that failed.
        raise error.with_message(NO_SUMMARY.format(model=model.info.full, error=str(error).rstrip("."))) from error
    _finish_message(run, message, model.info, finish)
    if pending is not None:
        run.add(_repeat_request(run, pending))
    elif auto:
        onward = user_message(run.session.id, run.session.agent or run.agent.name, run.model_wire)
        onward.parts.append(new_part(onward, "text", text=CONTINUE, synthetic=True))
        run.add(onward)
    run.workspace.publish("session.compacted", lambda: {"sessionID": run.session.id})


def _unanswered_prompt(messages: list[Message]) -> Message | None:
    """The user's last message, if nothing came after it, and something before it."""
    if len(messages) < 2 or messages[-1].role != "user" or any(messages[-1].of_type("compaction")):
        return None
    return messages[-1]


def _summarised_just_now(run: Run, pending: Message | None) -> bool:
    """Return whether another summary is not worth it yet: the first request after the last one was too long already.

    The first time is only noted, and the work continues; if that fails, a summary is made nevertheless.

    Raises:
        ModelError: the provider has refused the first request after a summary, so no other could help.
    """
    messages = run.session.messages
    start = after_summary(messages)
    if not any(message.info.get("summary") for message in messages[start + 1 : start + 2]):
        return False
    since = [message for message in messages[start + 2 :] if message.role == "assistant"]
    if not since and pending is not None:
        raise _overflow_error(run.model.info)
    if len(since) != 1:
        return False
    usage = Usage.from_wire(since[0].info.get("tokens"))
    sent = usage.input + usage.cache_read + usage.cache_write
    limit = usable_tokens(run.model.info, run.workspace.config.data)
    if not limit or sent <= limit:
        return False
    if run.nearly_full_after == since[0].id:
        return False
    run.nearly_full_after = since[0].id
    model = run.model.info.full
    run.notes.append(f"{model} has almost no context left even after a summary: {sent:,} tokens of {limit:,}")
    return True


async def _summary_model(run: Run, agent: Agent | None) -> Model:
    if agent is None or agent.model is None:
        return run.model
    from ..models import resolve

    return await resolve(run.workspace, f"{agent.model['providerID']}:{agent.model['modelID']}")


async def _summary_request(run: Run) -> str:
    hooks = run.workspace.hooks
    if not hooks.has_hooks(COMPACTING_HOOK):
        return REQUEST
    output: dict[str, Any] = {"context": [], "prompt": None}
    try:
        await hooks.trigger(COMPACTING_HOOK, {"sessionID": run.session.id}, output)
    except HookRefusedError as error:
        run.notes.append(str(error))
    prompt = output.get("prompt")
    context = output.get("context")
    more = [str(item) for item in context] if isinstance(context, list) else []
    return "\n\n".join([prompt if isinstance(prompt, str) and prompt.strip() else REQUEST, *more])


def _finish_message(run: Run, message: Message, info: ModelInfo, finish: Finish) -> None:
    usage = finish.usage
    cost = run.add_usage(message, info, usage)
    end = new_part(message, "step-finish", reason=finish.reason, tokens=usage.to_wire(), cost=cost)
    run.conversation.put(message, end)
    message.info["finish"] = finish.reason
    message.info["time"] = {**message.info["time"], "completed": now_ms()}
    run.conversation.changed(message)


def _repeat_request(run: Run, pending: Message) -> Message:
    """The user's message once more, after the summary; its pictures are only named: they may be what was too much."""
    info = pending.info
    more = {key: info[key] for key in ("system", "tools", "format", "variant") if key in info}
    message = user_message(run.session.id, str(info.get("agent") or run.agent.name), run.model_wire, **more)
    for part in pending.parts:
        if isinstance(part, ToolPart):
            continue
        if part.get("type") == "text" and part.get("text") and not part.get("ignored"):
            message.parts.append(new_part(message, "text", text=part["text"], synthetic=True))
        elif part.get("type") == "file":
            text = f"[{part.get('mime', 'file')}: {part.get('filename') or 'no name'}, omitted to save space]"
            message.parts.append(new_part(message, "text", text=text, synthetic=True))
    return message


def _remove_messages(run: Run, ids: set[str]) -> None:
    run.messages[:] = [message for message in run.messages if message.id not in ids]
    run.conversation.remove(ids)
    run.report("dropped", ids)


def _overflow_error(info: ModelInfo, error: ModelError | None = None) -> ModelError:
    window = f" of {info.full} ({info.context:,} tokens)" if info.context else f" of {info.full}"
    status, body = (error.status, error.body) if error is not None else (None, "")
    text = STILL_TOO_LONG.format(window=window)
    return ModelError(text, "overflow", provider=info.provider, status=status, body=body)


# ---------------------------------------------------------------------- the request for the summary


class Summariser:
    """Asks one model for the summary of one conversation.

    `agent` is None if the agent for summaries is switched off; the summary goes into `message`.
    """

    def __init__(self, run: Run, model: Model, agent: Agent | None, message: Message) -> None:
        self._run = run
        self._model = model
        self._agent = agent
        self._message = message
        self._parts = StreamedParts(run.conversation, message, run.report)

    async def summarise(self, turns: Sequence[Turn], request: str) -> Finish:
        """Fill the message; less and less of the conversation is sent until it fits.

        Raises:
            ModelError: kind ``overflow`` if even the least does not fit; others as the model raises them.
        """
        run = self._run
        system = (self._agent.prompt,) if self._agent is not None and self._agent.prompt else ()
        room = usable_tokens(self._model.info, run.workspace.config.data)
        sent = 0
        for level in LEVELS:
            shortened = _with_request(render_transcript(turns, level), request)
            size = estimate_turns(shortened) + estimate("".join(system))
            last = level is LEVELS[-1]
            if not last and ((room and size > room) or (sent and size >= 0.8 * sent)):
                continue  # it would not fit, or is what did not fit, nearly
            try:
                return await self._ask_with_retries(
                    agent_request(run.workspace, run.session, AGENT, self._agent, system=system, turns=shortened)
                )
            except ModelError as error:
                if error.kind != "overflow" or last:
                    raise
                sent = size
        raise AssertionError("unreachable")

    async def _ask_with_retries(self, request: Request) -> Finish:
        """Ask, and again after errors that may go away."""
        for attempt in itertools.count(1):
            try:
                return await self._ask_once(request)
            except ModelError as error:
                self._parts.remove()
                wait = wait_before(error, attempt)
                if wait is None:
                    raise
                await pause(self._run, error, attempt, wait)
        raise AssertionError("unreachable")

    async def _ask_once(self, request: Request) -> Finish:
        finish: Finish | None = None
        provider = self._model.info.provider
        try:
            async with aclosing(stream_masked(self._run.workspace, self._model, request)) as stream:
                async for event in stream:
                    if isinstance(event, Finish):
                        finish = event
                    elif isinstance(event, TextEnd | ReasoningEnd):
                        self._parts.handle(replace(event, metadata=None))  # only the text is sent back
                    else:
                        self._parts.handle(event)
        except ModelError:
            raise
        except Exception as error:
            log.exception("the stream of %s failed", self._model.info.full)
            raise ModelError(f"{type(error).__name__}: {error}", "other", provider=provider) from error
        self._parts.close()
        if finish is None:
            raise ModelError("the stream ended before the answer was complete", "cut", provider=provider)
        if finish.reason == "content-filter":
            raise ModelError("the provider's filter withheld the summary", "refused", provider=provider)
        if not self._message.text.strip():
            raise ModelError("the model returned an empty summary", "protocol", provider=provider)
        return finish


def _with_request(turns: list[Turn], request: str) -> list[Turn]:
    """The turns with the request for the summary at their end, in the user's last turn if they end with one."""
    if turns and turns[-1].role == "user":
        return [*turns[:-1], Turn("user", (*turns[-1].pieces, TextPiece(request)))]
    return [*turns, Turn("user", (TextPiece(request),))]


# ---------------------------------------------------------------------- the conversation as text


@dataclass(frozen=True, slots=True)
class DetailLevel:
    """How much of a conversation is kept.

    Attributes:
        result: characters of a call's result.
        call: characters of a call's arguments.
        text: characters of a text.
        share: of the turns, the newest ones.
    """

    result: int
    call: int
    text: int
    share: float = 1.0


LEVELS: tuple[DetailLevel, ...] = (
    DetailLevel(8_000, 4_000, 200_000),
    DetailLevel(2_000, 1_000, 50_000),
    DetailLevel(500, 300, 10_000),
    DetailLevel(500, 300, 5_000, 0.5),
    DetailLevel(300, 200, 3_000, 0.25),
    DetailLevel(200, 100, 2_000, 0.12),
    DetailLevel(100, 60, 1_000, 0.06),
    DetailLevel(100, 60, 500, 0.0),
)
"""From much to little. The first prompt and the last summary are kept at every level."""
OMITTED = "[{} turns were omitted here to save space.]"


def render_transcript(turns: Sequence[Turn], level: DetailLevel) -> list[Turn]:
    """The turns as texts, the user's and the model's alternating."""
    pinned = 2 if turns and turns[0].purpose == "summary" else 1
    first, rest = turns[:pinned], turns[pinned:]
    newest = rest[len(rest) - max(1, round(len(rest) * level.share)) :] if rest else rest
    omitted = len(rest) - len(newest)
    texts_by_role = [_role_and_text(turn, level) for turn in first]
    if omitted:
        texts_by_role.append(("user", OMITTED.format(omitted)))
    texts_by_role += [_role_and_text(turn, level) for turn in newest]
    groups = itertools.groupby((pair for pair in texts_by_role if pair[1]), key=itemgetter(0))
    return [Turn(role, (TextPiece("\n\n".join(text for _, text in group)),)) for role, group in groups]


def _role_and_text(turn: Turn, level: DetailLevel) -> tuple[Literal["user", "assistant"], str]:
    texts = [text for text in (_piece_text(piece, level) for piece in turn.pieces) if text]
    return "assistant" if turn.role == "assistant" else "user", "\n\n".join(texts)


def _piece_text(piece: Piece, level: DetailLevel) -> str:
    match piece:
        case TextPiece(text):
            return shortened(text, level.text)
        case CallPiece(_, name, arguments):
            arguments_text = json.dumps(arguments, ensure_ascii=False, default=str)
            return f"[called {name} with {shortened(arguments_text, level.call)}]"
        case ResultPiece(_, name, text, media, failed):
            shown = " ".join(map(_media_text, media))
            verb = "failed" if failed else "gave"
            return f"[{name} {verb}] {shortened(text, level.result)} {shown}".rstrip()
        case MediaPiece():
            return _media_text(piece)
        case ReasoningPiece():
            return ""


def _media_text(piece: MediaPiece) -> str:
    return f"[{'document' if piece.mime == 'application/pdf' else 'picture'} {piece.filename or piece.mime}]"


def shortened(text: str, limit: int) -> str:
    """A text's beginning and, where there is room, its end; with a note about what was omitted between."""
    if len(text) <= limit:
        return text
    tail = limit // 4
    end = text[-tail:] if tail else ""
    return f"{text[: limit - tail]}\n[... {len(text) - limit:,} characters omitted ...]\n{end}"
