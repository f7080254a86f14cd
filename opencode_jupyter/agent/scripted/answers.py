"""One answer of a scripted model: its texts, reasoning and calls, or how it fails; and the functions that make one."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import pydantic.dataclasses
from pydantic import ConfigDict, Field

from ...core.suggestions import did_you_mean
from ..errors import RETRYABLE, Kind, ModelError
from ..events import FinishReason, Usage

KINDS: tuple[str, ...] = get_args(Kind)
FINISHES: tuple[str, ...] = get_args(FinishReason)
STRICT_KEYS = ConfigDict(extra="forbid", coerce_numbers_to_str=True, allow_inf_nan=False)
Cut = Literal["", "half", "end"]

_DEFAULTS: dict[str, tuple[str, int | None]] = {
    "auth": ("The key is wrong", 401),
    "not_found": ("There is no such model", 404),
    "bad_request": ("The request was not taken", 400),
    "rate_limit": ("Too many requests", 429),
    "overloaded": ("The provider is overloaded", 529),
    "quota": ("No credit is left", 402),
    "overflow": ("The conversation is longer than the model's window", 400),
    "refused": ("The provider's filter held the answer back", None),
    "network": ("No connection", None),
    "timeout": ("No data for too long", None),
    "cut": ("The stream ended before the answer was complete", None),
}


def script_error(name: str, message: str) -> ModelError:
    """The error for a mistake in a script."""
    return ModelError(f"The script {name}: {message}", "script", provider="scripted")


def missing_script_error(path: Path) -> ModelError:
    """The error for a script's file that does not exist, with names beside it that resemble it."""
    scripts = [file.name for file in path.parent.glob("*") if file.suffix in (".py", ".yaml", ".yml", ".json")]
    text = f"There is no script {path}.{did_you_mean(path.name, scripts)}"
    return ModelError(text, "script", provider="scripted")


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text for the user."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningPart:
    """Reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool.

    Attributes:
        arguments: any JSON value; a text is sent unchanged, to show broken JSON.
        id: "" for a generated one.
    """

    tool: str
    arguments: Any = field(default_factory=dict)
    id: str = ""


Part = TextPart | ReasoningPart | Call


@pydantic.dataclasses.dataclass(frozen=True, slots=True, config=STRICT_KEYS)
class Failure:
    """How a request fails.

    Attributes:
        retry_after: seconds that the provider asks to wait.
        times: how many requests in a row fail like this; None for all of them.
    """

    kind: Kind
    message: str = ""
    retry_after: float | None = Field(default=None, ge=0)
    status: int | None = None
    times: int | None = Field(default=None, ge=0)

    def error(self) -> ModelError:
        """The failure as it is raised."""
        message, status = _DEFAULTS.get(self.kind, (f"The scripted model fails ({self.kind})", None))
        return ModelError(
            self.message or message,
            self.kind,
            provider="scripted",
            status=self.status if self.status is not None else status,
            retry_after=self.retry_after,
        )


@pydantic.dataclasses.dataclass(frozen=True, slots=True, config=STRICT_KEYS)
class RecordedResult:
    """The result of a call when the script was recorded.

    Attributes:
        hash: of the whole text, without what changes from run to run; see `replay.fingerprint`.
        cut: whether `output` is less than the whole.
    """

    tool: str
    output: str = ""
    hash: str = ""
    failed: bool = False
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Say:
    """One answer of the model.

    Attributes:
        parts: its texts, reasoning and calls, in order.
        usage: None for an estimate.
        finish: why it stops; None for ``tool-calls`` with calls and ``stop`` without.
        failure: raised after the parts were streamed.
        cut: where the stream breaks within the last part: in its middle (``half``) or at its ``end``.
        delay: seconds before the first text.
        results: of its calls, when it was recorded.
        place: of the turn in the script, for messages.
    """

    parts: tuple[Part, ...] = ()
    usage: Usage | None = None
    finish: FinishReason | None = None
    failure: Failure | None = None
    cut: Cut = ""
    delay: float = 0.0
    results: tuple[RecordedResult, ...] | None = None
    place: str = ""

    @property
    def calls(self) -> tuple[Call, ...]:
        """Its calls, in order."""
        return tuple(part for part in self.parts if isinstance(part, Call))

    @property
    def fails(self) -> bool:
        """True if it leaves no answer in the conversation, so the same request comes again or the run ends.

        A stream that breaks after a complete call ends the step with that call: it may have changed something.
        """
        if self.failure is None:
            return False
        complete = self.parts[:-1] if self.cut else self.parts
        return self.failure.kind not in RETRYABLE or not any(isinstance(part, Call) for part in complete)

    @property
    def reason(self) -> FinishReason:
        """Why it stops."""
        return self.finish or ("tool-calls" if self.calls else "stop")


def failure(kind: Kind, **more: Any) -> Failure:
    """A failure. One that goes away happens once unless `times` is given, any other always."""
    times = more.pop("times", 1 if kind in RETRYABLE else None)
    return Failure(kind, times=times, **more)


def call(tool: str, /, *args: Any, **arguments: Any) -> Call:
    """A call of a tool, made in Python.

    For example: ``say("I look.", call("read", filePath="a.txt"))``.

    Args:
        tool: its name.
        *args: at most one: all arguments as one value (a text is sent unchanged).
        **arguments: arguments by name.

    Raises:
        TypeError: both ways at once.
    """
    if len(args) > 1 or (args and arguments):
        raise TypeError("call takes arguments by name, or one value that is all of them")
    return Call(tool, args[0] if args else arguments)


def thought(text: str) -> ReasoningPart:
    """Reasoning for a Python script."""
    return ReasoningPart(text)


def say(
    *parts: str | Part,
    usage: Usage | None = None,
    finish: FinishReason | None = None,
    error: Kind | Failure | None = None,
    cut: bool = False,
    delay: float = 0.0,
) -> Say:
    """One answer, made in Python.

    For example: ``yield say("I look.", call("read", filePath="a.txt"))``.

    Args:
        *parts: texts, and what `call` and `thought` return, in order.
        usage: tokens; estimated if left out.
        finish: why it stops; derived from its calls if left out.
        error: a kind of `ModelError`, or `failure(kind, retry_after=…, times=…)`: raised after the parts.
        cut: the stream breaks in the middle of the last part.
        delay: seconds before the first text.

    Raises:
        ValueError: there is no such kind or reason.
        TypeError: a part is something else.
    """
    if isinstance(error, str) and error not in KINDS:
        raise ValueError(f"{error!r} is not a kind of error; there are {', '.join(KINDS)}")
    if finish is not None and finish not in FINISHES:
        raise ValueError(f"{finish!r} is not a reason to stop; there are {', '.join(FINISHES)}")
    parts_of_turn = tuple(TextPart(part) if isinstance(part, str) else part for part in parts)
    for part in parts_of_turn:
        if not isinstance(part, (TextPart, ReasoningPart, Call)):
            raise TypeError(f"a turn is made of texts, call(...) and thought(...), not {type(part).__name__}")
    if cut and error is None:
        error = "cut"
    failing = failure(error) if isinstance(error, str) else error
    return Say(parts_of_turn, usage, finish, failing, "half" if cut else "", delay)


def as_say(value: Any) -> Say:
    """A turn from what a Python script yields: a `say`, a text, a `call`, or a list of texts and calls.

    Raises:
        TypeError: it is something else.
    """
    if isinstance(value, Say):
        return value
    return say(*value) if isinstance(value, (list, tuple)) else say(value)
