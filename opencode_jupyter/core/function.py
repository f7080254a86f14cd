"""A plain function as a tool: its signature as a parameter model, and a call with what was validated."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict, create_model
from pydantic.errors import PydanticSchemaGenerationError

from .context import ToolContext

CONTEXT = "ctx"


def parameters_of(fn: Callable[..., Any], given: type[BaseModel] | None) -> tuple[type[BaseModel], Callable[..., Any]]:
    """The parameter model of `fn` and an ``execute(arguments, ctx)`` that calls it.

    Args:
        fn: a sync or async function; a parameter named ``ctx`` (or annotated `ToolContext`) is not the model's.
        given: an explicit model; then `fn` takes the model itself as its first argument.

    Raises:
        TypeError: the signature has ``*args``, ``**kwargs`` or positional-only parameters, or a type that pydantic
            can't check.
    """
    signature = inspect.signature(fn)
    try:
        hints = typing.get_type_hints(fn, include_extras=True)
    except Exception:  # an annotation that names something not importable stays as it stands
        hints = {}
    context = [n for n, p in signature.parameters.items() if n == CONTEXT or hints.get(n) is ToolContext]
    if given is not None:
        return given, _call_with_model(fn, context, signature)
    fields: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        if name in context:
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"{fn.__qualname__}: a tool can't have the parameter {parameter}; give each one a name")
        annotation = hints.get(name, parameter.annotation)
        if annotation is parameter.empty or isinstance(annotation, str):
            annotation = Any
        fields[name] = (annotation, ... if parameter.default is parameter.empty else parameter.default)
    try:
        model: type[BaseModel] = create_model(
            fn.__name__, __config__=ConfigDict(arbitrary_types_allowed=False, extra="ignore"), **fields
        )
    except PydanticSchemaGenerationError as error:
        raise TypeError(f"{fn.__qualname__}: {error.message}") from error
    return model, _call_with_fields(fn, list(fields), context)


def _call_with_model(fn: Callable[..., Any], context: list[str], signature: inspect.Signature) -> Callable[..., Any]:
    positional = len(signature.parameters) >= 2 and not context

    def bind(arguments: Any, ctx: ToolContext) -> tuple[list[Any], dict[str, Any]]:
        return ([arguments, ctx] if positional else [arguments]), dict.fromkeys(context, ctx)

    return _same_colour(fn, bind)


def _call_with_fields(fn: Callable[..., Any], names: list[str], context: list[str]) -> Callable[..., Any]:
    def bind(arguments: Any, ctx: ToolContext) -> tuple[list[Any], dict[str, Any]]:
        keywords = {name: getattr(arguments, name) for name in names}
        keywords.update(dict.fromkeys(context, ctx))
        return [], keywords

    return _same_colour(fn, bind)


def _same_colour(fn: Callable[..., Any], bind: Callable[..., tuple[list[Any], dict[str, Any]]]) -> Callable[..., Any]:
    """An ``execute`` that is async if `fn` is, sync (and so run in a thread) if not; async generators are joined."""
    if inspect.isasyncgenfunction(fn):

        @functools.wraps(fn)
        async def stream(arguments: Any, ctx: ToolContext) -> Any:
            args, keywords = bind(arguments, ctx)
            pieces: list[str] = []
            async for piece in fn(*args, **keywords):
                pieces.append(str(piece))
                ctx.metadata(metadata={"output": "".join(pieces[-200:])})
            return "".join(pieces)

        return stream
    if inspect.iscoroutinefunction(fn):

        @functools.wraps(fn)
        async def run(arguments: Any, ctx: ToolContext) -> Any:
            args, keywords = bind(arguments, ctx)
            return await fn(*args, **keywords)

        return run

    @functools.wraps(fn)
    def call(arguments: Any, ctx: ToolContext) -> Any:
        args, keywords = bind(arguments, ctx)
        outcome = fn(*args, **keywords)
        if inspect.isgenerator(outcome):
            pieces: list[str] = []
            for piece in outcome:
                ctx.abort.raise_if_aborted()
                pieces.append(str(piece))
                ctx.metadata(metadata={"output": "".join(pieces[-200:])})
            return "".join(pieces)
        return outcome

    return call
