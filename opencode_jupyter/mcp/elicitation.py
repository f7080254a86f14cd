"""Requests of a server to a person during a call: forms, shown as questions on the call's card.

A form is a flat JSON schema of texts, numbers, booleans and choices (the protocol's elicitation). Requests for a
model's answer (`sampling`) and to open a page are refused unless the configuration allows them; no page is ever opened.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp_types import (
    INVALID_REQUEST,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    ListRootsResult,
    Root,
)

from ..core.errors import QuestionRejectedError
from ..core.question_request import Choice, Question
from .sampling import allowed, sampling

if TYPE_CHECKING:
    from mcp.client.session import ElicitationFnT, SamplingFnT

    from ..core.host import ToolHost
    from .calls import ServerCall
    from .connection import ServerConnection

current_call: ContextVar[ServerCall | None] = ContextVar("mcp_call", default=None)
"""The call in whose task this code runs; requests of servers of the older protocol come outside of it."""
PAGES = "mcp_pages"
"""Key under ``experimental``: a server may ask a person to open a page."""
TRIES = 3
"""Times a question is asked because the answer does not fit."""


class Callbacks:
    """Answers the requests of the servers of one workspace."""

    def __init__(self, workspace: ToolHost, newest: Callable[[str], ServerCall | None]) -> None:
        self._workspace = workspace
        self._newest = newest

    async def roots(self, context: Any) -> ListRootsResult:
        """The folder of the workspace."""
        folder = self._workspace.directory
        return ListRootsResult(roots=[Root.model_validate({"uri": folder.as_uri(), "name": folder.name or "/"})])

    def sampling(self, connection: ServerConnection) -> SamplingFnT | None:
        """The callback that requests a model's answer; None where the configuration does not allow it."""
        if not allowed(self._workspace):
            return None
        name = connection.spec.name
        return sampling(self._workspace, connection, lambda: current_call.get() or self._newest(name))

    def elicitation(self, connection: ServerConnection) -> ElicitationFnT:
        """The callback that answers the forms of one server."""

        async def answer(context: Any, params: ElicitRequestParams) -> ElicitResult | ErrorData:
            call = current_call.get() or self._newest(connection.spec.name)
            is_page = not isinstance(params, ElicitRequestFormParams)
            if is_page and self._workspace.config.get("experimental", PAGES) is not True:
                connection.log.add(f"requested to open a page and was refused: {params.message}", "client")
                return ElicitResult(action="decline")
            if call is None:
                return ErrorData(code=INVALID_REQUEST, message="no call is running in which a person could be asked")
            if isinstance(params, ElicitRequestFormParams):
                return await self._form(
                    connection.spec.name, params.message, form_fields(params.requested_schema), call
                )
            message = f"{params.message}\nIt wants this page opened: {params.url}"
            return await self._form(connection.spec.name, message, [], call)

        return answer

    async def _form(self, server: str, message: str, fields: list[FormField], call: ServerCall) -> ElicitResult:
        """Ask for a form's fields on the card of the call; a form without fields is accepted or declined."""
        content: dict[str, Any] = {}
        open_fields, notes = list(fields), dict[str, str]()
        with call.paused():
            for _ in range(TRIES):
                questions = form_questions(server, message, open_fields, notes)
                try:
                    answers = await call.ctx.question(questions)
                except QuestionRejectedError:
                    return ElicitResult(action="cancel")
                if not fields:
                    accepted = bool(answers and answers[0] == [ACCEPT])
                    return ElicitResult(action="accept" if accepted else "decline", content={} if accepted else None)
                notes = {}
                for field, answer in zip(open_fields, answers, strict=False):
                    try:
                        value = field.value(answer)
                    except ValueError as error:
                        notes[field.name] = str(error)
                        continue
                    if value is not None:
                        content[field.name] = value
                open_fields = [field for field in open_fields if field.name in notes]
                if not open_fields:
                    return ElicitResult(action="accept", content=content)
        return ElicitResult(action="decline")


ACCEPT, DECLINE = "Accept", "Decline"
YES, NO = "Yes", "No"
HEADER = 30
"""Characters of a question's short name."""


