"""A prompt's options, validated before it starts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from types import NoneType
from typing import TYPE_CHECKING, Any

from ..core.errors import InvalidArgumentsError
from ..core.option_checks import check_kind
from ..core.sessions import Session
from .structured import StructuredOutput

if TYPE_CHECKING:
    from ..core.call import Call
    from .model import Model
    from .sessions import AgentSession


@dataclass
class PromptOptions:
    """A prompt and how it is to be answered; see `AgentSessions.prompt`.

    Attributes:
        parent: the call of ``task`` that the prompt works for.
        record: the file that the conversation is recorded in.
        title: of a new session.
        switches: tools that ``tools`` turns on or off.
        only: the names of the only available tools, if ``tools`` lists them.
        structured: the form of the answer.

    Raises:
        InvalidArgumentsError: an option is of the wrong kind; the message names the right one.
    """

    text: str
    _: KW_ONLY
    model: str | Model | None = None
    agent: str | None = None
    session: str | AgentSession | None = None
    files: Iterable[Any] = ()
    format: Any = None
    max_steps: int | None = None
    tools: Mapping[str, bool] | Iterable[str] | None = None
    system: str | None = None
    parent: Call | None = None
    record: Any = None
    title: str | None = None
    switches: dict[str, bool] = field(init=False, default_factory=dict)
    only: list[str] | None = field(init=False, default=None)
    structured: StructuredOutput | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        check_kind(self.text, str, "the prompt", "a text")
        for name in ("agent", "system", "title"):
            check_kind(getattr(self, name), (str, NoneType), name, "a text")
        check_kind(self.session, (str, Session, NoneType), "session", "a Session or its id")
        check_kind(self.record, (str, os.PathLike, NoneType), "record", "a path")
        if self.max_steps is not None and (type(self.max_steps) is not int or self.max_steps < 1):
            raise InvalidArgumentsError("max_steps must be a whole number above 0")
        if self.model is not None and not isinstance(self.model, str) and not hasattr(self.model, "stream"):
            raise InvalidArgumentsError(
                f"model must be a name, such as 'openai:gpt-5', or a model's object, not {type(self.model).__name__}"
            )
        if isinstance(self.files, str | os.PathLike):  # it would be taken letter by letter
            raise InvalidArgumentsError(f"files= takes a list of paths, such as [{str(self.files)!r}]")
        check_kind(self.files, Iterable, "files", "a list of paths")
        self.files = list(self.files)
        self._read_tools()
        self.structured = None if self.format is None else StructuredOutput(self.format)

    def _read_tools(self) -> None:
        tools = self.tools
        if tools is None:
            return
        if isinstance(tools, str):
            raise InvalidArgumentsError(f"tools= takes a list of names, such as [{tools!r}], or a dict of names")
        check_kind(tools, Iterable, "tools", "a list of names or a dict of names")
        names = list(tools)
        for name in names:
            check_kind(name, str, "each name in tools=", "a tool's id")
        if not isinstance(tools, Mapping):
            self.only = names
            return
        for name, is_on in tools.items():
            check_kind(is_on, bool, f"tools[{name!r}]", "True or False")
        self.switches = dict(tools)
