"""The model that plays a script, in YAML or Python."""

from __future__ import annotations

import functools
import weakref
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core.fingerprint import Stamp, stamp
from ..compaction.limits import CHARS_PER_TOKEN, estimate, estimate_turns
from ..errors import ModelError
from ..events import Event, Usage
from ..model import ModelInfo, Request
from ..turns import Turn
from .answers import ReasoningPart, Say, TextPart, script_error
from .python_script import PythonScript, ScriptFunction, python_script
from .replay import Difference, differences
from .script import NextTurn, Script, model_properties, shortened
from .script_conversation import SUMMARY_AGENTS, TITLE_AGENT, ScriptConversation
from .scrub import Scrubber, Secrets
from .streaming import argument_text, call_ids, piece_interval, stream
from .yaml_document import ScriptDocument, read_document

SUFFIXES = (".yaml", ".yml", ".json", ".py")
"""Suffixes of files that can be a script."""
TOOL_TOKENS = 50
"""Estimated tokens of a tool's schema, beside its description."""
LONGEST_TITLE = 50

AnyScript = Script | PythonScript


class ScriptedModel:
    """A model without a provider: a script contains its answers.

    The conversation in the request alone determines the next turn (see `conversation`), except for failures that go
    away: they are counted for as long as the same request comes again.

    Args:
        turns: a list of turns for any prompt, each as in a YAML script (a dict, or a text) or made by `say`; or a
            generator function as in a Python script; or a script that was read.
        prompts: instead of `turns`, entries as under ``prompts:``.
        agents: turns for other agents, as under ``agents:``.
        name: the model's id.
        speed: milliseconds between two pieces of a stream; 0 for no delay.
        strict: a replay that differs from its recording is an error.
        info: properties of the model, as under ``model:``.

    Attributes:
        differences: between a replay and its recording, oldest first.

    Raises:
        ModelError: kind ``script``: there is a mistake in the script.
    """

    def __init__(
        self,
        turns: Sequence[Any] | ScriptFunction | AnyScript | None = None,
        *,
        prompts: Sequence[Mapping[str, Any]] | None = None,
        agents: Mapping[str, Any] | None = None,
        name: str = "script",
        speed: float | None = None,
        strict: bool = False,
        info: Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(turns, (Script, PythonScript)):
            self._script: AnyScript = turns
        elif callable(turns):
            self._script = PythonScript(name, turns, dict(agents or {}), dict(info or {}), speed, strict=strict)
        else:
            keys = {"turns": turns, "prompts": prompts, "agents": agents, "speed": speed, "model": info}
            value = {key: value for key, value in keys.items() if value is not None}
            self._script = Script(ScriptDocument(name, value | {"strict": strict}))
        self._name = name
        self._stamp: Stamp | None = None
        self._info = _info(self._script, name)
        self._failures: weakref.WeakKeyDictionary[Turn, int] = weakref.WeakKeyDictionary()
        self._reported: set[tuple[Any, ...]] = set()
        self.differences: list[Difference] = []

    @property
    def info(self) -> ModelInfo:
        """Properties of the model."""
        return self._info

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Stream the next turn.

        Raises:
            ModelError: kind ``script``: the script has no turn for this, or a mistake since it was edited; or the
                failure that the script contains.
        """
        script = self._current_script()
        conversation = ScriptConversation(request)
        chosen = self._next(script, conversation)
        differing = self._compare(script, chosen, conversation)
        metadata: dict[str, Any] | None = (
            {"replay": {"differences": [str(difference) for difference in differing]}} if differing else None
        )
        turn = chosen.turn
        usage = turn.usage if turn.usage is not None else _estimate(request, turn)
        ids = call_ids(turn.calls, conversation.call_ids, conversation.turns + 1)
        seconds = piece_interval(script.speed)
        key = conversation.key
        try:
            async for event in stream(turn, ids=ids, seconds=seconds, usage=usage, metadata=metadata):
                yield event
        except ModelError:
            if key is not None:
                self._failures[key] = self._failures.get(key, 0) + 1
            raise

    async def aclose(self) -> None:
        """Do nothing: a script holds nothing open."""

    def _next(self, script: AnyScript, conversation: ScriptConversation) -> NextTurn:
        scrub = _scrub_function(conversation.directory)
        answer = _answer_without_script(conversation)
        if answer is not None and not script.answers(conversation, scrub):
            return NextTurn(answer)
        if conversation.prompt is None:
            raise script_error(script.name, "the request holds no prompt to answer.")
        failures = self._failures.get(conversation.key, 0) if conversation.key is not None else 0
        return script.next(conversation, conversation.prompt, failures, str if script.recording is None else scrub)

    def _compare(self, script: AnyScript, chosen: NextTurn, conversation: ScriptConversation) -> list[Difference]:
        """The differences from the recording at the conversation's end; each is reported once.

        Raises:
            ModelError: kind ``script``, where the script is strict.
        """
        differing: list[Difference] = []
        prompt = conversation.prompt
        if prompt is None:
            return differing
        if chosen.prompt_differs and not prompt.steps:
            differing.append(Difference("prompt", chosen.place))
        if chosen.before is not None and chosen.before.results is not None:
            differing += differences(chosen.before, prompt.steps[-1].results, _scrub_function(conversation.directory))
        if differing and script.strict:
            raise script_error(script.name, "the replay does not fit: " + "\n".join(map(str, differing)))
        for difference in differing:
            key = (conversation.session, prompt.number, len(prompt.steps), difference)
            if key not in self._reported:
                self._reported.add(key)
                self.differences.append(difference)
        return differing

    def _current_script(self) -> AnyScript:
        """The script, read again if its file has changed."""
        path = self._script.path
        if path is not None and ((state := stamp(path)) is None or state != self._stamp):
            self._script = _read(path)
            self._info = _info(self._script, self._name)
            self._stamp = state
        return self._script

    def __getstate__(self) -> dict[str, Any]:
        """The state for another process, without what only means something here."""
        return {**self.__dict__, "_failures": None, "_reported": None, "differences": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._failures, self._reported, self.differences = weakref.WeakKeyDictionary(), set(), []

    def __repr__(self) -> str:
        return f"<scripted model {self._name}>"


def load(path: Path | str, *, name: str | None = None) -> ScriptedModel:
    """The model that plays the script in a file.

    Args:
        path: a YAML (``.yaml``, ``.yml``, ``.json``) or Python (``.py``) file; it is read again when it has changed.
            The suffix can be left out.
        name: the model's id; default: the file's name without its suffix.

    Raises:
        ModelError: kind ``script``: there is no such file, or it has a mistake; the message names line and column.
    """
    path = Path(path)
    if not path.suffix or not path.exists():
        with_suffix = (path.with_name(path.name + suffix) for suffix in SUFFIXES)
        path = next((file for file in with_suffix if file.is_file()), path)
    if path.suffix not in SUFFIXES and path.exists():
        text = f"A script is a file ending in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, not {path.name}"
        raise ModelError(text, "script", provider="scripted")
    state = stamp(path)
    model = ScriptedModel(_read(path), name=name or path.stem)
    model._stamp = state
    return model


def _read(path: Path) -> AnyScript:
    return python_script(path) if path.suffix == ".py" else Script(read_document(path), path)


def _info(script: AnyScript, name: str) -> ModelInfo:
    properties = {"name": name, "reasons": True, "documents": True, **model_properties(script.model, script.name)}
    return ModelInfo("scripted", name, media_in_results=True, **properties)


@functools.lru_cache(8)
def _scrub_function(directory: str) -> Callable[[str], str]:
    """Removes from a text what a recorder removes; cached, since every request compares all prompts again."""
    return functools.lru_cache(256)(Scrubber(Secrets(), directory).text)


def _answer_without_script(conversation: ScriptConversation) -> Say | None:
    """A session's title or a summary, made from the conversation; None for other agents."""
    if conversation.agent == TITLE_AGENT:
        lines = conversation.prompts[0].text.strip().splitlines() if conversation.prompts else []
        return Say((TextPart(shortened(lines[0].strip(), LONGEST_TITLE) if lines else "Conversation"),))
    if conversation.agent not in SUMMARY_AGENTS:
        return None
    lines = ["The conversation so far, listed by the scripted model:"]
    for prompt in conversation.prompts[:-1] or conversation.prompts:
        lines.append(f"- asked: {shortened(' '.join(prompt.text.split()), 200)}")
        lines += [f"  - {result.tool}: {result.outcome}" for step in prompt.steps for result in step.results]
    return Say((TextPart("\n".join(lines)),))


def _estimate(request: Request, answer: Say) -> Usage:
    """Tokens of a request and its answer, by their length."""
    tools = sum(TOOL_TOKENS + estimate(tool.description) for tool in request.tools)
    sent = estimate("".join(request.system)) + tools + estimate_turns(request.turns)
    thought = sum(len(part.text) for part in answer.parts if isinstance(part, ReasoningPart))
    text = sum(len(part.text) for part in answer.parts if isinstance(part, TextPart))
    text += sum(len(call.tool) + len(argument_text(call)) for call in answer.calls)
    return Usage(sent, -(-text // CHARS_PER_TOKEN), -(-thought // CHARS_PER_TOKEN))
