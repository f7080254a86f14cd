"""Records a conversation as a script, which replays it without a key: a model that records another, and its data.

`session_script` makes the same data of a stored session.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import json
import re
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...core import atomic
from ...core.errors import ToolError
from ..errors import ModelError
from ..events import (
    CallDelta,
    CallEnd,
    CallStart,
    Event,
    Finish,
    FinishReason,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
    Usage,
)
from ..model import Model, ModelInfo, Request
from .answers import Call, Part, ReasoningPart, TextPart, failure
from .replay import fingerprint
from .script import Script
from .script_conversation import SUMMARY_AGENTS, TITLE_AGENT, AnsweredPrompt, CallResult, ScriptConversation
from .scrub import Scrubber, Secrets
from .streaming import argument_text
from .yaml_document import dump, read_document

Data = dict[str, Any]

VERSION = 1
"""The version of the format of recordings."""
KEPT_CHARS = 6000
"""Characters of a result that a recording keeps; its hash is of the whole."""
HEADER = """\
# A recorded conversation. It is played again without a key by: %%agent -m scripted:THIS-FILE
# Secrets, the home folder and the user's name were taken out. Docs: scripted-models.md
"""
_secrets_by_file: dict[Path, Secrets] = {}
"""By file, while this process lives: the same secret keeps its placeholder from one prompt to the next."""


class Recorder:
    """Passes requests on to a model and records its answers in a file.

    The file is written before the first request and after every answer, so nothing is lost when the kernel dies. An
    answer is never lost because of the file: if it cannot be written any more, the answer's last event reports it
    (``Finish.metadata["recording"]["error"]``), and the next answer tries again.

    Sessions that other agents open with the same recorder (the tool ``task``) go into the same file.

    Args:
        model: the model that answers.
        path: the file (``.yaml``).
        overwrite: start the file anew. Otherwise an existing one must be a recording of the same session, which is
            continued.
        secrets: texts to remove (`scrub.secrets_of` finds a configuration's), beside the environment's keys and what
            looks like a secret.
    """

    def __init__(self, model: Model, path: Path, *, overwrite: bool = False, secrets: Iterable[str] = ()) -> None:
        self._model = model
        self.path = Path(path).absolute()
        self._overwrite = overwrite
        self._known = tuple(secrets)
        self._recording: Recording | None = None

    @property
    def info(self) -> ModelInfo:
        """Properties of the model that answers."""
        return self._model.info

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Send a request to the model, and record its answer.

        Raises:
            ModelError: the model's; or kind ``setup``: the file cannot be written, or holds something else.
        """
        conversation = ScriptConversation(request)
        recording = await self._open(conversation)
        entry = recording.entry_for(conversation, self.info)
        scrubber = recording.scrubber(conversation)
        answer = _AnswerParts()
        try:
            async with aclosing(self._model.stream(request)) as stream:
                async for event in stream:
                    answer.add(event)
                    if isinstance(event, Finish) and entry is not None:
                        entry["turns"].append(
                            turn_data(answer.parts(), scrubber, usage=event.usage, finish=event.reason)
                        )
                        problem = recording.save_or_report()
                        metadata = {**(event.metadata or {}), "recording": {"error": problem}}
                        yield event if problem is None else replace(event, metadata=metadata)
                    else:
                        yield event
        except ModelError as error:
            if error.kind != "script" and entry is not None:
                entry["turns"].append(turn_data(answer.parts(), scrubber, error=error, broken=answer.broken))
                recording.save_or_report()
            raise

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()

    async def _open(self, conversation: ScriptConversation) -> Recording:
        if self._recording is None:
            await asyncio.to_thread(importlib.import_module, "yaml")
            recording = Recording(self.path, conversation.session, overwrite=self._overwrite, secrets=self._known)
            try:
                recording.entry_for(conversation, self.info)
                recording.save()
            except ToolError as error:
                raise ModelError(f"The conversation can't be recorded: {error}", "setup") from error
            self._recording = recording
        return self._recording


class Recording:
    """The contents of a recording's file.

    An existing file is continued, unless it is to be overwritten.

    Attributes:
        head: ``recording:`` of the script. Its session and agent are those of the first request.
        prompts: entries of that session or that agent.
        agents: entries of other agents (those of the tool ``task``, and those that summarise).

    Raises:
        ModelError: kind ``setup``: the file holds something else.
    """

    def __init__(self, path: Path, session: str, *, overwrite: bool = False, secrets: Iterable[str] = ()) -> None:
        self.path = path
        self.secrets = _secrets_by_file.setdefault(path, Secrets())
        self.secrets.learn(secrets)
        self.head: Data = {}
        self.model: Data = {}
        self.prompts: list[Data] = []
        self.agents: dict[str, list[Data]] = {}
        self._scrubber: Scrubber | None = None
        if path.exists() and not overwrite:
            self._load()
        recorded = {entry["recorded"].get("session") for entry in self._entries()} | {self.head.get("session")}
        if self.head and session not in recorded:
            raise ModelError(
                f"{path} is a recording of another session ({self.head.get('session')}). "
                "Record into another file, continue that session, or overwrite.",
                "setup",
            )

    def _load(self) -> None:
        problem = f"{self.path} exists and is not a recording that can be continued. Use another file, or overwrite."
        try:
            document = read_document(self.path)
            script = Script(document, self.path)
        except ModelError as error:
            raise ModelError(f"{problem} ({error})", "setup") from error
        data = document.value
        if not script.recording or script.recording.get("version") != VERSION:
            raise ModelError(problem, "setup")
        self.head, self.model = data["recording"], data.get("model") or {}
        self.prompts = data.get("prompts") or []
        self.agents = {agent: body.get("prompts") or [] for agent, body in (data.get("agents") or {}).items()}
        for entry in self._entries():
            entry.setdefault("recorded", {})
        self.secrets.skip(self.path.read_text("utf-8"))

    def _entries(self) -> Iterator[Data]:
        yield from self.prompts
        for entries in self.agents.values():
            yield from entries

    def scrubber(self, conversation: ScriptConversation) -> Scrubber:
        """Removes secrets and folders from this session's texts."""
        directory = conversation.directory
        if self._scrubber is None or self._scrubber.directory != directory:
            self._scrubber = Scrubber(self.secrets, directory)
        return self._scrubber

    def entry_for(self, conversation: ScriptConversation, info: ModelInfo) -> Data | None:
        """The entry that the answer to a request belongs to; it also notes the results of the calls before.

        A recorded answer that is requested again (after a revert) is dropped, with all that follow.
        """
        prompt = conversation.prompt
        if prompt is None:
            return None
        if not self.head:
            date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            first = {"session": conversation.session, "agent": conversation.agent}
            self.head = {"version": VERSION, "model": info.full, "date": date, **first}
            self.model = _model_data(info)
        main = conversation.session == self.head["session"] or conversation.agent == self.head["agent"]
        if conversation.agent in (TITLE_AGENT, *SUMMARY_AGENTS) or not main:
            entries = self.agents.setdefault(conversation.agent, [])
        else:
            entries = self.prompts
        for earlier in conversation.prompts[-2:]:
            self._add_results(entries, earlier, conversation)
        entry = self._find(entries, prompt, conversation)
        if entry is None:
            self._drop(entries, conversation, prompt.number)
            entry = {"prompt": self.scrubber(conversation).text(prompt.text)}
            if entries is self.prompts and conversation.agent != self.head["agent"]:
                entry["agent"] = conversation.agent
            if conversation.agent in SUMMARY_AGENTS:  # their prompts are all the same
                entry["number"] = prompt.number
            entries.append(entry | {"recorded": _source_of(conversation, prompt), "turns": []})
            return entries[-1]
        answers = [index for index, turn in enumerate(entry["turns"]) if leaves_answer(turn)]
        if len(prompt.steps) < len(answers):
            del entry["turns"][answers[len(prompt.steps)] :]
            self._drop(entries, conversation, prompt.number + 1)
        return entry

    def _find(self, entries: list[Data], prompt: AnsweredPrompt, conversation: ScriptConversation) -> Data | None:
        source, text = _source_of(conversation, prompt), self.scrubber(conversation).text(prompt.text)
        same = (entry for entry in entries if entry["recorded"] == source and entry.get("prompt") == text)
        return next(same, None)

    def _drop(self, entries: list[Data], conversation: ScriptConversation, number: int) -> None:
        """Drop the prompts from this number on: they were reverted."""
        start = {"session": conversation.session, "start": _start_hash(conversation)}
        entries[:] = [
            entry
            for entry in entries
            if {key: entry["recorded"].get(key) for key in start} != start
            or entry["recorded"].get("number", 0) < number
        ]

    def _add_results(self, entries: list[Data], prompt: AnsweredPrompt, conversation: ScriptConversation) -> None:
        entry = self._find(entries, prompt, conversation)
        turns = filter(leaves_answer, entry["turns"]) if entry is not None else ()
        for turn, step in zip(turns, prompt.steps, strict=False):
            if step.results and "results" not in turn:
                turn["results"] = results_data(step.results, self.scrubber(conversation))

    def save(self) -> None:
        """Write the file, completely or not at all.

        Raises:
            ToolError: it cannot be written.
        """
        agents = {name: entries for name, entries in self.agents.items() if any(entry["turns"] for entry in entries)}
        text = script_text({"recording": self.head, "model": self.model}, self.prompts, agents)
        atomic.write(self.path, text.encode())

    def save_or_report(self) -> str | None:
        """Write the file; the problem instead of an error, since no answer must be lost because of it."""
        try:
            self.save()
        except ToolError as error:
            return str(error)
        return None


def _model_data(info: ModelInfo) -> Data:
    """The window and prices of a model, which a replay needs."""
    data: Data = {"name": info.name or info.full}
    data |= {key: value for key in ("context", "output") if (value := getattr(info, key))}
    if info.cost is not None:
        cost = info.cost
        data["cost"] = {name: getattr(cost, name) for name in ("input", "output", "cache_read", "cache_write")}
    return data


def _source_of(conversation: ScriptConversation, prompt: AnsweredPrompt) -> Data:
    """The source of a recorded prompt. A summarised conversation starts anew, so the number alone is ambiguous."""
    return {"session": conversation.session, "number": prompt.number, "start": _start_hash(conversation)}


def _start_hash(conversation: ScriptConversation) -> str:
    first = re.sub(r"\s+", " ", conversation.prompts[0].text)
    return hashlib.sha256(first.encode("utf-8", "surrogatepass")).hexdigest()[:8]


class _AnswerParts:
    """The parts of an answer, collected from its events."""

    def __init__(self) -> None:
        self._parts: dict[int, Part] = {}
        self._texts: dict[int, list[str]] = {}
        self._open: set[int] = set()

    @property
    def broken(self) -> bool:
        """True if the last part is incomplete."""
        return bool(self._parts) and list(self._parts)[-1] in self._open

    def add(self, event: Event) -> None:
        """Add an event."""
        match event:
            case TextStart(index) | TextDelta(index):
                self._begin(index, TextPart(""))
            case ReasoningStart(index) | ReasoningDelta(index):
                self._begin(index, ReasoningPart(""))
            case CallStart(index, id, name) | CallEnd(index, id, name):
                self._begin(index, Call(name, "", id))
        match event:
            case CallEnd(index, id, name, arguments):
                self._parts[index], self._texts[index] = Call(name, "", id), [arguments]
            case TextDelta(index, text) | ReasoningDelta(index, text) | CallDelta(index, text) if index in self._texts:
                self._texts[index].append(text)
        if isinstance(event, (TextEnd, ReasoningEnd, CallEnd)):
            self._open.discard(event.index)

    def _begin(self, index: int, part: Part) -> None:
        if index not in self._parts:
            self._parts[index], self._texts[index] = part, []
            self._open.add(index)

    def parts(self) -> list[Part]:
        """The parts in the order of their beginnings; empty texts left out."""
        parts: list[Part] = []
        for index, part in self._parts.items():
            text = "".join(self._texts[index])
            if isinstance(part, Call):
                parts.append(replace(part, arguments=text))
            elif text:
                parts.append(type(part)(text))
        return parts


# ---------------------------------------------------------------------- the data of a recording


def turn_data(
    parts: Sequence[Part],
    scrubber: Scrubber,
    *,
    usage: Usage | None = None,
    finish: FinishReason | None = None,
    error: ModelError | None = None,
    broken: bool = False,
) -> Data:
    """An entry of ``turns:``.

    Args:
        parts: of the answer, arguments as JSON text.
        scrubber: removes secrets.
        usage: tokens, if they are known.
        finish: why the answer stopped; None if it broke off.
        error: with which the answer ended.
        broken: whether the last part was incomplete.
    """
    data: Data = {}
    entries = [_part(part, scrubber) for part in parts]
    kinds = [(ReasoningPart, TextPart, Call).index(type(part)) for part in parts]
    if kinds == sorted(kinds):
        for kind, key in enumerate(("reasoning", "text")):
            texts = [part[key] for part, other in zip(entries, kinds, strict=True) if other == kind]
            data |= {key: texts if len(texts) > 1 else texts[0]} if texts else {}
        data |= {"calls": entries[kinds.index(2) :]} if 2 in kinds else {}
    else:
        data["parts"] = entries
    if not entries and error is None:
        data["text"] = ""
    if usage is not None:
        names = ("input", "output", "reasoning", "cache_read", "cache_write", "total")
        data["usage"] = {name: value for name in names if (value := getattr(usage, name))}
    if finish is not None and finish != ("tool-calls" if 2 in kinds else "stop"):
        data["finish"] = finish
    if error is not None:
        data["error"] = _error(error, scrubber)
        data |= {"cut": "end"} if broken else {}
    return data


def leaves_answer(turn: Data) -> bool:
    """True if a turn of a recording leaves an answer in the conversation, as `Say.fails`."""
    if "error" not in turn:
        return True
    calls = sum(isinstance(part, dict) and "tool" in part for part in turn.get("parts") or turn.get("calls") or ())
    retryable = failure(turn["error"]["kind"]).times is not None or turn["error"].get("times") == 1
    return retryable and calls > ("cut" in turn)


def results_data(results: Iterable[CallResult], scrubber: Scrubber) -> list[Data]:
    """Entries of ``results:``: the text, shortened, and a hash of the whole."""
    entries = []
    for result in results:
        text = scrubber.text(result.output)
        data = {"tool": result.tool, "output": text[:KEPT_CHARS], "hash": fingerprint(text)}
        entries.append(
            data | ({"failed": True} if result.failed else {}) | ({"cut": True} if len(text) > KEPT_CHARS else {})
        )
    return entries


def script_text(head: Mapping[str, Any], prompts: Sequence[Data], agents: Mapping[str, Sequence[Data]]) -> str:
    """The text of a recording; entries without turns are left out."""
    bodies = {name: {"prompts": [entry for entry in entries if entry["turns"]]} for name, entries in agents.items()}
    data = {**head, "prompts": [entry for entry in prompts if entry["turns"]], "agents": bodies}
    return HEADER + dump(data if bodies else {key: value for key, value in data.items() if key != "agents"})


def _part(part: Part, scrubber: Scrubber) -> Data:
    if isinstance(part, TextPart):
        return {"text": scrubber.template_text(part.text)}
    if isinstance(part, ReasoningPart):
        return {"reasoning": scrubber.template_text(part.text)}
    text = scrubber.arguments(argument_text(part))
    arguments: Any = text
    try:
        value = json.loads(text)
        if isinstance(value, dict) and json.dumps(value, ensure_ascii=False) == text:
            arguments = value  # readable, and sent as it was
    except ValueError:
        pass
    return {"tool": part.tool, **({"id": part.id} if part.id else {}), "arguments": arguments}


def _error(error: ModelError, scrubber: Scrubber) -> Data:
    data: Data = {"kind": error.kind, "message": scrubber.text(str(error))}
    if error.status is not None:
        data["status"] = error.status
    if error.retry_after is not None:
        data["retry_after"] = error.retry_after
    if error.retryable and failure(error.kind).times is None:
        data["times"] = 1
    return data
