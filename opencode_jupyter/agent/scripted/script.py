"""Scripts in YAML: lists of turns for prompts and agents, checked by pydantic models, and the next turn of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WrapValidator, model_validator

from ...core.suggestions import did_you_mean
from ..errors import RETRYABLE, ModelError
from ..events import FinishReason, Usage
from ..model import Cost
from ..structured import NAME as STRUCTURED
from .answers import (
    STRICT_KEYS,
    Call,
    Cut,
    Failure,
    Part,
    ReasoningPart,
    RecordedResult,
    Say,
    TextPart,
    as_say,
    failure,
    script_error,
)
from .script_conversation import AnsweredPrompt, CallResult, ScriptConversation
from .templates import check_templates, fill_say, result_values, template_values
from .yaml_document import ScriptDocument

REMOVED = frozenset("when cases capture label goto repeat turns variables".split())
"""Keys of earlier versions, whose job Python does."""
MOST_PROBLEMS = 10
_TOOL = re.compile(r"[^\s{}:,]+")


def tuple_of(value: Any) -> Any:
    """A list; a single value becomes a list."""
    return value if isinstance(value, (list, tuple)) else (value,)


Texts = Annotated[tuple[str, ...], BeforeValidator(tuple_of)]
Tokens = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0)]


class _Form(BaseModel):
    model_config = ConfigDict(**STRICT_KEYS, arbitrary_types_allowed=True)


class _CallForm(_Form):
    tool: str
    arguments: Any = None
    id: str = ""

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, value: Any) -> Any:
        example = "a call is written `- read: {filePath: a.txt}`, or with tool:, arguments: and id:"
        if isinstance(value, str):
            value = {"tool": value}
        if not isinstance(value, dict) or ("tool" not in value and len(value) != 1):
            raise ValueError(example)
        if "tool" not in value:
            ((tool, arguments),) = value.items()
            value = {"tool": tool, "arguments": arguments}
        if not _TOOL.fullmatch(str(value["tool"])):
            raise ValueError(f"{value['tool']!r} is no tool's name; {example}")
        return value

    def call(self) -> Call:
        return Call(self.tool, {} if self.arguments is None else self.arguments, self.id)


def _call(value: Any, handler: Callable[[Any], _CallForm]) -> Call:
    return value if isinstance(value, Call) else handler(value).call()


def _part(value: Any, handler: Callable[[Any], _CallForm]) -> Part:
    if isinstance(value, dict) and len(value) == 1:
        ((kind, text),) = value.items()
        if kind in ("text", "reasoning"):
            return TextPart(str(text)) if kind == "text" else ReasoningPart(str(text))
    return _call(value, handler)


def _failure(value: Any, handler: Callable[[Any], Failure]) -> Failure:
    value = {"kind": value} if isinstance(value, str) else value
    if isinstance(value, dict) and str(value.get("kind")) in RETRYABLE:
        value = {"times": 1, **value}
    return handler(value)


class _TurnForm(_Form):
    text: Texts = ()
    reasoning: Texts = ()
    calls: list[Annotated[_CallForm, WrapValidator(_call)]] = []
    parts: list[Annotated[_CallForm, WrapValidator(_part)]] = []
    usage: Usage | None = None
    finish: FinishReason | None = None
    delay: Amount = 0
    error: Annotated[Failure, WrapValidator(_failure)] | None = None
    cut: Literal["end", True, False] = False
    results: tuple[RecordedResult, ...] | None = None

    @model_validator(mode="after")
    def _check(self) -> _TurnForm:
        keys = self.model_fields_set
        if "parts" in keys and keys & {"text", "reasoning", "calls"}:
            raise ValueError("parts: holds everything in order; text:, reasoning: and calls: cannot stand beside it")
        if not keys - {"delay"}:
            raise ValueError("the turn is empty; it needs text:, calls: or error:")
        for part in self.say().parts:
            check_templates(part.arguments if isinstance(part, Call) else part.text)
        return self

    def say(self) -> Say:
        """The answer that it describes."""
        reasoning = map(ReasoningPart, filter(None, self.reasoning))
        parts: list[Any] = [*reasoning, *map(TextPart, filter(None, self.text)), *self.calls, *self.parts]
        cut: Cut = "end" if self.cut == "end" else "half" if self.cut else ""
        error = self.error or (failure("cut") if cut else None)
        return Say(tuple(parts), self.usage, self.finish, error, cut, self.delay, self.results)


def _turn(value: Any, handler: Callable[[Any], _TurnForm]) -> Say:
    if isinstance(value, (Say, Call)):
        turn = as_say(value)
        for part in turn.parts:
            check_templates(part.arguments if isinstance(part, Call) else part.text)
        return turn
    return handler({"text": value} if isinstance(value, str) else value).say()


Turns = list[Annotated[_TurnForm, WrapValidator(_turn)]]


class PromptEntry(_Form):
    """The turns that answer certain prompts: an entry of ``prompts:``."""

    prompt: str | None = None
    match: re.Pattern[str] | None = None
    number: Annotated[tuple[int, ...], BeforeValidator(tuple_of)] = ()
    agent: Texts = ()
    turns: Turns
    recorded: dict[str, Any] = {}

    @property
    def answers(self) -> list[Say]:
        """Its turns, as they are after validation."""
        answers: list[Any] = self.turns
        return answers

    @property
    def is_conditional(self) -> bool:
        """True if it is meant for certain prompts only."""
        return self.prompt is not None or self.match is not None or bool(self.number or self.agent)

    def fits(self, prompt: AnsweredPrompt, agent: str, scrub: Callable[[str], str]) -> bool:
        """True if it is meant for a prompt."""
        if self.prompt is not None:
            texts = {_normalized(scrub(text)) for text in (*prompt.texts, prompt.all_text)}
            if _normalized(scrub(self.prompt)) not in texts:
                return False
        if self.match is not None and not self.match.search(prompt.all_text):
            return False
        return (not self.number or prompt.number in self.number) and (not self.agent or agent in self.agent)

    def __str__(self) -> str:
        conditions = [f"prompt {shortened(_normalized(self.prompt), 80)!r}"] if self.prompt is not None else []
        conditions += [f"match {self.match.pattern!r}"] if self.match is not None else []
        conditions += [f"number {', '.join(map(str, self.number))}"] if self.number else []
        conditions += [f"agent {', '.join(self.agent)}"] if self.agent else []
        return ", ".join(conditions) or "any prompt"


class Body(_Form):
    """The turns of a script, or of one of its agents."""

    turns: Annotated[Turns, Field(min_length=1)] | None = None
    prompts: list[PromptEntry] | None = None

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, value: Any) -> Any:
        return {"turns": value} if isinstance(value, list) else value

    @model_validator(mode="after")
    def _require_turns_or_prompts(self) -> Body:
        if (self.turns is None) == (self.prompts is None) and getattr(self, "recording", None) is None:
            raise ValueError("it needs either turns: (for any prompt) or prompts: (turns for each)")
        return self

    @property
    def entries(self) -> list[PromptEntry]:
        """Its entries; turns for any prompt are one entry."""
        if self.turns is None:
            return self.prompts or []
        return [PromptEntry.model_construct(turns=self.turns)]


class _ModelForm(_Form):
    name: str | None = None
    context: Tokens | None = None
    output: Tokens | None = None
    images: bool | None = None
    documents: bool | None = None
    reasons: bool | None = None
    cost: Cost | None = None


def model_properties(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The arguments of `ModelInfo` in ``model:`` of a script.

    Raises:
        ModelError: kind ``script``: the mistakes in it; `name` is the script's.
    """
    try:
        form = _ModelForm.model_validate(value)
    except ValidationError as error:
        raise _mistakes_error(error, ScriptDocument(name, value)) from None
    return {key: item for key, item in form if item is not None}


