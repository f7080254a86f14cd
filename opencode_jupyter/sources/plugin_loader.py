"""Run a plugin's code: from a `PluginSpec` to its plugin functions, and from what they return to tools and hooks."""

from __future__ import annotations

import importlib
import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, create_model
from pydantic.fields import FieldInfo

from ..core.errors import InvalidArgumentsError
from ..core.function_tool import execute_of
from ..core.hooks import HOOKS
from ..core.ids import clean_tool_id
from ..core.option_checks import check_dotted_name
from ..core.tool import Definition, Tool, tool
from .plugin_discovery import PluginSpec
from .plugin_input import PluginError, describe_error
from .python_modules import run_module

Fn = Callable[..., Any]

UNUSED = ("auth", "provider")
"""Entries of OpenCode's plugins that have no meaning here."""
_BY_SNAKE_CASE = {name.replace(".", "_"): name for name in HOOKS}


@dataclass(slots=True)
class PluginExports:
    """The tools and hooks of one plugin.

    Attributes:
        tools: in order.
        hooks: name and function.
        events: called with ``{"event": ...}`` for every event.
        configs: called with the configuration, which they may change.
        problems: entries that cannot be used, each with the reason.
    """

    tools: list[Tool] = field(default_factory=list)
    hooks: list[tuple[str, Fn]] = field(default_factory=list)
    events: list[Fn] = field(default_factory=list)
    configs: list[Fn] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def summary(self) -> str:
        """A line about the tools and hooks."""
        parts = []
        if self.tools:
            parts.append("tools " + ", ".join(tool.id for tool in self.tools))
        names = [name for name, _ in self.hooks]
        names += ["event"] * bool(self.events) + ["config"] * bool(self.configs)
        if names:
            parts.append("hooks " + ", ".join(dict.fromkeys(names)))
        return "; ".join(parts) or "nothing"

    def add(self, returned: Any, fn: Fn, plugin: str) -> None:
        """Add what a plugin function returned.

        Args:
            returned: a dict or an object of hooks; None for no hooks.
            fn: the function.
            plugin: the plugin's name, for the tools' source.

        Raises:
            PluginError: it returned something else.
        """
        if returned is None:
            return
        if isinstance(returned, (str, bytes, int, float, list, tuple, set)):
            raise PluginError(
                f"{getattr(fn, '__name__', fn)} returned {type(returned).__name__}; a plugin function returns a dict "
                "or an object of hooks. Name the plugin functions in __all__, or start the names of others with an "
                "underscore"
            )
        for name, value in _entries(returned):
            if value is None:
                continue
            if name == "tool":
                self._add_tools(value, plugin)
            elif name in UNUSED:
                self.problems.append(f"{name} is not used here")
            elif not callable(value):
                self.problems.append(f"{name} must be a function, not {type(value).__name__}")
            elif name == "event":
                self.events.append(value)
            elif name == "config":
                self.configs.append(value)
            elif "." in name:
                self._add_hook(name, value)
            else:
                self.problems.append(f"there is no hook {name}")

    def _add_hook(self, name: str, fn: Fn) -> None:
        try:
            check_dotted_name(name, HOOKS, "hook")
        except InvalidArgumentsError as error:
            self.problems.append(str(error))
            return
        self.hooks.append((name, fn))
        if name not in HOOKS:
            self.problems.append(f"only plugins could call its hook {name}")

    def _add_tools(self, definitions: Any, plugin: str) -> None:
        if not isinstance(definitions, Mapping):
            self.problems.append(f"tool must be a dict of id and definition, not {type(definitions).__name__}")
            return
        for id, definition in definitions.items():
            try:
                self.tools.append(make_tool(str(id), definition, f"plugin {plugin}"))
            except Exception as error:
                self.problems.append(f"tool {id}: {describe_error(error)}")


