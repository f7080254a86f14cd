"""Every error a tool call can end with.

ToolError
├── UnknownToolError            no tool of that name
├── UnknownSessionError         no session of that id (a KeyError as well)
├── InvalidArgumentsError       the arguments do not fit the tool's schema (``.cause`` is pydantic's error)
│   └── UnknownOptionError      a function of this package has no option of that name (a TypeError as well)
├── InvalidDefinitionError      a tool is defined wrongly (a TypeError as well)
├── InvalidResultError          what a tool returned is no result (a TypeError as well)
├── ToolAbortedError            stopped: the Stop button, a closing workspace, a cancelled caller
│   └── ToolTimeoutError        the call's own time limit
├── PermissionDeniedError       a rule denies the call (``.rules``)
├── PermissionRejectedError     a person denied the call
├── PermissionCorrectedError    a person denied the call with a reason (``.feedback``)
├── ArgumentsRevisedError       a person changed the arguments (``.arguments``): the call starts again with them
├── QuestionRejectedError       a person dismissed a question
├── HookRefusedError            a plugin's hook ended the call (``.plugin``, ``.hook``; ``__cause__``: what it raised)
│   └── PermissionHookError     a plugin denied a permission request; a PermissionRejectedError as well
└── ConfigError                 a config file can't be used (``.path``)

An exception that a tool raises by itself passes through unchanged.
Messages of the permission errors are OpenCode's (docs/opencode/core.md 10.8).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from .repair import INVALID
from .suggestions import near_names, suggestion

if TYPE_CHECKING:
    from .permission.decision import Decision, Rule
    from .question_request import Answered


_PACKAGE = f"{__name__.partition('.')[0]}."
LONGEST_ERROR = 20_000
"""Characters of an error's message: it must not repeat a megabyte of arguments."""
LONGEST_WORD = 4_000
_LONG_WORD = re.compile(rf"\S{{{LONGEST_WORD + 1},}}")


