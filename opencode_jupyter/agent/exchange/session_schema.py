"""OpenCode's export format of a session, as release 1.18.33 writes and reads it.

``{"info": session, "messages": [{"info": message, "parts": [part, ...]}, ...]}``

Older releases leave some keys out, so only what a session cannot be understood without is required; a wrong type is an
error everywhere. Unknown keys and types of parts pass unchanged, since a later release may have written them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from types import GenericAlias
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, create_model
from pydantic_core import PydanticCustomError

from ...core.errors import ToolError
from ..events import Usage

Data = dict[str, Any]
NO_MODEL = {"providerID": "opencode_jupyter", "modelID": "none"}
"""The model of calls made by hand."""


class SessionFileError(ToolError):
    """A file or data that cannot be imported as a session; the message names the place."""


class SchemaObject(BaseModel):
    """An object of the format; it can have other keys too. An optional key may be null."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False, defer_build=True)

    @classmethod
    def complete(cls, value: Data) -> Data:
        """The object as a release imports it, at any depth: known keys without null, missing ones with their defaults.

        An unknown key keeps its null.
        """
        completed: Data = {}
        for key, item in value.items():
            field = cls.model_fields.get(key)
            form = None if field is None else _object_in(field.annotation)
            if form is not None and isinstance(item, dict):
                completed[key] = form.complete(item)
            elif form is not None and isinstance(item, list):
                completed[key] = [form.complete(entry) for entry in item]
            elif field is None or item is not None:
                completed[key] = item
        for key, field in cls.model_fields.items():
            if key not in completed and not field.is_required() and field.default is not None:
                completed[key] = copy.deepcopy(field.default)
        return completed


def _object_in(annotation: Any) -> type[SchemaObject] | None:
    if isinstance(annotation, type) and issubclass(annotation, SchemaObject):
        return annotation
    return next(filter(None, map(_object_in, get_args(annotation))), None)


