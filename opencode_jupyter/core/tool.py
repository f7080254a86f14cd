"""Tools: how one is defined and what its wrapped `execute` does (docs/opencode/core.md 1).

`Tool` is an id and a way to make a definition; `Tool.init` makes a fresh, wrapped definition, so nothing
shared is ever changed. `@tool` turns a function into one.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, overload

from pydantic import BaseModel, ValidationError

from .card_spec import CARDS, PLAIN, CardSpec
from .context import InitContext, ToolContext
from .defined_tools import on_tool_defined
from .errors import InvalidArgumentsError, InvalidDefinitionError, InvalidResultError, ToolError
from .option_checks import check_option_names
from .result import RESULT_KEYS, ToolResult, attachments_of
from .schema import ParameterSchema, json_schema, schema_for_person
from .suggestions import near_names, suggestion
from .threads import run_in_thread
from .validation_issues import as_json, list_issues, misspelled, sentences

if TYPE_CHECKING:
    from .host import ToolHost

Execute = Callable[[Any, ToolContext], Any]
FormatValidationError = Callable[[Any], str]
"""Makes the message for a model of an error with a method ``errors()``: pydantic's, or a `SchemaMismatchError`."""


Completions = Callable[["ToolHost", str], Iterable[str]]
RUNS_IN = ("engine", "kernel")
ToolGroup = Literal["", "files", "search", "run", "web", "agent", "notebook", "internal"]
Effect = Literal["", "reads", "fetches", "writes", "acts", "notes"]
CHANGES_NO_FILES = frozenset({"reads", "fetches", "notes"})
"""Effects of tools that leave the project's files as they are."""


@dataclass(slots=True)
class Definition:
    """A tool's description, parameters and function, for one agent."""

    description: str
    parameters: ParameterSchema
    """A pydantic model or a JSON schema; `check` goes before both."""
    execute: Execute
    """``(arguments, context)`` to a result. Sync functions run in a worker thread; generators stream."""
    format_validation_error: FormatValidationError | None = None
    check: Callable[[dict[str, Any]], Any] | None = None
    """Checks the arguments in the place of `parameters` and gives what `execute` gets; raises pydantic's
    ``ValidationError``, or ``ValueError`` with a message for the model. `checked_elsewhere` leaves it to others."""
    asks: bool = False
    """True if `execute` itself requests permission under the tool's own id before it acts, whatever its arguments.

    For every other tool the pipeline does, where a rule asks.
    """

    def __post_init__(self) -> None:
        if inspect.isasyncgenfunction(self.execute) or inspect.isgeneratorfunction(self.execute):
            from .streaming import executor  # here: few tools stream

            self.execute = executor(self.execute, lambda arguments, ctx: ([arguments, ctx], {}))


Init = Definition | Callable[[InitContext], Definition | Awaitable[Definition]]