class _ScriptForm(Body):
    about: str = ""
    model: _ModelForm = _ModelForm()
    speed: Amount | None = None
    strict: bool = False
    agents: dict[str, Body] = {}
    recording: dict[str, Any] | None = None


# ---------------------------------------------------------------------- playing


@dataclass(frozen=True, slots=True)
class NextTurn:
    """The turn that comes next.

    Attributes:
        turn: with its templates filled in.
        before: the turn before it in this prompt; None for the first.
        place: of the script's entry for the prompt.
        prompt_differs: in a recording: the prompt was another.
    """

    turn: Say
    before: Say | None = None
    place: str = ""
    prompt_differs: bool = False


def next_turn(name: str, turns: Generator[Say, list[CallResult]], prompt: AnsweredPrompt, failures: int) -> NextTurn:
    """The turn that follows those in the conversation; turns that fail leave none there.

    Args:
        name: of the script.
        turns: yields each turn and is sent the results of its calls; closed at the end.
        prompt: with the steps so far.
        failures: how often this request has failed already.

    Raises:
        ModelError: kind ``script``: no turn is left.
    """
    before: Say | None = None
    passed = 0
    results: list[CallResult] | None = None
    try:
        while True:
            turn = next(turns) if results is None else turns.send(results)
            last = passed == len(prompt.steps)
            if turn.fails and turn.failure is not None:
                times = turn.failure.times
                if last and (times is None or failures < times):
                    return NextTurn(turn, before)
                failures -= (times or 0) if last else 0
                results = []
            elif last:
                return NextTurn(turn, before)
            else:
                results, before = prompt.steps[passed].results, turn
                passed += 1
    except StopIteration:
        last_place = f" (the last is at {before.place})" if before is not None and before.place else ""
        problem = (
            f"turn {passed + 1} of prompt {prompt.number} ({shortened(prompt.text, 60)!r}) was requested, but it has "
            f"only {passed}{last_place}. {_results(prompt)} Add a turn; one without calls ends the answer."
        )
        raise script_error(name, problem) from None
    finally:
        turns.close()