@dataclass(frozen=True, slots=True)
class FormField:
    """One field of a form.

    Attributes:
        name: its key.
        schema: its JSON schema.
        required: it cannot be left out.
    """

    name: str
    schema: Mapping[str, Any]
    required: bool

    @property
    def choices(self) -> list[tuple[Any, str]]:
        """Values to choose from with their labels; empty for a free answer."""
        schema = self.schema
        if schema.get("type") == "array" and isinstance(schema.get("items"), Mapping):
            schema = schema["items"]
        for key in ("oneOf", "anyOf"):
            options = schema.get(key)
            if isinstance(options, Sequence) and all(isinstance(o, Mapping) and "const" in o for o in options):
                return [(o["const"], _label(o.get("title") or o["const"])) for o in options]
        values = schema.get("enum")
        if isinstance(values, Sequence) and not isinstance(values, str):
            names = schema.get("enumNames")
            shown = names if isinstance(names, list) and len(names) == len(values) else values
            return [(value, _label(name)) for value, name in zip(values, shown, strict=True)]
        return [(True, YES), (False, NO)] if self.schema.get("type") == "boolean" else []

    @property
    def multiple(self) -> bool:
        """True if several may be chosen."""
        return self.schema.get("type") == "array"

    def question(self, note: str = "") -> Question:
        """The question a person is asked."""
        schema = self.schema
        text = str(schema.get("title") or self.name).strip() or "?"
        if schema.get("description"):
            text += f": {schema['description']}"
        hints = [] if self.required else ["optional"]
        hints += [f"{schema[key]} {word}" for key, word in _LIMITS if key in schema]
        if "default" in schema:
            hints.append(f"usually {schema['default']}")
        if hints:
            text += f" ({', '.join(hints)})"
        if note:
            text += f"\n{note}"
        options = tuple(Choice(label) for _, label in self.choices)
        return Question(text, self.name[:HEADER], options, self.multiple, custom=not options)

    def value(self, answer: Sequence[str]) -> Any:
        """The value of an answer; None if it was left out and may be.

        Raises:
            ValueError: it does not fit; the message tells the person.
        """
        texts = [text for text in answer if text.strip()]
        if not texts:
            if "default" in self.schema:
                return self.schema["default"]
            if self.required and not self.multiple:
                raise ValueError("An answer is needed here.")
            return [] if self.required else None
        choices = self.choices
        if choices:
            values = [value for value, label in choices if label in texts]
            if not values:
                raise ValueError(f"{texts[0]!r} is not one of the answers.")
            return values if self.multiple else values[0]
        kind, text = self.schema.get("type"), texts[0].strip()
        if kind not in ("number", "integer"):
            return self._within(text, len(text), "minLength", "maxLength", " characters")
        try:
            number = int(text) if kind == "integer" else float(text)
        except ValueError:
            raise ValueError(f"{text!r} is not a {'whole ' if kind == 'integer' else ''}number.") from None
        return self._within(number, number, "minimum", "maximum", "")

    def _within(self, value: Any, size: float, lowest: str, highest: str, unit: str) -> Any:
        """The value, if its size is between two limits of the schema."""
        limits = [self.schema.get(lowest), self.schema.get(highest)]
        low, high = (limit if isinstance(limit, int | float) else None for limit in limits)
        if not math.isfinite(size):
            raise ValueError(f"{size} is not a finite number.")
        if low is not None and size < low:
            raise ValueError(f"{size}{unit} is too little; it should be at least {low}.")
        if high is not None and size > high:
            raise ValueError(f"{size}{unit} is too much; it should be at most {high}.")
        return value


def _label(value: Any) -> str:
    return str(value).strip() or "(empty)"


_LIMITS = (("minimum", "or more"), ("maximum", "or less"), ("format", "expected"))


def form_fields(schema: Mapping[str, Any]) -> list[FormField]:
    """The fields of a form's schema, in order."""
    properties = schema.get("properties")
    required = schema.get("required")
    names = required if isinstance(required, list) else []
    if not isinstance(properties, Mapping):
        return []
    return [FormField(str(k), v if isinstance(v, Mapping) else {}, k in names) for k, v in properties.items()]


def form_questions(server: str, message: str, fields: Sequence[FormField], notes: Mapping[str, str]) -> list[Question]:
    """The questions for fields of a form; the first names the server."""
    intro = f"The MCP server {server} asks: {message}"
    if not fields:
        return [Question(intro, server[:HEADER], (Choice(ACCEPT), Choice(DECLINE)), custom=False)]
    first, *rest = (field.question(notes.get(field.name, "")) for field in fields)
    head = Question(f"{intro}\n{first.question}", first.header, first.options, first.multiple, first.custom)
    return [head, *rest]
