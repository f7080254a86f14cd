"""From a plugin that was found to the functions that it exports: its code is run here, on a thread of its own."""

from __future__ import annotations

import importlib
import inspect
import logging
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ..discovery.names import clean
from ..errors import ToolError

if TYPE_CHECKING:
    from .found import Found

T = TypeVar("T")
log = logging.getLogger(__name__)


class PluginError(ToolError):
    """A plugin can't be loaded, or gave something that is no plugin's."""


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of importing a plugin.

    Attributes:
        functions: its plugin functions, each once, in the order of their definition.
        module: the module that a file became, to be forgotten with it; "" for a package's.
    """

    functions: list[Callable[..., Any]]
    module: str = ""


def exported(found: Found) -> Exported:
    """Import a plugin. Blocks.

    Its plugin functions are, of a module: the callables that ``__all__`` names; without it the public functions it
    defines that can be called with one argument, or of these, if there are any, those whose argument is annotated
    `PluginInput`.

    Raises:
        PluginError: it can't be imported, or there is no such function.
    """
    try:
        if found.kind == "entry point":
            given = found.target.load()
        elif found.kind == "module":
            given = importlib.import_module(found.target)
        else:
            assert found.content is not None
            from ..discovery.importing import run_module

            stem = clean(found.content.main.stem)
            given = run_module(found.content, stem, closed=found.subject is not None)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        raise PluginError(f"importing it failed: {described(error)}") from error
    if not isinstance(given, types.ModuleType):
        if not callable(given):
            raise PluginError(f"its entry point is a {type(given).__name__}; it must name a function or a module")
        return Exported([given])
    functions = list({id(fn): fn for fn in _functions(given)}.values())
    if not functions:
        raise PluginError(
            f"{given.__name__ if found.kind == 'module' else found.name} exports no plugin function: "
            "define one that takes a PluginInput and returns hooks"
        )
    return Exported(functions, given.__name__ if found.kind == "file" else "")


def quietly(name: str, work: Callable[[], T]) -> T:
    """Do `work` on this thread; what it prints goes to the log, and not into a cell."""
    from ..discovery.output import kept

    with kept() as pieces:
        try:
            return work()
        finally:
            if printed := "".join(pieces).strip():
                log.info("plugin %s printed: %s", name, printed)


def _functions(module: types.ModuleType) -> Iterator[Callable[..., Any]]:
    named = getattr(module, "__all__", None)
    if named is not None:
        for name in named:
            value = getattr(module, str(name), None)
            if callable(value) and hasattr(value, "__name__"):
                yield value
        return
    own = [
        value
        for name, value in vars(module).items()
        if not name.startswith("_") and inspect.isfunction(value) and _belongs(value, module) and _takes_one(value)
    ]
    yield from [fn for fn in own if _annotated(fn)] or own


def _belongs(fn: Callable[..., Any], module: types.ModuleType) -> bool:
    """Return whether a function is the module's own, and not something that it imported."""
    origin = getattr(fn, "__module__", "") or ""
    return origin == module.__name__ or origin.startswith(module.__name__ + ".")


def _takes_one(fn: Callable[..., Any]) -> bool:
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        return False
    try:
        inspect.signature(fn).bind(None)
    except (TypeError, ValueError):
        return False
    return True


def _annotated(fn: Callable[..., Any]) -> bool:
    parameters = list(inspect.signature(fn).parameters.values())
    annotation = parameters[0].annotation if parameters else None
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return text.rpartition(".")[2].strip("\"'") == "PluginInput"


def described(error: BaseException) -> str:
    """An error in one line, with the line of a file that does not parse."""
    if isinstance(error, SyntaxError) and error.lineno:
        return f"{type(error).__name__}: {error.msg} (line {error.lineno})"
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