def _results(prompt: AnsweredPrompt) -> str:
    results = prompt.steps[-1].results if prompt.steps else []
    results_text = "; ".join(f"{result.tool} {result.outcome}: {shortened(result.output)!r}" for result in results[:5])
    return f"The last results: {results_text}." if results else "There are no results yet."


class Script:
    """A script in YAML.

    Raises:
        ModelError: kind ``script``: the mistakes in it, each with its place.
    """

    def __init__(self, document: ScriptDocument, path: Path | None = None) -> None:
        self.name = document.name
        self.path = path
        try:
            self._form = _ScriptForm.model_validate(document.value)
        except ValidationError as error:
            raise _mistakes_error(error, document) from None
        self.speed, self.strict, self.recording = self._form.speed, self._form.strict, self._form.recording
        self.model = {key: item for key, item in self._form.model if item is not None}
        self._add_places(self._form, (), document)
        for agent, body in self._form.agents.items():
            self._add_places(body, ("agents", agent), document)
        calls = [call for entry in self._form.entries for turn in entry.answers for call in turn.calls]
        agents = {call.arguments.get("subagent_type") for call in calls if isinstance(call.arguments, dict)}
        self._called_agents = agents - {None, *self._form.agents}

    def _add_places(self, body: Body, path: tuple[Any, ...], document: ScriptDocument) -> None:
        lists = [((*path, "turns"), body.turns)] if body.turns is not None else []
        lists += [((*path, "prompts", index, "turns"), entry.turns) for index, entry in enumerate(body.prompts or ())]
        for path_of_list, turns in lists:
            says: list[Any] = turns
            says[:] = [replace(turn, place=document.place((*path_of_list, index))) for index, turn in enumerate(says)]
            if self.recording is None:
                self._check_reachable(says)

    def _check_reachable(self, says: list[Say]) -> None:
        # An answer with a required form is requested again until this call gives it.
        if any(call.tool == STRUCTURED for turn in says for call in turn.calls):
            return
        for turn, after in pairwise(says):
            if turn.parts and not turn.calls and not turn.fails:
                problem = (
                    f"{after.place}: it can't be reached: the turn before it ({turn.place}) makes no calls, so the "
                    "answer ends there. For several prompts, write prompts: with turns: for each"
                )
                raise script_error(self.name, problem)

    def answers(self, conversation: ScriptConversation, scrub: Callable[[str], str]) -> bool:
        """True if it has turns of its own for a request to title or summarise the conversation."""
        chosen = self.choose(conversation, scrub) if conversation.agent in self._form.agents else None
        return chosen is not None and not chosen[1]

    def choose(self, conversation: ScriptConversation, scrub: Callable[[str], str]) -> tuple[PromptEntry, bool] | None:
        """The entry for the last prompt, and whether it is only the recorded one of that number.

        Entries with conditions come before those without. If several fit, each serves one prompt in turn, and the last
        serves all that follow: so the same prompt can be sent twice, and a cell can run again.
        """
        entries = self._form.agents.get(conversation.agent, self._form).entries
        used: set[int] = set()
        chosen: tuple[PromptEntry, bool] | None = None
        for prompt in conversation.prompts:
            fitting = [index for index, entry in enumerate(entries) if entry.fits(prompt, conversation.agent, scrub)]
            fitting = [index for index in fitting if entries[index].is_conditional] or fitting
            chosen = None
            if fitting:
                index = next((index for index in fitting if index not in used), fitting[-1])
                used.add(index)
                chosen = entries[index], False
            elif self.recording is not None and prompt.number <= len(entries):
                chosen = entries[prompt.number - 1], True
        return chosen

    def next(
        self, conversation: ScriptConversation, prompt: AnsweredPrompt, failures: int, scrub: Callable[[str], str]
    ) -> NextTurn:
        """The turn that comes next.

        Raises:
            ModelError: kind ``script``: nothing in it is meant for the prompt or the agent, no turn is left, or a
                template has no value.
        """
        if self._form.turns is not None and conversation.agent in self._called_agents:
            agent = conversation.agent
            problem = f"it calls the agent {agent} but has no turns for it. Add them under agents: {agent}:"
            raise script_error(self.name, problem)
        chosen = self.choose(conversation, scrub)
        if chosen is None:
            entries = "\n".join(f"- {entry}" for entry in self._form.entries)
            no_entry = f"no entry of prompts: is meant for prompt {prompt.number}, {shortened(prompt.text, 120)!r}"
            raise script_error(self.name, f"{no_entry}. There are:\n{entries}")
        entry, differs = chosen
        turn = next_turn(self.name, self._fill_turns(entry, conversation), prompt, failures)
        place = entry.answers[0].place if entry.answers else ""
        return replace(turn, place=place, prompt_differs=differs)

    def _fill_turns(self, entry: PromptEntry, conversation: ScriptConversation) -> Generator[Say, list[CallResult]]:
        values, results = template_values(conversation), list[CallResult]()
        for turn in entry.answers:
            try:
                filled = fill_say(turn, values | result_values(results))
            except ValueError as error:
                raise script_error(self.name, f"{error} ({turn.place})") from None
            results = yield filled


