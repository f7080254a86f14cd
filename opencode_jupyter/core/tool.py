"""Tools: how one is defined and what its wrapped `execute` does (reference: core.md 1).

`Tool` is an id and a way to make a definition; `Tool.init` makes a fresh, wrapped definition, so nothing
shared is ever changed. `@tool` turns a function into one.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, overload

import anyio.to_thread
from pydantic import BaseModel, ValidationError

from .context import InitContext, ToolContext
from .defining import listeners
from .errors import InvalidArgumentsError, ToolError
from .function import parameters_of
from .result import ToolResult, attachments_of
from .schema import json_schema

if TYPE_CHECKING:
    from .workspace import Workspace

Execute = Callable[[Any, ToolContext], Any]
FormatValidationError = Callable[[ValidationError], str]


Completions = Callable[["Workspace", str], Iterable[str]]


@dataclass(slots=True)
class Definition:
    """What a tool is, for one agent."""

    description: str
    parameters: type[BaseModel] | dict[str, Any]
    """A pydantic model, or a JSON schema that something else checks (MCP)."""
    execute: Execute
    """``(arguments, context)`` to a result; sync functions run in a worker thread."""
    format_validation_error: FormatValidationError | None = None


Init = Definition | Callable[[InitContext], Definition | Awaitable[Definition]]


@dataclass(slots=True)
class Bound:
    """A tool ready to be called: its definition with validation around `execute`."""

    id: str
    description: str
    definition: Definition
    is_async: bool = field(init=False)

    def __post_init__(self) -> None:
        self.is_async = inspect.iscoroutinefunction(self.definition.execute)

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON schema of the arguments, as a provider is sent it."""
        given = self.definition.parameters
        return given if isinstance(given, dict) else json_schema(given)

    def validate(self, arguments: dict[str, Any]) -> Any:
        """The arguments as the tool's model, defaults and coercions applied.

        Raises:
            InvalidArgumentsError: they do not fit; the message is the tool's own if it has a formatter.
        """
        model = self.definition.parameters
        if isinstance(model, dict):
            return arguments
        try:
            return model.__pydantic_validator__.validate_python(arguments)
        except ValidationError as error:
            formatter = self.definition.format_validation_error
            if formatter is not None:
                message = formatter(error)
            else:
                message = (
                    f"The {self.id} tool was called with invalid arguments: {issues(error)}.\n"
                    "Please rewrite the input so it satisfies the expected schema."
                )
            raise InvalidArgumentsError(message, tool=self.id, cause=error) from error

    async def execute(self, arguments: Any, ctx: ToolContext) -> ToolResult:
        """Run the tool on validated arguments.

        Raises:
            TypeError: it returned something that is no result.
            ToolError: it tried to end the process.
        """
        run = self.definition.execute
        try:
            if self.is_async:
                outcome = await run(arguments, ctx)
            else:
                # A thread can't be killed: on a cancel it is left to end by itself, and the caller goes on.
                outcome = await anyio.to_thread.run_sync(run, arguments, ctx, abandon_on_cancel=True)
                if inspect.isawaitable(outcome):
                    outcome = await outcome
        except SystemExit as error:
            # Let through, it would end the event loop, and with it every other call.
            raise ToolError(f"the {self.id} tool tried to end the process (SystemExit: {error.code})") from error
        except KeyboardInterrupt as error:
            raise ToolError(f"the {self.id} tool interrupted itself (KeyboardInterrupt)") from error
        return as_result(self.id, outcome)


class Tool:
    """An id and the way to make its definition.

    Attributes:
        id: unique name.
        runs_in: ``engine`` (default) or ``kernel``: the notebook's main thread, for tools that touch the user's
            objects.
        body: the parameter that a ``%%tool`` cell's body fills.
        builtin: part of this package.
        external: runs elsewhere (an MCP server): ``batch`` leaves it to a call of its own.
        completions: gives the values that Tab offers for a parameter: called with the workspace and the parameter's
            name as on the wire. It must be quick, and safe on any thread.
        source: where it came from, for listings.
    """

    def __init__(
        self,
        id: str,
        init: Init,
        *,
        runs_in: Literal["engine", "kernel"] = "engine",
        body: str | None = None,
        builtin: bool = False,
        external: bool = False,
        completions: Completions | None = None,
        source: str = "",
    ) -> None:
        self.id = id
        self.runs_in = runs_in
        self.body = body
        self.builtin = builtin
        self.external = external
        self.completions = completions
        self.source = source
        self._init = init
        self._static: Bound | None = Bound(id, init.description, init) if isinstance(init, Definition) else None

    @classmethod
    def define(cls, id: str, init: Init | dict[str, Any], **options: Any) -> Tool:
        """A tool from a definition, a dict of one, or a (possibly async) function of `InitContext` that returns one."""
        return cls(id, _definition(init) if isinstance(init, dict) else init, **options)

    @property
    def static(self) -> Bound | None:
        """The bound form of a tool whose definition depends on nothing; None for the others."""
        return self._static

    async def init(self, ctx: InitContext | None = None) -> Bound:
        """A fresh, wrapped definition for this agent."""
        if self._static is not None:
            return self._static
        made: Any = self._init(ctx or InitContext())  # type: ignore[operator]  # a Definition is always static
        if inspect.isawaitable(made):
            made = await made
        definition = _definition(made) if isinstance(made, dict) else made
        if not isinstance(definition, Definition):
            raise TypeError(f"init of the tool {self.id} must give a Definition, not {type(definition).__name__}")
        return Bound(self.id, definition.description, definition)

    def __repr__(self) -> str:
        return f"Tool({self.id!r})"


