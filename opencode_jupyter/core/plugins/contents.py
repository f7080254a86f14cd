"""From a plugin that was found to the functions that it exports: its code is run here, on a thread of its own."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from ..errors import ToolError
from .found import Found

PREFIX = "opencode_plugin_"
"""Begins the module name of a plugin file."""


class PluginError(ToolError):
    """A plugin can't be loaded, or gave something that is no plugin's."""


def functions_of(found: Found) -> list[Callable[..., Any]]:
    """Import a plugin and give its plugin functions, each once, in the order of their definition. Blocks.

    Those are, of a module: the callables that ``__all__`` names; without it the public functions it defines that can be
    called with one argument, or of these, if there are any, those whose argument is annotated `PluginInput`.

    Raises:
        PluginError: it can't be imported, or there is no such function.
    """
    try:
        if found.kind == "entry point":
            given = found.target.load()
        elif found.kind == "module":
            given = importlib.import_module(found.target)
        else:
            given = _run_file(found)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        raise PluginError(f"importing it failed: {described(error)}") from error
    if not isinstance(given, types.ModuleType):
        if not callable(given):
            raise PluginError(f"its entry point gives {type(given).__name__}; it must name a function or a module")
        return [given]
    exported = list({id(fn): fn for fn in _exported(given)}.values())
    if not exported:
        raise PluginError(
            f"{given.__name__ if found.kind == 'module' else found.name} exports no plugin function: "
            "define one that takes a PluginInput and returns hooks"
        )
    return exported


def _exported(module: types.ModuleType) -> Iterator[Callable[..., Any]]:
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
    """Whether a function is the module's own, and not something that it imported."""
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


def _run_file(found: Found) -> types.ModuleType:
    """A module of exactly the bytes that were looked at (and trusted); the file may be another one by now."""
    path = str(found.target)
    name = PREFIX + hashlib.sha256(path.encode()).hexdigest()[:12]
    module = types.ModuleType(name)
    module.__file__ = path
    code = compile(found.content, path, "exec", dont_inherit=True)
    sys.modules[name] = module  # dataclasses and pydantic look a class's module up
    try:
        exec(code, module.__dict__)  # noqa: S102 - running the user's file is what a plugin is
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def described(error: BaseException) -> str:
    """An error in one line, with the line of a file that does not parse."""
    if isinstance(error, SyntaxError) and error.lineno:
        return f"{type(error).__name__}: {error.msg} (line {error.lineno})"
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