def _mistakes_error(error: ValidationError, document: ScriptDocument) -> ModelError:
    errors = error.errors(include_url=False)
    removed = {
        f"{mistake['loc'][-1]}: ({document.place(mistake['loc'])})"
        for mistake in errors
        if mistake["type"] == "extra_forbidden" and mistake["loc"][-1] in REMOVED
    }
    if removed:
        problem = (
            "YAML scripts have no conditions, jumps, captures or repetitions. Write the script in Python: a generator "
            "`def script(prompt):` yields turns and receives the results of their calls "
            '(see "A script in Python" in docs/how-to/script-a-model.md)'
        )
        return script_error(document.name, f"{', '.join(sorted(removed))}: {problem}")
    problems = dict.fromkeys(f"{document.place(mistake['loc'])}: {_problem(mistake)}" for mistake in errors)
    lines = list(problems)[:MOST_PROBLEMS]
    lines += [f"and {len(problems) - MOST_PROBLEMS} more"] if len(problems) > MOST_PROBLEMS else []
    return script_error(document.name, ("\n" if len(lines) > 1 else "") + "\n".join(lines))


def _problem(error: Any) -> str:
    key = next((key for key in reversed(error["loc"]) if isinstance(key, str)), "a script")
    if error["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{key}: is not known here.{_suggestion(key)}"
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    if error["type"] in ("model_type", "dataclass_type"):
        return f"{key}: must be a mapping (name: value)"
    return f"{key}: {error['msg'][0].lower()}{error['msg'][1:]}"


def _suggestion(key: str) -> str:
    forms = (_ScriptForm, _ModelForm, PromptEntry, _TurnForm, _CallForm)
    names = {name for form in forms for name in form.model_fields} | {*Usage.__annotations__, *Cost.__annotations__}
    return did_you_mean(key, sorted(names))


def shortened(text: str, most: int = 300) -> str:
    """A text as a message shows it."""
    return text if len(text) <= most else text[: most - 1] + "…"


def _normalized(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
