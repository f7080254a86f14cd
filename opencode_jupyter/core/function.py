"""A plain function as a tool: its signature as a parameter model, and a call with what was validated.

What else can be called counts as one: a method of an object, a `functools.partial`, an object with ``execute`` or
``__call__``, a class of such objects.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from .context import ToolContext
from .signature import context_of, parameters_of, signature_of
from .streaming import executor

Schema = type[BaseModel] | dict[str, Any]


@dataclass(frozen=True, slots=True)
class Described:
    """Something that can be called, with what it says of itself.

    Attributes:
        fn: the function or bound method to call.
        name: an id for it; "" if it has none.
        description: its docstring.
        parameters: its own parameter model, if it has one.
    """

    fn: Callable[..., Any]
    name: str
    description: str
    parameters: Schema | None = None


def described(target: Any) -> Described:
    """Describe a function, method, partial, object or class as a tool.

    Raises:
        TypeError: there is nothing to call, or the class wants arguments to make an object.
    """
    if isinstance(target, functools.partial):
        inner = described(target.func)
        return Described(target, inner.name, inner.description)
    if inspect.isroutine(target) or inspect.isfunction(target):
        name = getattr(target, "__name__", "")
        return Described(target, "" if name == "<lambda>" else name, inspect.getdoc(target) or "")
    kind = target if isinstance(target, type) else type(target)
    method = next((attribute for attribute in ("execute", "__call__") if callable(_own(kind, attribute))), None)
    if method is None:
        raise TypeError(
            f"{kind.__name__} can't be made a tool: it needs a method execute or __call__ with the tool's parameters"
        )
    if isinstance(target, type):
        try:
            target = target()
        except TypeError as error:
            raise TypeError(
                f"{kind.__name__} can't be made without arguments ({error}); make one and give that: "
                f"tool({kind.__name__}(...))"
            ) from error
    function = getattr(target, method)
    text = getattr(target, "description", None)
    if not isinstance(text, str):
        text = _own_doc(kind) or inspect.getdoc(function) or ""
    names = (getattr(target, "id", None), getattr(target, "name", None))
    name = next((candidate for candidate in names if isinstance(candidate, str) and candidate), _snake(kind.__name__))
    parameters = getattr(target, "parameters", None)
    if not isinstance(parameters, dict) and not (isinstance(parameters, type) and issubclass(parameters, BaseModel)):
        parameters = None
    return Described(function, name, text, parameters)


def execute_of(fn: Callable[..., Any], explicit: Schema | None) -> tuple[Schema, Callable[..., Any]]:
    """The parameters of `fn` and an ``execute(arguments, ctx)`` that calls it.

    Args:
        fn: a sync or async function or generator; a parameter named ``ctx`` (or annotated `ToolContext`) is not the
            model's.
        explicit: a model or JSON schema; then `fn` takes the model (the dict) itself as its first argument.

    Raises:
        TypeError: see `signature.parameters_of`.
    """
    if explicit is None:
        parameters = parameters_of(fn)
        return parameters.model, executor(fn, parameters.bind)
    if not isinstance(explicit, dict) and not (isinstance(explicit, type) and issubclass(explicit, BaseModel)):
        raise TypeError(f"parameters= takes a pydantic model (the class) or a JSON schema (a dict), not {explicit!r}")
    context = context_of(fn)
    positional = len(signature_of(fn).parameters) >= 2 and not context

    def bind(arguments: Any, ctx: ToolContext) -> tuple[list[Any], dict[str, Any]]:
        return ([arguments, ctx] if positional else [arguments]), dict.fromkeys(context, ctx)

    return explicit, executor(fn, bind)


def _own(kind: type, name: str) -> Any:
    """A method that the class of an object defines; ``type`` itself has a ``__call__`` that is not meant."""
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def _own_doc(kind: type) -> str:
    return inspect.cleandoc(kind.__doc__) if kind.__doc__ else ""


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
