"""A plugin's tool as one of ours (reference: core.md 4.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, create_model
from pydantic.fields import FieldInfo

from ..function import execute_of
from ..tool import Definition, Tool, tool


def made_tool(id: str, given: Any, source: str) -> Tool:
    """A tool from an entry of a plugin's ``tool`` map.

    Args:
        id: its id, whatever the tool is called by itself.
        given: a `Tool`, a function, a dict in the form of `Tool.define` (``description``, ``parameters``, ``execute``),
            or one in OpenCode's plugin form, ``{description, args, execute(args, ctx)}``. There ``args`` maps names to
            types, to ``(type, default)`` or pydantic fields, or to JSON schemas; `execute` gets a dict. Either dict may
            have ``asks`` (`Definition.asks`).
        source: said of it in lists.

    Raises:
        TypeError: it is none of these.
        KeyError: a dict lacks ``execute``.
    """
    if not id:
        raise TypeError("a tool needs an id")
    if isinstance(given, Tool):
        return Tool(
            id,
            given._init,
            runs_in=given.runs_in,
            body=given.body,
            external=given.external,
            completions=given.completions,
            source=source,
        )
    if isinstance(given, Mapping):
        if "parameters" in given:
            return Tool.define(id, dict(given), source=source)
        made = Tool(id, _definition(id, given), source=source)
        if made.static is not None:
            made.static.check_definition()
        return made
    if callable(given) and not isinstance(given, type):
        made = tool(id)(given)
        made.source = source
        return made
    raise TypeError(f"it must be a Tool, a function or a dict, not {type(given).__name__}")


def _definition(id: str, given: Mapping[str, Any]) -> Definition:
    unknown = set(given) - {"description", "args", "execute", "asks"}
    if unknown:
        raise TypeError(f"no field {', '.join(sorted(unknown))}; there are args, asks, description and execute")
    execute = given["execute"]
    if not callable(execute):
        raise TypeError(f"execute must be a function, not {type(execute).__name__}")
    description = str(given.get("description") or "")
    args, asks = given.get("args") or {}, given.get("asks", False)
    run = execute_of(execute, {})[1]
    if isinstance(args, type) and issubclass(args, BaseModel):
        return Definition(description, args, run, check=_as_dict(args), asks=asks)
    if not isinstance(args, Mapping):
        raise TypeError(f"args must be a dict of name and type, not {type(args).__name__}")
    if args and all(isinstance(value, Mapping) for value in args.values()):
        schema = {
            "type": "object",
            "properties": {str(name): dict(value) for name, value in args.items()},
            "required": [str(name) for name in args],
        }
        return Definition(description, schema, run, asks=asks)
    config = ConfigDict(extra="ignore")
    fields: dict[str, Any] = {str(name): _field(value) for name, value in args.items()}
    model = create_model(id, __config__=config, **fields)
    return Definition(description, model, run, check=_as_dict(model), asks=asks)


def _field(value: Any) -> Any:
    if isinstance(value, tuple):
        return value
    if isinstance(value, FieldInfo):
        return (value.annotation or Any, value)
    return (value, ...)


def _as_dict(model: type[BaseModel]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A check by a model that gives a dict, as plugins expect."""

    def check(arguments: dict[str, Any]) -> dict[str, Any]:
        valid = model.model_validate(arguments)
        return {name: getattr(valid, name) for name in model.model_fields}

    return check