def _entries(returned: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(returned, Mapping):
        for name, value in returned.items():
            yield _BY_SNAKE_CASE.get(str(name), str(name)), value
        return
    for name in ("config", "tool", *_BY_SNAKE_CASE, "event"):
        value = getattr(returned, name, None)
        if value is not None:
            yield _BY_SNAKE_CASE.get(name, name), value


# ---------------------------------------------------------------------- plugin functions


def import_plugin(spec: PluginSpec) -> tuple[list[Fn], str]:
    """Import a plugin. Blocks.

    The plugin functions of a module are the callables that ``__all__`` names; without it the public functions it
    defines that can be called with one argument, or of these, if there are any, those whose argument is annotated
    `PluginInput`.

    Returns:
        Its plugin functions, each once, and the name of the module to drop with it; "" for a package's.

    Raises:
        PluginError: it cannot be imported, or there is no such function.
    """
    try:
        if spec.kind == "entry point":
            imported = spec.target.load()
        elif spec.kind == "module":
            imported = importlib.import_module(spec.target)
        else:
            assert spec.code is not None
            imported = run_module(spec.code, clean_tool_id(spec.code.main.stem), trusted_only=spec.subject is not None)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        raise PluginError(f"importing it failed: {describe_error(error)}") from error
    if not isinstance(imported, types.ModuleType):
        if not callable(imported):
            raise PluginError(f"its entry point is a {type(imported).__name__}; it must name a function or a module")
        return [imported], ""
    functions = list({id(fn): fn for fn in _functions(imported)}.values())
    if not functions:
        raise PluginError(
            f"{imported.__name__ if spec.kind == 'module' else spec.name} exports no plugin function: "
            "define one that takes a PluginInput and returns hooks"
        )
    return functions, imported.__name__ if spec.kind == "file" else ""


def _functions(module: types.ModuleType) -> Iterator[Fn]:
    names = getattr(module, "__all__", None)
    if names is not None:
        for name in names:
            value = getattr(module, str(name), None)
            if callable(value) and hasattr(value, "__name__"):
                yield value
        return
    functions = [
        value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and inspect.isfunction(value)
        and _is_defined_in(value, module)
        and _takes_one_argument(value)
    ]
    yield from [fn for fn in functions if _is_annotated(fn)] or functions


def _is_defined_in(fn: Fn, module: types.ModuleType) -> bool:
    origin = getattr(fn, "__module__", "") or ""
    return origin == module.__name__ or origin.startswith(module.__name__ + ".")


def _takes_one_argument(fn: Fn) -> bool:
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        return False
    try:
        inspect.signature(fn).bind(None)
    except (TypeError, ValueError):
        return False
    return True


def _is_annotated(fn: Fn) -> bool:
    parameters = list(inspect.signature(fn).parameters.values())
    annotation = parameters[0].annotation if parameters else None
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return text.rpartition(".")[2].strip("\"'") == "PluginInput"


# ---------------------------------------------------------------------- tools (docs/opencode/core.md 4.2)


def make_tool(id: str, definition: Any, source: str) -> Tool:
    """A tool from an entry of a plugin's ``tool`` map.

    Args:
        id: its id, which replaces the tool's own.
        definition: a `Tool`, a function, a dict in the form of `Tool.define` (``description``, ``parameters``,
            ``execute``), or one in OpenCode's plugin form, ``{description, args, execute(args, ctx)}``. There ``args``
            maps names to types, to ``(type, default)`` or pydantic fields, or to JSON schemas; `execute` gets a dict.
            Either dict may have ``asks`` (`Definition.asks`).
        source: for lists.

    Raises:
        TypeError: it is none of these.
        KeyError: a dict lacks ``execute``.
    """
    if not id:
        raise TypeError("a tool needs an id")
    if isinstance(definition, Tool):
        return Tool(
            id,
            definition._init,
            runs_in=definition.runs_in,
            body=definition.body,
            external=definition.external,
            completions=definition.completions,
            source=source,
        )
    if isinstance(definition, Mapping):
        if "parameters" in definition:
            return Tool.define(id, dict(definition), source=source)
        adapted = Tool(id, _plugin_definition(id, definition), source=source)
        if adapted.static is not None:
            adapted.static.check_definition()
        return adapted
    if callable(definition) and not isinstance(definition, type):
        adapted = tool(id)(definition)
        adapted.source = source
        return adapted
    raise TypeError(f"it must be a Tool, a function or a dict, not {type(definition).__name__}")


def _plugin_definition(id: str, entry: Mapping[str, Any]) -> Definition:
    unknown = set(entry) - {"description", "args", "execute", "asks"}
    if unknown:
        raise TypeError(f"no field {', '.join(sorted(unknown))}; there are args, asks, description and execute")
    execute = entry["execute"]
    if not callable(execute):
        raise TypeError(f"execute must be a function, not {type(execute).__name__}")
    description = str(entry.get("description") or "")
    args, asks = entry.get("args") or {}, entry.get("asks", False)
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
    fields: dict[str, Any] = {str(name): _field(value) for name, value in args.items()}
    model = create_model(id, __config__=ConfigDict(extra="ignore"), **fields)
    return Definition(description, model, run, check=_as_dict(model), asks=asks)


def _field(value: Any) -> Any:
    if isinstance(value, tuple):
        return value
    if isinstance(value, FieldInfo):
        return (value.annotation or Any, value)
    return (value, ...)


def _as_dict(model: type[BaseModel]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A check that validates by a model and returns a dict, as plugins expect."""

    def check(arguments: dict[str, Any]) -> dict[str, Any]:
        valid = model.model_validate(arguments)
        return {name: getattr(valid, name) for name in model.model_fields}

    return check
