"""A plain function as a tool: its signature and docstring as a parameter model, and a call with what was validated.

What else can be called counts as one: a method of an object, a `functools.partial`, an object with ``execute`` or
``__call__``, a class of such objects. Whatever can't come as JSON is refused when the tool is made, with an error that
names the parameter.
"""

from __future__ import annotations

import functools
import inspect
import logging
import re
import sys
import types
import typing
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Optional

from docstring_parser.google import DEFAULT_SECTIONS, GoogleParser, Section, SectionType
from docstring_parser.numpydoc import NumpydocParser
from docstring_parser.rest import parse as parse_sphinx
from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.errors import (
    PydanticInvalidForJsonSchema,
    PydanticSchemaGenerationError,
    PydanticUndefinedAnnotation,
    PydanticUserError,
)
from pydantic.fields import FieldInfo
from pydantic.json_schema import PydanticJsonSchemaWarning

from .context import ToolContext
from .schema import ParameterSchema, json_schema
from .streaming import executor

log = logging.getLogger(__name__)

CONTEXT = "ctx"
PACKAGE = __name__.split(".", maxsplit=1)[0]
_CONFIG = ConfigDict(arbitrary_types_allowed=False, extra="ignore", protected_namespaces=())
_ADVICE = (
    "An argument comes as JSON: take text that the function can find the object by (a path, a variable's name), or a "
    "type made of str, int, float, bool, list, dict, datetime, Path, Enum, Literal, a dataclass or a pydantic model"
)
_KEYWORDS = [Section(title, "param", SectionType.MULTIPLE) for title in ("Keyword Args", "Keyword Arguments")]
_DOCSTRING_PARSERS = (GoogleParser([*DEFAULT_SECTIONS, *_KEYWORDS]).parse, NumpydocParser().parse, parse_sphinx)


@dataclass(frozen=True, slots=True)
class FunctionParameters:
    """The parameters of a function.

    Attributes:
        model: the parameter model, without the context.
        attributes: parameter to the model's attribute, in the order of the signature.
        context: parameters that get the `ToolContext`.
        positional: parameters that can't be given by name, in order.
    """

    model: type[BaseModel]
    attributes: dict[str, str]
    context: list[str]
    positional: list[str]

    def bind(self, arguments: Any, ctx: ToolContext) -> tuple[list[Any], dict[str, Any]]:
        """Positional and named arguments of the function."""
        fields = vars(arguments)
        values = {name: fields[attribute] for name, attribute in self.attributes.items()}
        for name in self.context:
            values[name] = ctx
        return [values.pop(name) for name in self.positional] if self.positional else [], values


def parameters_of(fn: Callable[..., Any]) -> FunctionParameters:
    """The parameter model of a function.

    A parameter named ``ctx`` or annotated `ToolContext` is not the model's. One without annotation takes anything.

    Raises:
        TypeError: the function has ``*args`` or ``**kwargs``, or a parameter has a type that can't come as JSON or
            can't be found; the message names the parameter.
    """
    signature = signature_of(fn)
    hints = _Annotations(fn)
    doc = inspect.getdoc(inspect.unwrap(_unwrap_partial(fn)))
    texts = parameter_texts(doc) if doc else {}
    fields: dict[str, Any] = {}
    attributes: dict[str, str] = {}
    context: list[str] = []
    positional: list[str] = []
    for number, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(
                f"{_name(fn)}: a tool can't have the parameter {parameter}; give each one a name "
                "(a list or a dict takes any number of values)"
            )
        if number == 0 and name == "self" and parameter.annotation is parameter.empty:
            raise TypeError(
                f"{_name(fn)}: a method is not a tool by itself; register an object's method: tool(thing.{fn.__name__})"
            )
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(name)
        annotation = hints.of(name, parameter.annotation)
        if annotation is ToolContext:
            context.append(name)
            continue
        annotation = _add_description(annotation, texts.get(name))
        if parameter.default is None:
            annotation = Optional[annotation]  # noqa: UP045 - it may be anything, a string among them
        attribute = name
        if name.startswith("_") or hasattr(BaseModel, name):  # pydantic keeps these names for itself
            attribute = f"argument_{name}"
            annotation = Annotated[annotation, Field(alias=name)]
        attributes[name] = attribute
        fields[attribute] = (annotation, ... if parameter.default is parameter.empty else parameter.default)
    names = {attribute: name for name, attribute in attributes.items()}
    return FunctionParameters(_model(fn, fields, names), attributes, context, positional)