def _definition(given: dict[str, Any]) -> Definition:
    known = {"description", "parameters", "execute", "format_validation_error", "formatValidationError"}
    unknown = set(given) - known
    if unknown:
        wrong, right = ", ".join(sorted(unknown)), ", ".join(sorted(known))
        raise TypeError(f"a tool definition has no field {wrong}; it has {right}")
    return Definition(
        given["description"],
        given["parameters"],
        given["execute"],
        given.get("format_validation_error") or given.get("formatValidationError"),
    )


@overload
def tool(id: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    id: str | None = None,
    /,
    *,
    description: str | None = None,
    parameters: type[BaseModel] | None = None,
    format_validation_error: FormatValidationError | None = None,
    runs_in: Literal["engine", "kernel"] = "engine",
    body: str | None = None,
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    id: str | Callable[..., Any] | None = None,
    /,
    *,
    description: str | None = None,
    parameters: type[BaseModel] | None = None,
    format_validation_error: FormatValidationError | None = None,
    runs_in: Literal["engine", "kernel"] = "engine",
    body: str | None = None,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function, sync or async.

    Args:
        id: the tool's id; the function's name if left out.
        description: for the model; the docstring if left out.
        parameters: a pydantic model; then the function is called with it whole. If left out it is made from the
            signature, and the function is called with keyword arguments. A parameter named ``ctx`` gets the context.
        format_validation_error: makes the message for arguments that do not fit.
        runs_in: ``kernel`` for a function that must run on the notebook's main thread.
        body: the parameter that a ``%%tool`` cell's body fills.

    Returns:
        A `Tool`; register it with `Workspace.registry.register`.
    """
    if callable(id):
        return tool()(id)

    def decorate(fn: Callable[..., Any]) -> Tool:
        name = id or fn.__name__
        model, execute = parameters_of(fn, parameters)
        text = description if description is not None else inspect.getdoc(fn) or ""
        definition = Definition(text, model, execute, format_validation_error)
        made = Tool(name, definition, runs_in=runs_in, body=body, source=getattr(fn, "__module__", "") or "")
        made.__doc__ = text
        for listener in listeners:
            listener(made)
        return made

    return decorate


def as_result(tool_id: str, outcome: Any) -> ToolResult:
    """A `ToolResult` from what a tool returned: one, a string, or a dict with OpenCode's keys.

    Raises:
        TypeError: it is none of these.
    """
    if isinstance(outcome, ToolResult):
        if not isinstance(outcome.output, str):
            raise TypeError(f"the {tool_id} tool's output must be text, not {type(outcome.output).__name__}")
        return outcome
    if isinstance(outcome, str):
        return ToolResult(output=outcome)
    if isinstance(outcome, dict) and isinstance(outcome.get("output"), str):
        return ToolResult(
            title=str(outcome.get("title", "")),
            output=outcome["output"],
            metadata=dict(outcome.get("metadata") or {}),
            attachments=attachments_of(outcome.get("attachments")),
        )
    raise TypeError(
        f"the {tool_id} tool returned {type(outcome).__name__}; a tool must return a str, a ToolResult, "
        "or a dict with title, output and metadata"
    )


def issues(error: ValidationError) -> str:
    """A validation error as a JSON array of issues, indented by 2, as OpenCode prints one."""
    found = []
    for item in error.errors(include_url=False, include_context=False):
        missing = item["type"] == "missing"
        issue = {
            "code": "invalid_type" if missing or item["type"].endswith("_type") else item["type"],
            "path": list(item["loc"]),
            "message": "Required" if missing else item["msg"],
        }
        if not missing:
            issue["received"] = _short(item.get("input"))
        found.append(issue)
    return json.dumps(found, indent=2, ensure_ascii=False, default=str)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
