"""What servers request during a call: a person's answers to a form, a model's answer, the workspace's folder.

A form (elicitation) is a flat JSON schema of texts, numbers, booleans and choices; its fields become questions on the
call's card. Pages to open, and a model's answers (sampling), are refused unless the configuration allows them; no page
is ever opened. A model's answer is paid for by the person, so each such request goes by the rules (permission
``mcp_sampling``, the server's name as its pattern) and shows on the card too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    AudioContent,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    ImageContent,
    ListRootsResult,
    Root,
    SamplingMessage,
    TextContent,
)

from ..core.errors import PermissionDeniedError, PermissionRejectedError, QuestionRejectedError, ToolError
from ..core.question_request import Choice, Question
from ..core.sampling import CompletionRequest, Media

if TYPE_CHECKING:
    from ..core.host import ToolHost
    from .connection import ServerCall, ServerConnection

PAGES = "mcp_pages"
"""Key under ``experimental``: a server may ask a person to open a page."""
TRIES = 3
"""Times a question is asked because the answer does not fit."""
SAMPLING = "mcp_sampling"
"""The permission, and the key under ``experimental``: true for the configuration's small or usual model; or a name."""
REFUSED = -1
"""The protocol's code for a request that a person refused."""
MAX_SAMPLINGS = 20
"""Requests that one call may make: a server must not spend without end."""
SHOWN = 20_000
"""Characters of a request that the permission request shows."""


class ServerRequests:
    """Answers the requests of one server.

    Args:
        workspace: whose configuration, folder and models.
        connection: the server.
    """

    def __init__(self, workspace: ToolHost, connection: ServerConnection) -> None:
        self._workspace = workspace
        self._connection = connection
        self._server = connection.spec.name

    async def roots(self, context: Any) -> ListRootsResult:
        """The folder of the workspace."""
        folder = self._workspace.directory
        return ListRootsResult(roots=[Root.model_validate({"uri": folder.as_uri(), "name": folder.name or "/"})])

    # ------------------------------------------------------------------ a person's answers

    async def elicit(self, context: Any, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        """Have a person fill in a form, or accept that a page is to be opened."""
        call = self._connection.current_call()
        is_form = isinstance(params, ElicitRequestFormParams)
        if not is_form and self._workspace.config.get("experimental", PAGES) is not True:
            self._connection.log.add(f"requested to open a page and was refused: {params.message}", "client")
            return ElicitResult(action="decline")
        if call is None:
            return ErrorData(code=INVALID_REQUEST, message="no call is running in which a person could be asked")
        if isinstance(params, ElicitRequestFormParams):
            return await self._ask_form(params.message, form_fields(params.requested_schema), call)
        return await self._ask_form(f"{params.message}\nIt wants this page opened: {params.url}", [], call)

    async def _ask_form(self, message: str, fields: list[FormField], call: ServerCall) -> ElicitResult:
        """Ask for a form's fields on the card of the call; a form without fields is accepted or declined."""
        content: dict[str, Any] = {}
        open_fields, notes = list(fields), dict[str, str]()
        with call.paused():
            for _ in range(TRIES):
                questions = form_questions(self._server, message, open_fields, notes)
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

    # ------------------------------------------------------------------ a model's answer

    @property
    def allows_sampling(self) -> bool:
        """True if servers may request a model's answer."""
        setting = self._workspace.config.get("experimental", SAMPLING)
        return setting is True or (isinstance(setting, str) and bool(setting))

    async def sample(self, context: Any, params: CreateMessageRequestParams) -> CreateMessageResult | ErrorData:
        """Have a model answer, if the rules or a person allow it."""
        call, server, log = self._connection.current_call(), self._server, self._connection.log
        if call is None:
            return ErrorData(code=INVALID_REQUEST, message="there is no call that this request could belong to")
        call.samplings += 1
        if call.samplings > MAX_SAMPLINGS:
            message = f"a call may request at most {MAX_SAMPLINGS} answers of a model"
            return ErrorData(code=INVALID_REQUEST, message=message)
        try:
            request = _completion_request(params)
        except ValueError as error:
            return ErrorData(code=INVALID_PARAMS, message=str(error))
        model, complete = self._model, self._workspace.complete
        if not model or complete is None:
            entry = f'"experimental": {{"{SAMPLING}": "provider:model"}}'
            return ErrorData(code=INTERNAL_ERROR, message=f"no model is named: {entry} of the configuration names one")
        shown = "\n\n".join(filter(None, [params.system_prompt, *map(_text_of, params.messages)]))
        try:
            with call.paused():  # for a person, then for the model: the server is not slow meanwhile
                metadata = {"server": server, "model": model, "command": f"{server} asks {model}:\n{shown[:SHOWN]}"}
                await call.ctx.ask(SAMPLING, [server], [server], metadata)
                answer = await complete(model, request)
        except (PermissionRejectedError, PermissionDeniedError) as error:
            return ErrorData(code=REFUSED, message=f"sampling was refused: {error}")
        except ToolError as error:
            log.add(f"asked {model}, which failed: {error}", "client")
            return ErrorData(code=INTERNAL_ERROR, message=f"the model could not be asked: {error}")
        log.add(f"asked {model}", "client")
        content = TextContent(type="text", text=answer.text)
        reason = "maxTokens" if answer.reason == "length" else "endTurn"
        return CreateMessageResult(role="assistant", content=content, model=model, stop_reason=reason)

    @property
    def _model(self) -> str:
        """The model that answers; "" if none is named."""
        config = self._workspace.config
        names = (config.get("experimental", SAMPLING), config.get("small_model"), config.get("model"))
        return next((name for name in names if isinstance(name, str) and name), "")


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
        hints += [f"{schema[key]} {meaning}" for key, meaning in _LIMITS if key in schema]
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


def _completion_request(params: CreateMessageRequestParams) -> CompletionRequest:
    """A server's request as one for a model.

    Raises:
        ValueError: it has a part that a model cannot be sent here.
    """
    messages = []
    for message in params.messages:
        pieces: list[str | Media] = []
        for content in message.content if isinstance(message.content, list) else [message.content]:
            if isinstance(content, TextContent):
                pieces.append(content.text)
            elif isinstance(content, (ImageContent, AudioContent)):
                pieces.append(Media(content.mime_type, content.data))
            else:
                raise ValueError(f"{content.type} cannot be part of a request here: servers get no tools")  # noqa: TRY004 - data
        messages.append((message.role, pieces))
    return CompletionRequest(messages, params.system_prompt or "", params.temperature, params.max_tokens)


def _text_of(message: SamplingMessage) -> str:
    """A message as the permission request shows it."""
    parts = message.content if isinstance(message.content, list) else [message.content]
    return f"{message.role}: " + " ".join(
        part.text if isinstance(part, TextContent) else f"[{part.type}]" for part in parts
    )