def parameter_texts(doc: str) -> dict[str, str]:
    """Each parameter's text in a docstring of Google's, NumPy's or Sphinx's style, its lines joined.

    Args:
        doc: the docstring without the indentation of the code (`inspect.getdoc`).
    """
    texts: dict[str, str] = {}
    for parse in _DOCSTRING_PARSERS:
        try:
            parameters = parse(f"\n{doc}").params
        except Exception as error:  # also what the library raises for a text it did not expect: IndexError, for one
            log.debug("not a docstring of this style: %s", error)
            continue
        for parameter in parameters:
            text = " ".join((parameter.description or "").split())
            names = re.findall(r"\w+", parameter.arg_name) if text and parameter.args[0] != "attribute" else []
            texts |= {name: text for name in names if name not in texts}
    return texts


def context_of(fn: Callable[..., Any]) -> list[str]:
    """The parameters of a function that get the context."""
    hints = _Annotations(fn)
    names = []
    for name, parameter in signature_of(fn).parameters.items():
        try:
            annotation = hints.of(name, parameter.annotation)
        except TypeError:  # of a parameter that is not looked at
            continue
        if annotation is ToolContext:
            names.append(name)
    return names


def signature_of(fn: Callable[..., Any]) -> inspect.Signature:
    """`inspect.signature`, with annotations that can't be evaluated left as they stand.

    Raises:
        TypeError: the function is written in C, without a signature.
    """
    try:
        if sys.version_info >= (3, 14):
            import annotationlib

            return inspect.signature(fn, annotation_format=annotationlib.Format.FORWARDREF)
        return inspect.signature(fn)
    except ValueError as error:
        raise TypeError(f"{_name(fn)} has no signature; wrap it in a function that has one") from error


class _Annotations:
    """The types that annotations stand for, found one by one."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._fn = fn
        target: Any = inspect.unwrap(_unwrap_partial(inspect.unwrap(fn)))
        target = getattr(target, "__func__", target)
        self._globals: dict[str, Any] = getattr(target, "__globals__", {})
        self._locals: dict[str, Any] | None = None
        self._code = getattr(target, "__code__", None)
        self._cells = getattr(target, "__closure__", None) or ()

    def of(self, name: str, annotation: Any) -> Any:
        """What an annotation means; `ToolContext` for any form of it, and for a parameter named ``ctx``.

        Raises:
            TypeError: a name in it can't be found.
        """
        if name == CONTEXT or annotation is ToolContext:
            return ToolContext
        if annotation is inspect.Parameter.empty:
            return Any
        try:
            resolved = self._resolve_annotation(name, annotation)
        except Exception as error:
            if _last_name(annotation) == ToolContext.__name__:  # imported for type checkers only
                return ToolContext
            shown = annotation if isinstance(annotation, str) else getattr(annotation, "__forward_arg__", annotation)
            raise TypeError(
                f"{_name(self._fn)}: the type {shown} of the parameter {name} can't be found ({error}); "
                "import or define it before the function (not under TYPE_CHECKING)"
            ) from error
        if resolved is ToolContext or ToolContext in typing.get_args(resolved):
            return ToolContext
        return resolved

    def _resolve_annotation(self, name: str, annotation: Any) -> Any:
        holder = types.SimpleNamespace(__annotations__={name: annotation})
        if self._locals is None:
            self._locals = self._visible_names()
        return typing.get_type_hints(holder, self._globals, self._locals, include_extras=True)[name]

    def _visible_names(self) -> dict[str, Any]:
        """Names that the function's body could see, and those around the place where the tool is made."""
        names: dict[str, Any] = {}
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(PACKAGE + "."):
            frame = frame.f_back
        if frame is not None and frame.f_globals is self._globals and frame.f_locals is not self._globals:
            names.update(frame.f_locals)
        if self._code is not None:
            for name, cell in zip(self._code.co_freevars, self._cells, strict=False):
                try:
                    names[name] = cell.cell_contents
                except ValueError:  # not set yet
                    continue
        return names


def _unwrap_partial(fn: Any) -> Any:
    """What a partial calls."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    return fn


def _add_description(annotation: Any, text: str | None) -> Any:
    """An annotation with a description: that of its Field, else ``Annotated[int, "how many"]``'s, else `text`."""
    if typing.get_origin(annotation) is Annotated:
        extras = annotation.__metadata__
        if any(isinstance(extra, FieldInfo) and extra.description for extra in extras):
            return annotation
        text = next((extra for extra in extras if isinstance(extra, str)), text)
    return annotation if text is None else Annotated[annotation, Field(description=text)]