@dataclass(slots=True)
class Bound:
    """A tool ready to be called: its definition with validation around `execute`."""

    id: str
    description: str
    definition: Definition
    is_async: bool = field(init=False)
    _check_schema: Callable[[dict[str, Any]], dict[str, Any]] | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        self.is_async = inspect.iscoroutinefunction(self.definition.execute)

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON schema of the arguments, as a provider is sent it."""
        schema = self.definition.parameters
        return schema if isinstance(schema, dict) else json_schema(schema)

    @property
    def parameters_for_person(self) -> dict[str, Any]:
        """The same schema with the descriptions that a person reads."""
        model = self.definition.parameters
        return model if isinstance(model, dict) else schema_for_person(model)

    def validate(self, arguments: dict[str, Any]) -> Any:
        """The arguments as the tool's model, defaults and coercions applied.

        Raises:
            InvalidArgumentsError: they do not fit; the message is the tool's own if it has a formatter.
        """
        model, check = self.definition.parameters, self.definition.check
        if check is None:
            if isinstance(model, dict):
                if self._check_schema is None:
                    from .schema_validation import checker  # here, as below: built-in tools have models

                    self._check_schema = checker(model, self.id, fill_defaults=True)
                check = self._check_schema
            else:
                check = model.__pydantic_validator__.validate_python
        try:
            return check(arguments)
        except ValueError as error:  # pydantic's is one
            from .schema_validation import SchemaMismatchError

            formatter = self.definition.format_validation_error
            for_person = f"{self.id}: {error}"
            reason = str(error)
            if isinstance(error, ValidationError):
                issues = list_issues(error, self.parameters)
                reason, for_person = as_json(issues), sentences(self.id, issues)
                for_person += misspelled(self.id, arguments, self.parameters.get("properties") or {})
            elif isinstance(error, SchemaMismatchError):
                for_person = sentences(self.id, error.errors())
            if formatter is not None and isinstance(error, ValidationError | SchemaMismatchError):
                message = formatter(error)
            else:
                message = (
                    f"The {self.id} tool was called with invalid arguments: {reason}.\n"
                    "Please rewrite the input so it satisfies the expected schema."
                )
            raise InvalidArgumentsError(message, tool=self.id, cause=error, for_person=for_person) from error

    def check_definition(self) -> Bound:
        """Check the definition; returns itself.

        Raises:
            InvalidDefinitionError: a field is of the wrong kind, or `parameters` is no valid JSON schema.
        """
        definition, parameters = self.definition, self.definition.parameters
        if not isinstance(definition.description, str):
            raise InvalidDefinitionError(
                f"The description of the tool {self.id} must be a string, not {definition.description!r}"
            )
        if not callable(definition.execute):
            raise InvalidDefinitionError(
                f"execute of the tool {self.id} must be a function (arguments, ctx), not {definition.execute!r}"
            )
        if not isinstance(definition.asks, bool):
            raise InvalidDefinitionError(f"asks of the tool {self.id} must be True or False, not {definition.asks!r}")
        if isinstance(parameters, dict):
            if definition.check is None:
                from .schema_validation import validator_of

                validator_of(parameters, self.id)
        elif not (isinstance(parameters, type) and issubclass(parameters, BaseModel)):
            raise InvalidDefinitionError(
                f"The parameters of the tool {self.id} must be a JSON schema (a dict) or a pydantic model (the class), "
                f"not {parameters!r}"
            )
        return self

    async def execute(self, arguments: Any, ctx: ToolContext) -> ToolResult:
        """Run the tool on validated arguments.

        Raises:
            InvalidResultError: it returned something that is no result.
            ToolError: it tried to end the process.
        """
        run = self.definition.execute
        try:
            if self.is_async:
                outcome = await run(arguments, ctx)
            else:
                # A thread can't be killed: on a cancel it is left to end by itself, and the caller continues.
                outcome = await run_in_thread(run, arguments, ctx)
                if inspect.isawaitable(outcome):
                    outcome = await outcome
        except SystemExit as error:
            # Let through, it would end the event loop, and with it every other call.
            raise ToolError(f"The {self.id} tool tried to end the process (SystemExit: {error.code})") from error
        except KeyboardInterrupt as error:
            raise ToolError(f"The {self.id} tool interrupted itself (KeyboardInterrupt)") from error
        if isinstance(outcome, str) or (isinstance(outcome, ToolResult) and outcome.value is None):
            return as_result(self.id, outcome)
        # drawing a figure takes its time
        return await run_in_thread(as_result, self.id, outcome)


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is declared of a tool beside its definition; tables of tools are derived from it.

    Attributes:
        builtin: part of this package.
        group: the heading under which lists show a built-in tool; they leave out ``internal`` ones.
        effect: what a call does: ``reads`` files and state, ``fetches`` from the web, ``writes`` files, ``acts`` (it
            may do anything), ``notes`` something for the session only. Empty if unknown.
        permission: the permission that its requests use, None for its id; empty if it requests none.
        example: a line that calls it.
        card: how its calls are shown.
        keeps_output: its outputs are instructions, so a long conversation keeps them.
    """

    builtin: bool = False
    group: ToolGroup = ""
    effect: Effect = ""
    permission: str | None = None
    example: str = ""
    card: CardSpec = PLAIN
    keeps_output: bool = False


MANIFEST_FIELDS = tuple(field.name for field in fields(Manifest))


