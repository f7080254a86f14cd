"""The parts of a scripted model's turns: text, thoughts, calls and errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from ..errors import RETRYABLE, Kind, ModelError
from ..events import FinishReason, Usage

if TYPE_CHECKING:
    from .conditions import When

KINDS: tuple[str, ...] = get_args(Kind)
"""Kinds of failures a turn can have."""
FINISHES: tuple[str, ...] = get_args(FinishReason)
"""Reasons a turn can end with."""


@dataclass(frozen=True, slots=True)
class Words:
    """Text for the user."""

    text: str


@dataclass(frozen=True, slots=True)
class Thought:
    """Reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool.

    Attributes:
        arguments: any JSON value; a text is sent as it stands, so that broken JSON can be shown.
        id: "" for one that is made up.
    """

    tool: str
    arguments: Any = field(default_factory=dict)
    id: str = ""


Part = Words | Thought | Call
Cut = Literal["", "half", "end"]


@dataclass(frozen=True, slots=True)
class Failure:
    """How a request fails.

    Attributes:
        retry_after: seconds that the provider asks to wait.
        times: how many requests in a row fail like this; None for all of them.
    """

    kind: Kind
    message: str = ""
    retry_after: float | None = None
    status: int | None = None
    times: int | None = None

    def error(self) -> ModelError:
        """The failure as it is raised."""
        message, status = _SAID.get(self.kind, (f"The scripted model fails ({self.kind})", None))
        return ModelError(
            self.message or message,
            self.kind,
            provider="scripted",
            status=self.status if self.status is not None else status,
            retry_after=self.retry_after,
        )


_SAID: dict[str, tuple[str, int | None]] = {
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


def failure(kind: Kind, **more: Any) -> Failure:
    """A failure; one that may go away by itself happens once if `times` is not given, any other always."""
    times = more.pop("times", 1 if kind in RETRYABLE else None)
    return Failure(kind, times=times, **more)


@dataclass(frozen=True, slots=True)
class Recorded:
    """The result of a call when the script was recorded.

    Attributes:
        hash: of the whole text, less what changes from run to run; see `replay.fingerprint`.
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
        parts: what it says, in order.
        usage: None for an estimate.
        finish: why it stops; None for ``tool-calls`` with calls and ``stop`` without.
        failure: raised after the parts were streamed.
        cut: where the stream breaks off within the last part: ``half`` of it or its ``end``; "" if it does not.
        delay: seconds before the first word.
        label: its name, for `goto` and for its results.
        when: it is passed over where this does not hold.
        capture: regular expressions searched in the last results; their named groups become variables.
        goto: the label that comes after it.
        results: what its calls gave when it was recorded.
        place: where it stands, for messages.
        round: which time it is repeated, from 1.
    """

    parts: tuple[Part, ...] = ()
    usage: Usage | None = None
    finish: FinishReason | None = None
    failure: Failure | None = None
    cut: Cut = ""
    delay: float = 0.0
    label: str = ""
    when: When | None = None
    capture: tuple[str, ...] = ()
    goto: str = ""
    results: tuple[Recorded, ...] | None = None
    place: str = ""
    round: int = 1

    @property
    def calls(self) -> tuple[Call, ...]:
        """Its calls, in order."""
        return tuple(part for part in self.parts if isinstance(part, Call))

    @property
    def jumps(self) -> bool:
        """True if it says nothing and only leads elsewhere."""
        return bool(self.goto) and not self.parts and self.failure is None and self.finish is None

    @property
    def fails(self) -> bool:
        """True if it leaves no answer in the conversation, so that the same is asked again or the run ends.

        A stream that breaks off behind a whole call ends the step with that call: it may have done something.
        """
        if self.failure is None:
            return False
        whole = self.parts[:-1] if self.cut else self.parts
        return self.failure.kind not in RETRYABLE or not any(isinstance(part, Call) for part in whole)

    @property
    def reason(self) -> FinishReason:
        """Why it stops."""
        return self.finish or ("tool-calls" if self.calls else "stop")


def call(tool: str, /, *args: Any, **arguments: Any) -> Call:
    """A call of a tool, made in Python.

    For example: ``say("I look.", call("read", filePath="a.txt"))``.

    Args:
        tool: its name.
        *args: at most one: all arguments as one value, where names do not do (a text goes out as it stands).
        **arguments: arguments by name.

    Raises:
        TypeError: both ways at once.
    """
    if len(args) > 1 or (args and arguments):
        raise TypeError("call takes arguments by name, or one value that is all of them")
    return Call(tool, args[0] if args else arguments)


def thought(text: str) -> Thought:
    """Reasoning for a Python script."""
    return Thought(text)


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
        *parts: texts, `call`s and `thought`s, in order.
        usage: tokens; estimated if left out.
        finish: why it stops; told by its calls if left out.
        error: a kind of `ModelError`, or `failure(kind, retry_after=…, times=…)`: raised after the parts.
        cut: the stream breaks off in the middle of the last part.
        delay: seconds before the first word.

    Raises:
        ValueError: there is no such kind or reason.
        TypeError: a part is something else.
    """
    if isinstance(error, str) and error not in KINDS:
        raise ValueError(f"{error!r} is not a kind of error; there are {', '.join(KINDS)}")
    if finish is not None and finish not in FINISHES:
        raise ValueError(f"{finish!r} is not a reason to stop; there are {', '.join(FINISHES)}")
    made = []
    for part in parts:
        one = Words(part) if isinstance(part, str) else part
        if not isinstance(one, (Words, Thought, Call)):
            raise TypeError(f"a turn is made of texts, call(...) and thought(...), not {type(part).__name__}")
        made.append(one)
    if cut and error is None:
        error = "cut"
    failing = error if isinstance(error, Failure) or error is None else failure(error)
    return Say(tuple(made), usage, finish, failing, "half" if cut else "", delay)


def as_say(given: Any) -> Say:
    """A turn from what a Python script yields: a `say`, a text, a `call`, or a list of texts and calls.

    Raises:
        TypeError: it is something else.
    """
    if isinstance(given, Say):
        return given
    return say(*given) if isinstance(given, (list, tuple)) else say(given)