def shorten(text: str) -> str:
    """An error's message whose long words, and whose middle if it is still too long, are cut."""
    if len(text) <= LONGEST_WORD:
        return text
    text = _LONG_WORD.sub(lambda match: _cut(match.group(), 200), text)
    return text if len(text) <= LONGEST_ERROR else _cut(text, LONGEST_ERROR // 2 - 50)


def short_repr(value: Any, most: int = 60) -> str:
    """A wrong value as an error or a warning shows it, in `most` characters."""
    text = repr(value)
    return text if len(text) <= most else text[: most - 3] + "..."


def _cut(text: str, keep: int) -> str:
    return f"{text[:keep]}[… {len(text) - 2 * keep:,} characters …]{text[-keep:]}"


class ToolError(Exception):
    """Base of every error this package raises for a tool call.

    Args:
        *args: the message, as a model reads it.
        for_person: the message for a person, where it is another one.

    Attributes:
        code: names the kind of error in cards and in docs/errors.md. Classes of this package get it from their name;
            others have that of the class they derive from.
        decision: the permission decision that the error stands for; None if it stands for none.
    """

    code: ClassVar[str] = "OJ-tool"
    decision: Decision | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.startswith(_PACKAGE):
            name = cls.__name__.strip("_").removesuffix("Error").replace("JavaScript", "Javascript")
            cls.code = "OJ" + re.sub("[A-Z]", lambda letter: f"-{letter[0].lower()}", name)

    def __init__(self, *args: object, for_person: str = "") -> None:
        super().__init__(*(shorten(arg) if isinstance(arg, str) else arg for arg in args))
        self._for_person = shorten(for_person)

    @property
    def for_person(self) -> str:
        """The message for a person in a notebook; the same as a model's if there is no other."""
        return self._for_person or str(self)


def rephrase(error: ToolError, phrase: Callable[[str], str]) -> ToolError:
    """An error with a longer message than `error`, for a model and for a person.

    Args:
        error: the original; raise the new one ``from`` it.
        phrase: makes the new message of the old one.
    """
    return ToolError(phrase(str(error)), for_person=phrase(error.for_person))


def full_text(error: ToolError, *, for_person: bool = False) -> str:
    """The message of `error` with its notes: for a model, or for a person."""
    return "\n".join([error.for_person if for_person else str(error), *getattr(error, "__notes__", ())])


class UnknownToolError(ToolError):
    """No tool has this name.

    Attributes:
        name: what was asked for.
        suggestions: up to three names that look like it.
        reason: why a tool that is known of can't be called; "" if none is known of.
    """

    def __init__(self, name: str, known: Sequence[str] = (), reason: str = "") -> None:
        self.name = name
        self.suggestions = near_names(name, (id for id in known if id != INVALID))
        self.reason = reason
        if reason:
            super().__init__(f"The tool {name} can't be called: {reason}")
            return
        super().__init__(f"Unknown tool: {name}." + (suggestion(self.suggestions) or " %tool lists the tools."))


class UnknownSessionError(ToolError, KeyError):
    """No session has this id."""

    __str__ = Exception.__str__  # a KeyError shows its message in quotes


class InvalidDefinitionError(ToolError, TypeError):
    """A tool is defined wrongly: a field is missing or of the wrong kind, or its JSON schema is no valid one."""


class InvalidResultError(ToolError, TypeError):
    """A tool returned something that is no result and cannot be shown as one."""


class InvalidArgumentsError(ToolError):
    """The arguments do not fit the tool's parameters.

    Attributes:
        tool: the tool's id.
        cause: the ``pydantic.ValidationError`` (or other error) behind it.
    """

    def __init__(
        self, message: str, *, tool: str = "", cause: BaseException | None = None, for_person: str = ""
    ) -> None:
        super().__init__(message, for_person=for_person)
        self.tool = tool
        self.cause = cause


class UnknownOptionError(InvalidArgumentsError, TypeError):
    """A function of this package has no option of this name."""


class ToolAbortedError(ToolError):
    """The call was stopped before it was done.

    Attributes:
        reason: one word for the card: ``stopped``, ``interrupted``, ``closed``, ``timeout``.
    """

    def __init__(self, message: str = "Tool execution aborted", *, reason: str = "stopped") -> None:
        super().__init__(message)
        self.reason = reason


class ToolTimeoutError(ToolAbortedError):
    """The call ran longer than its limit. Time spent waiting for a person does not count."""

    def __init__(self, tool: str, seconds: float) -> None:
        text = f"The {tool} tool ran longer than its limit of {seconds:g} s and was stopped."
        super().__init__(text, reason="timeout")
        self.seconds = seconds


class PermissionDeniedError(ToolError):
    """A rule forbids the call.

    Attributes:
        rules: the rules that speak of this permission, in order.
    """

    def __init__(self, rules: Sequence[Rule], decider: Rule | None = None) -> None:
        self.rules = list(rules)
        decider = decider or next((rule for rule in reversed(self.rules) if rule.action == "deny"), None)
        origin = f" from {decider.origin}" if decider is not None and decider.origin else ""
        shown: list[dict[str, Any]] = [
            {"permission": r.permission, "pattern": r.pattern, "action": r.action} for r in self.rules
        ]
        super().__init__(
            "The user has specified a rule which prevents you from using this specific tool call. "
            "Here are some of the relevant rules " + json.dumps(shown, separators=(",", ":"), ensure_ascii=False),
            for_person="A rule denies this call"
            + (f': {decider.permission} "{decider.pattern}": deny{origin}' if decider is not None else "")
            + ". %permissions shows all rules and changes them.",
        )


class PermissionRejectedError(ToolError):
    """A person denied the call without a reason."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(
            message or "The user rejected permission to use this specific tool call.",
            for_person=message or "You denied this call.",
        )


class PermissionCorrectedError(ToolError):
    """A person denied the call and wrote what to do instead.

    Attributes:
        feedback: the person's words.
    """

    def __init__(self, feedback: str) -> None:
        super().__init__(
            "The user rejected permission to use this specific tool call with the following feedback: " + feedback,
            for_person=f"You denied this call: {feedback}",
        )
        self.feedback = feedback


class ArgumentsRevisedError(ToolError):
    """A person changed the arguments of a pending request. Never leaves the call: it starts again with the new ones.

    Attributes:
        arguments: the new ones, validated.
    """

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.arguments = arguments
        super().__init__("The arguments were changed by the person who answered.")


class QuestionRejectedError(ToolError):
    """A person dismissed a question, or nobody was there to answer it.

    Attributes:
        answered: how the request ended; None if nothing was asked.
    """

    answered: Answered | None = None

    def __init__(self, message: str | None = None) -> None:
        super().__init__(
            message or "The user dismissed this question", for_person=message or "You dismissed this question."
        )


REFUSING = ("tool.execute.before", "permission.ask")
"""Hooks that run before a tool does."""


class HookRefusedError(ToolError):
    """A hook of a plugin raised, which ended the call.

    Attributes:
        hook: the hook's name, such as ``tool.execute.before``.
        plugin: the plugin it belongs to.
    """

    def __init__(self, hook: str, plugin: str, cause: BaseException | str = "") -> None:
        self.hook = hook
        self.plugin = plugin
        reason = cause if isinstance(cause, str) else _error_reason(cause)
        word = "Refused" if hook in REFUSING else "Ended"
        super().__init__(f"{word} by the hook {hook} of the plugin {plugin}" + (f": {reason}" if reason else "."))


class PermissionHookError(HookRefusedError, PermissionRejectedError):
    """A plugin denied a permission request in place of a person."""


def _error_reason(error: BaseException) -> str:
    """The message of an exception, with its kind where the message alone is not clear."""
    text = str(error)
    is_clear = isinstance(error, ToolError) or type(error) in (Exception, RuntimeError, ValueError, PermissionError)
    return text if text and is_clear else f"{type(error).__name__}: {text}" if text else type(error).__name__


class DryRunEnd(Exception):  # noqa: N818 - not an error
    """A dry run has come to where the work would start."""


class ConfigError(ToolError):
    """A config file can't be used.

    Attributes:
        path: the file.
        line: 1-based line, if known.
    """

    def __init__(self, message: str, *, path: str = "", line: int | None = None) -> None:
        where = f"{path}:{line}: " if path and line else f"{path}: " if path else ""
        super().__init__(where + message)
        self.path = path
        self.line = line