class Tool:
    """An id and the way to make its definition.

    Attributes:
        id: unique name.
        runs_in: ``engine`` (default) or ``kernel``: the notebook's main thread, for tools that touch the user's
            objects.
        body: the parameter that a ``%%tool`` cell's body fills.
        manifest: what else is declared of it.
        builtin: part of this package.
        external: runs elsewhere (an MCP server): ``batch`` leaves it to a call of its own.
        completions: gives the values that Tab offers for a parameter: called with the workspace and the parameter's
            name as on the wire. It must be quick, and safe on any thread.
        source: where it came from, for listings.
        permission: the permission that its requests use, by default its id; empty if it requests none.
        static: its bound form, if its definition depends on nothing; None for the others.
    """

    def __init__(
        self,
        id: str,
        init: Init,
        *,
        runs_in: Literal["engine", "kernel"] = "engine",
        body: str | None = None,
        external: bool = False,
        completions: Completions | None = None,
        source: str = "",
        manifest: Manifest = Manifest(),
    ) -> None:
        if runs_in not in RUNS_IN:
            raise InvalidDefinitionError(f"runs_in of the tool {id} must be 'engine' or 'kernel', not {runs_in!r}")
        self.id = id
        self.runs_in = runs_in
        self.body = body
        self.external = external
        self.completions = completions
        self.source = source
        self.builtin = manifest.builtin
        self.manifest = manifest
        self.permission = id if manifest.permission is None else manifest.permission
        if self.builtin:
            CARDS[id] = manifest.card
        self._init = init
        self.static: Bound | None = Bound(id, init.description, init) if isinstance(init, Definition) else None

    @classmethod
    def define(cls, id: str, init: Init | dict[str, Any], **options: Any) -> Tool:
        """A tool from a definition, a dict of one, or a (possibly async) function of `InitContext` that returns one.

        Args:
            id: unique name.
            init: the definition. A function of it is called anew for every agent and every step of a model.
            **options: see `Tool` and `Manifest`; ``source`` is the module that calls, if left out.

        Returns:
            A `Tool`; a notebook's cells register theirs by defining them.

        Raises:
            InvalidDefinitionError: a field is missing or wrong; the message names it and the tool.
        """
        if not isinstance(id, str) or not id:
            raise InvalidDefinitionError(f"The id of a tool must be a string that is not empty, not {id!r}")
        if not isinstance(init, dict | Definition) and not callable(init):
            raise InvalidDefinitionError(f"The tool {id} must be a definition, a dict or a function, not {init!r}")
        check_option_names(cls.__init__, options, "Tool.define", others=MANIFEST_FIELDS)
        declared = {name: options.pop(name) for name in MANIFEST_FIELDS if name in options}
        manifest = options.pop("manifest", Manifest())
        if not isinstance(manifest, Manifest):
            raise InvalidDefinitionError(f"manifest of the tool {id} must be a Manifest, not {manifest!r:.80}")
        options["manifest"] = replace(manifest, **declared)
        options.setdefault("source", sys._getframe(1).f_globals.get("__name__", ""))
        made = cls(id, _definition(id, init) if isinstance(init, dict) else init, **options)
        if made.static is not None:
            made.static.check_definition()
        else:
            made.__doc__ = inspect.getdoc(init)
        for listener in on_tool_defined:
            listener(made)
        return made

    async def init(self, ctx: InitContext | None = None) -> Bound:
        """A fresh, wrapped definition for this agent."""
        if self.static is not None:
            return self.static
        made: Any = self._init(ctx or InitContext())  # type: ignore[operator]  # a Definition is always static
        if inspect.isawaitable(made):
            made = await made
        definition = _definition(self.id, made) if isinstance(made, dict) else made
        if not isinstance(definition, Definition):
            raise InvalidDefinitionError(
                f"The function that defines the tool {self.id} must return a Definition or a dict, not {made!r:.80}"
            )
        return Bound(self.id, definition.description, definition).check_definition()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """The fields of the manifest are attributes of a tool too."""
            if name in MANIFEST_FIELDS:
                return getattr(self.manifest, name)
            raise AttributeError(f"A Tool has no attribute {name!r}", name=name, obj=self)

    def __repr__(self) -> str:
        return f"Tool({self.id!r})"


REQUIRED = ("description", "parameters", "execute")
"""Fields that a definition in the form of a dict must have."""
FIELDS = (*REQUIRED, "format_validation_error", "formatValidationError", "asks")


def checked_elsewhere(arguments: dict[str, Any]) -> dict[str, Any]:
    """A `Definition.check` for a tool of another program, which checks the arguments by itself."""
    return arguments


def _definition(id: str, fields: dict[str, Any]) -> Definition:
    for name in fields:
        if name not in FIELDS:
            hint = suggestion(near_names(str(name), FIELDS)) or f" It has {', '.join(FIELDS)}."
            raise InvalidDefinitionError(f"The definition of the tool {id} has no field {name!r}.{hint}")
    missing = [name for name in REQUIRED if name not in fields]
    if missing:
        hint = ""
        if "parameters" in missing:
            hint = '. A tool without parameters has "parameters": {"type": "object", "properties": {}}'
        raise InvalidDefinitionError(f"The definition of the tool {id} lacks {' and '.join(missing)}{hint}")
    formatter = fields.get("format_validation_error") or fields.get("formatValidationError")
    asks = fields.get("asks", False)
    return Definition(fields["description"], fields["parameters"], fields["execute"], formatter, asks=asks)