def _id(prefix: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if not value.startswith(prefix) or not value.isascii() or not value.isprintable() or len(value) > 200:
            raise PydanticCustomError("id", f"an id that begins with {prefix}")
        return value

    return check


def _check_time(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        raise PydanticCustomError("moment", "a time in whole milliseconds")
    return value


SessionId = Annotated[str, AfterValidator(_id("ses"))]
MessageId = Annotated[str, AfterValidator(_id("msg"))]
PartId = Annotated[str, AfterValidator(_id("prt"))]
Milliseconds = Annotated[Any, AfterValidator(_check_time)]


def _object(required: Mapping[str, Any], **optional: Any) -> Any:
    """A `SchemaObject` with these required and optional keys; a type and a default if releases require the key."""
    fields: dict[str, Any] = {key: (kind, ...) for key, kind in required.items()}
    for key, kind in optional.items():
        type, default = kind if isinstance(kind, tuple) else (kind, None)
        fields[key] = (type | None if type is not Any else Any, default)
    return create_model("Form", __base__=SchemaObject, **fields)


_SPAN = _object({"start": Milliseconds}, end=Milliseconds)
_ENDED = _object({"start": Milliseconds, "end": Milliseconds}, compacted=Milliseconds)
_NO_TOKENS = Usage().to_wire()
_CACHE = _object({}, read=(float, 0), write=(float, 0))
_TOKENS = _object(
    {"input": float, "output": float}, total=float, reasoning=(float, 0), cache=(_CACHE, _NO_TOKENS["cache"])
)
_MODEL = _object({"providerID": str, "modelID": str}, variant=str)
_OWNED = {"id": Any, "sessionID": Any, "messageID": Any, "type": Any}
_FILE = _object({"mime": str, "url": str}, filename=str, source=Data, **_OWNED)
_RULE = _object({"permission": str, "pattern": str, "action": Literal["allow", "deny", "ask"]})

INFO: type[SchemaObject] = _object(
    {
        "id": SessionId,
        "title": str,
        "time": _object({"created": Milliseconds}, updated=Milliseconds, compacting=Any, archived=Any),
    },
    slug=str,
    projectID=(str, "global"),
    directory=(str, ""),
    path=str,
    parentID=SessionId,
    agent=str,
    model=_object({"id": str, "providerID": str}, variant=str),
    version=(str, ""),
    summary=Data,
    cost=float,
    tokens=_TOKENS,
    metadata=Data,
    workspaceID=Any,
    share=Any,
    permission=GenericAlias(list, _RULE),
    revert=_object({"messageID": MessageId}, partID=PartId, snapshot=str, diff=str),
)
_ERROR_DATA = _object(
    {},
    message=Any,
    providerID=Any,
    retries=Any,
    ref=Any,
    statusCode=Any,
    isRetryable=Any,
    responseHeaders=Any,
    responseBody=Any,
    metadata=Any,
)
USER: type[SchemaObject] = _object(
    {"time": _object({"created": Milliseconds})},
    agent=str,
    model=_MODEL,
    system=str,
    tools=Data,
    format=Data,
    summary=Any,
    variant=Any,
)
ASSISTANT: type[SchemaObject] = _object(
    {"time": _object({"created": Milliseconds}, completed=Milliseconds)},
    parentID=str,
    agent=str,
    mode=str,
    providerID=(str, NO_MODEL["providerID"]),
    modelID=(str, NO_MODEL["modelID"]),
    path=_object({}, cwd=str, root=str),
    cost=(float, 0),
    tokens=(_TOKENS, _NO_TOKENS),
    finish=str,
    error=_object({"name": str}, data=_ERROR_DATA),
    variant=str,
    summary=Any,
    structured=Any,
)
STATES: dict[str, type[SchemaObject]] = {
    "pending": _object({"input": Data}, raw=(str, "")),
    "running": _object({"input": Data}, title=str, metadata=Data, time=_object({"start": Milliseconds})),
    "completed": _object(
        {"input": Data, "output": str, "time": _ENDED},
        title=(str, ""),
        metadata=(Data, {}),
        attachments=GenericAlias(list, _FILE),
    ),
    "error": _object({"input": Data, "error": str, "time": _ENDED}, metadata=Data),
}
_STATUS = _object({"status": Literal["pending", "running", "completed", "error"]})
PARTS: dict[str, type[SchemaObject]] = {
    "text": _object({"text": str}, synthetic=bool, ignored=bool, time=_SPAN, metadata=Data),
    "reasoning": _object({"text": str}, time=_SPAN, metadata=Data),
    "file": _FILE,
    "tool": _object({"callID": str, "tool": str, "state": _STATUS}, metadata=Data),
    "step-start": _object({}, snapshot=str),
    "step-finish": _object({}, reason=(str, "unknown"), snapshot=str, cost=(float, 0), tokens=(_TOKENS, _NO_TOKENS)),
    "snapshot": _object({"snapshot": str}),
    "patch": _object({"hash": str, "files": list[str]}),
    "agent": _object({"name": str}, source=Data),
    "subtask": _object({"prompt": str, "description": str, "agent": str}, model=_MODEL, command=str),
    "compaction": _object({}, auto=(bool, False), overflow=bool, tail_start_id=MessageId),
    "retry": _object({"attempt": float, "error": Data}, time=_object({"created": Milliseconds})),
}
"""The parts that 1.18.33 knows, by their type."""
_SESSION = _object({"info": INFO, "messages": list[Data]})
_MESSAGE = _object({"info": Data, "parts": list[Data]})
_MESSAGE_IDS = _object({"id": MessageId, "sessionID": SessionId, "role": Literal["user", "assistant"]})
_PART = _object({"id": PartId, "type": str})


def check_session(data: Any) -> None:
    """Check that `data` is a session in OpenCode's export format.

    Raises:
        SessionFileError: it is not; the message names the place.
    """
    if not isinstance(data, dict) or "info" not in data or "messages" not in data:
        keys = f"keys {', '.join(map(str, list(data)[:6])) or 'none'}" if isinstance(data, dict) else "no object"
        raise SessionFileError(
            f"This is not an OpenCode session: it must be an object with info and messages, but it has {keys}. "
            "`opencode export` and `%sessions export` write such files."
        )
    _check(_SESSION, data, "")
    seen: dict[str, str] = {}
    for index, message in enumerate(data["messages"]):
        location = f"messages[{index}]"
        _check(_MESSAGE, message, location)
        info = message["info"]
        _check(_MESSAGE_IDS, info, f"{location}.info")
        if info["sessionID"] != data["info"]["id"]:
            expected = f"the session's id {data['info']['id']}"
            raise _mistake(f"{location}.info.sessionID", expected, info["sessionID"])
        _check_once(info["id"], f"{location}.info", seen)
        _check(USER if info["role"] == "user" else ASSISTANT, info, f"{location}.info")
        for number, part in enumerate(message["parts"]):
            _check_part(part, info, f"{location}.parts[{number}]", seen)


def _check_part(part: Data, message: Data, location: str, seen: dict[str, str]) -> None:
    _check(_PART, part, location)
    _check_once(part["id"], location, seen)
    for key, owner in (("sessionID", message["sessionID"]), ("messageID", message["id"])):
        if part.get(key, owner) != owner:
            raise _mistake(f"{location}.{key}", f"the id {owner} of what it is in", part[key])
    if part["type"] in PARTS:
        _check(PARTS[part["type"]], part, location)
    if part["type"] == "tool":
        _check(STATES[part["state"]["status"]], part["state"], f"{location}.state")


def _check_once(id: str, location: str, seen: dict[str, str]) -> None:
    if id in seen:
        raise SessionFileError(f"{location}.id: {id} is there twice, also at {seen[id]}.")
    seen[id] = location


_EXPECTED = {
    "string_type": "a text",
    "bool_type": "true or false",
    "float_type": "a number",
    "finite_number": "a number",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
}
"""What a value must be, by the type of pydantic's error."""


def _check(form: type[SchemaObject], value: Any, location: str) -> None:
    try:
        form.model_validate(value)
    except ValidationError as invalid:
        error = invalid.errors(include_url=False)[0]
        path = list(error["loc"])
        missing = path.pop() if error["type"] == "missing" else None
        full_location = (location + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)).lstrip(
            "."
        )
        if missing is not None:
            raise SessionFileError(f"{full_location}: {missing} is missing.") from None
        expected = _EXPECTED.get(error["type"], error["msg"])
        if error["type"] == "literal_error":
            expected = error["ctx"]["expected"].replace("'", "").replace(", ", " or ")
        raise _mistake(full_location, expected, error["input"]) from None


def _mistake(location: str, expected: str, value: Any) -> SessionFileError:
    return SessionFileError(f"{location}: expected {expected}, not {_describe_value(value)}.")


def _describe_value(value: Any) -> str:
    """A short description of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the text {value[:40]!r}" + ("..." if len(value) > 40 else "")
    if isinstance(value, (int, float)):
        return f"the number {value!r}"[:60]
    return "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else type(value).__name__