def _last_name(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else str(getattr(annotation, "__forward_arg__", ""))
    return text.partition("|")[0].strip().rpartition(".")[2]


def _model(fn: Callable[..., Any], fields: dict[str, Any], names: dict[str, str]) -> type[BaseModel]:
    try:
        return _create_model(getattr(fn, "__name__", "Parameters"), fields)
    except Exception as error:
        for attribute, field in fields.items():
            try:
                _create_model("Probe", {attribute: field})
            except Exception as own:
                kind = _type_name(field[0])
                raise TypeError(
                    f"{_name(fn)}: the parameter {names[attribute]} has the type {kind}, which can't be given as an "
                    f"argument{_reason(own)}. {_ADVICE}"
                ) from None
        raise TypeError(f"{_name(fn)}: its parameters can't be described ({_first_line(error)})") from error


def _create_model(name: str, fields: dict[str, Any]) -> type[BaseModel]:
    """A model of these fields whose validator and JSON schema are known to work."""
    with warnings.catch_warnings():
        # A default that JSON has no form for is left out of the schema, and still used.
        warnings.simplefilter("ignore", PydanticJsonSchemaWarning)
        model: type[BaseModel] = create_model(name, __config__=_CONFIG, **fields)
        if not model.__pydantic_complete__:
            try:
                model.model_rebuild()
            except PydanticUndefinedAnnotation as error:
                raise TypeError(f"{error.name} is not defined") from error
        json_schema(model)
    return model


def _type_name(annotation: Any) -> str:
    while typing.get_origin(annotation) is Annotated:
        annotation = typing.get_args(annotation)[0]
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")


def _reason(error: Exception) -> str:
    """Why a type can't be used; nothing where pydantic gives no reason."""
    if isinstance(error, (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema)):
        return ""
    return f" ({_first_line(error)})"


def _first_line(error: Exception) -> str:
    text = error.message if isinstance(error, PydanticUserError) else str(error)
    return text.strip().partition("\n")[0].rstrip(".")


def _name(fn: Callable[..., Any]) -> str:
    return str(getattr(fn, "__qualname__", None) or getattr(fn, "__name__", None) or repr(fn))


@dataclass(frozen=True, slots=True)
class CallableDescription:
    """Something that can be called, with its name, description and parameters.

    Attributes:
        fn: the function or bound method to call.
        name: an id for it; "" if it has none.
        description: its docstring.
        parameters: its own parameter model, if it has one.
    """

    fn: Callable[..., Any]
    name: str
    description: str
    parameters: ParameterSchema | None = None


def describe_callable(target: Any) -> CallableDescription:
    """Describe a function, method, partial, object or class as a tool.

    Raises:
        TypeError: there is nothing to call, or the class needs arguments to make an object.
    """
    if isinstance(target, functools.partial):
        inner = describe_callable(target.func)
        return CallableDescription(target, inner.name, inner.description)
    if inspect.isroutine(target) or inspect.isfunction(target):
        name = getattr(target, "__name__", "")
        return CallableDescription(target, "" if name == "<lambda>" else name, inspect.getdoc(target) or "")
    kind = target if isinstance(target, type) else type(target)
    method = next(
        (attribute for attribute in ("execute", "__call__") if callable(_class_attribute(kind, attribute))), None
    )
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
        text = inspect.cleandoc(kind.__doc__ or "") or inspect.getdoc(function) or ""
    names = (getattr(target, "id", None), getattr(target, "name", None))
    name = next(
        (candidate for candidate in names if isinstance(candidate, str) and candidate), _snake_case(kind.__name__)
    )
    parameters = getattr(target, "parameters", None)
    if not isinstance(parameters, dict) and not (isinstance(parameters, type) and issubclass(parameters, BaseModel)):
        parameters = None
    return CallableDescription(function, name, text, parameters)


def execute_of(fn: Callable[..., Any], explicit: ParameterSchema | None) -> tuple[ParameterSchema, Callable[..., Any]]:
    """The parameters of `fn` and an ``execute(arguments, ctx)`` that calls it.

    Args:
        fn: a sync or async function or generator; a parameter named ``ctx`` (or annotated `ToolContext`) is not the
            model's.
        explicit: a model or JSON schema; then `fn` takes the model (the dict) itself as its first argument.

    Raises:
        TypeError: see `parameters_of`.
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


def _class_attribute(kind: type, name: str) -> Any:
    """A method that the class of an object defines; ``type`` itself has a ``__call__`` that is not meant."""
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