@overload
def tool(id: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    id: str | None = None,
    /,
    *,
    description: str | None = None,
    parameters: ParameterSchema | None = None,
    format_validation_error: FormatValidationError | None = None,
    runs_in: Literal["engine", "kernel"] = "engine",
    body: str | None = None,
    asks: bool = False,
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    id: str | Callable[..., Any] | None = None,
    /,
    *,
    description: str | None = None,
    parameters: ParameterSchema | None = None,
    format_validation_error: FormatValidationError | None = None,
    runs_in: Literal["engine", "kernel"] = "engine",
    body: str | None = None,
    asks: bool = False,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function, sync or async, or of what can be called like one (`core.function_tool`).

    A generator shows each text it yields at once; a `ToolResult` it yields or returns at its end adds title, metadata
    and attachments (`core.streaming`).

    Args:
        id: the tool's id; the function's name if left out.
        description: for the model; the docstring if left out.
        parameters: a pydantic model (or a JSON schema); then the function is called with it (with a dict) whole. If
            left out it is made from the signature, and the function is called with keyword arguments. A parameter
            named ``ctx`` gets the context.
        format_validation_error: makes the message for arguments that do not fit.
        runs_in: ``kernel`` for a function that must run on the notebook's main thread.
        body: the parameter that a ``%%tool`` cell's body fills.
        asks: the function requests permission under the tool's own id itself (``await ctx.ask(id, patterns)``), on
            every path and before it acts. Without it, a rule that asks is applied before the function runs.

    Returns:
        A `Tool`; register it with `Workspace.registry.register`.

    Raises:
        TypeError: there is nothing to call, or a parameter can't come as JSON; the message names it.
    """
    if id is not None and not isinstance(id, str):
        return tool()(id)

    from .function_tool import describe_callable, execute_of  # here: built-in tools are no functions

    def decorate(fn: Callable[..., Any]) -> Tool:
        if isinstance(fn, Tool):
            raise TypeError(f"{fn.id} is a tool already")
        described_tool = describe_callable(fn)
        name = id or described_tool.name
        if not name:
            raise TypeError(f"this function has no name; give the tool one: tool('name')({fn!r})")
        model, execute = execute_of(described_tool.fn, parameters or described_tool.parameters)
        text = description if description is not None else described_tool.description
        definition = Definition(text, model, execute, format_validation_error, asks=asks)
        made = Tool(name, definition, runs_in=runs_in, body=body, source=_module_of(fn))
        if made.static is not None:
            made.static.check_definition()
        made.__doc__ = text
        for listener in on_tool_defined:
            listener(made)
        return made

    return decorate


def _module_of(fn: Any) -> str:
    """Where something that can be called was written."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    return getattr(fn, "__module__", "") or ""


def as_result(tool_id: str, outcome: Any) -> ToolResult:
    """A `ToolResult` from what a tool returned: one, text, a dict with OpenCode's keys, or a value that can be shown.

    Raises:
        InvalidResultError: it cannot be shown, or has fields of wrong types.
    """
    if isinstance(outcome, ToolResult):
        if not isinstance(outcome.output, str):
            raise InvalidResultError(f"The {tool_id} tool's output must be text, not {type(outcome.output).__name__}")
        if not isinstance(outcome.metadata, dict):
            raise InvalidResultError(
                f"The {tool_id} tool's metadata must be a dict, not {type(outcome.metadata).__name__}"
            )
        if outcome.attachments:
            outcome.attachments = attachments_of(outcome.attachments)
        if outcome.output or (outcome.value is None and outcome.records is None):
            return outcome
    if type(outcome) is str:
        return ToolResult("", outcome, {}, [])
    if isinstance(outcome, dict) and isinstance(outcome.get("output"), str) and outcome.keys() <= RESULT_KEYS:
        return ToolResult(
            title=str(outcome.get("title", "")),
            output=outcome["output"],
            metadata=dict(outcome.get("metadata") or {}),
            attachments=attachments_of(outcome.get("attachments")),
        )
    from .result_values import complete, result_of  # here: most tools return text

    return complete(tool_id, outcome) if isinstance(outcome, ToolResult) else result_of(tool_id, outcome)
