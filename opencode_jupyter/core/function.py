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


def described(given: Any) -> Described:
    """Describe a function, method, partial, object or class as a tool.

    Raises:
        TypeError: there is nothing to call, or the class wants arguments to make an object.
    """
    if isinstance(given, functools.partial):
        inner = described(given.func)
        return Described(given, inner.name, inner.description)
    if inspect.isroutine(given) or inspect.isfunction(given):
        name = getattr(given, "__name__", "")
        return Described(given, "" if name == "<lambda>" else name, inspect.getdoc(given) or "")
    kind = given if isinstance(given, type) else type(given)
    method = next((one for one in ("execute", "__call__") if callable(_own(kind, one))), None)
    if method is None:
        raise TypeError(
            f"{kind.__name__} can't be made a tool: it needs a method execute or __call__ with the tool's parameters"
        )
    if isinstance(given, type):
        try:
            given = given()
        except TypeError as error:
            raise TypeError(
                f"{kind.__name__} can't be made without arguments ({error}); make one and give that: "
                f"tool({kind.__name__}(...))"
            ) from error
    own = getattr(given, method)
    text = getattr(given, "description", None)
    if not isinstance(text, str):
        text = _own_doc(kind) or inspect.getdoc(own) or ""
    names = (getattr(given, "id", None), getattr(given, "name", None))
    name = next((one for one in names if isinstance(one, str) and one), _snake(kind.__name__))
    parameters = getattr(given, "parameters", None)
    if not isinstance(parameters, dict) and not (isinstance(parameters, type) and issubclass(parameters, BaseModel)):
        parameters = None
    return Described(own, name, text, parameters)


def execute_of(fn: Callable[..., Any], given: Schema | None) -> tuple[Schema, Callable[..., Any]]:
    """The parameters of `fn` and an ``execute(arguments, ctx)`` that calls it.

    Args:
        fn: a sync or async function or generator; a parameter named ``ctx`` (or annotated `ToolContext`) is not the
            model's.
        given: an explicit model or JSON schema; then `fn` takes the model (the dict) itself as its first argument.

    Raises:
        TypeError: see `signature.parameters_of`.
    """
    if given is None:
        found = parameters_of(fn)
        return found.model, executor(fn, found.bind)
    if not isinstance(given, dict) and not (isinstance(given, type) and issubclass(given, BaseModel)):
        raise TypeError(f"parameters= takes a pydantic model (the class) or a JSON schema (a dict), not {given!r}")
    context = context_of(fn)
    positional = len(signature_of(fn).parameters) >= 2 and not context

    def bind(arguments: Any, ctx: ToolContext) -> tuple[list[Any], dict[str, Any]]:
        return ([arguments, ctx] if positional else [arguments]), dict.fromkeys(context, ctx)

    return given, executor(fn, bind)


def _own(kind: type, name: str) -> Any:
    """A method that the class of an object defines; ``type`` itself has a ``__call__`` that is not meant."""
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def _own_doc(kind: type) -> str:
    return inspect.cleandoc(kind.__doc__) if kind.__doc__ else ""


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
