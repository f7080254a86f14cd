"""The tools of a loaded Python module: which of its names are exports, and their ids.

An export is a `Tool` that the module makes. A module that makes none gives its public functions that have a docstring.
What it imports is never an export, unless ``__all__`` names it: that list, if there is one, says all.
"""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from ..tool import Bound, Tool, tool
from .names import DEFAULT, tool_id


@dataclass(slots=True)
class Exports:
    """The tools that a module exports."""

    tools: list[Tool] = field(default_factory=list)
    problems: list[tuple[int | None, str]] = field(default_factory=list)
    """Line and what is wrong, of exports that could not be taken; of others, what is worth to know."""
    module: str = ""
    """The module's name."""


def exports_of(module: ModuleType, source: bytes, namespace: str, stem: str, label: str) -> Exports:
    """The tools of a module.

    Args:
        module: it was run.
        source: its text.
        namespace: the cleaned name of the file; "" for a single file.
        stem: the file's name without its ending.
        label: the file as a person reads it; becomes the tools' source.
    """
    found = Exports(module=module.__name__)
    candidates = _candidates(module, source, found)
    for name, value in candidates.items():
        id = tool_id(namespace, stem, name, own_name=True, has_default=DEFAULT in candidates)
        if isinstance(value, Tool):
            made = value
            function = vars(value.static.definition.execute).get("__wrapped__") if value.static is not None else None
            if value.id not in (id, name, getattr(function, "__name__", name)):
                note = f'@tool("{value.id}") is {id} here: the names of file and export make the id'
                found.problems.append((None, note))
        else:
            try:
                made = tool(value)
            except TypeError as error:
                found.problems.append((_line(value), str(error)))
                continue
        found.tools.append(named(made, id, label))
    return found


def named(made: Tool, id: str, label: str) -> Tool:
    """A copy of a tool under another id, marked as a file's."""
    same = copy.copy(made)
    same.id, same.source, same.builtin = id, label, False
    if made.static is not None:
        same.static = Bound(id, made.static.description, made.static.definition)
    return same


def _candidates(module: ModuleType, source: bytes, found: Exports) -> dict[str, Tool | Callable[..., Any]]:
    """The exports by name, in the order they were bound."""
    held = vars(module)
    listed = held.get("__all__")
    if listed is not None:
        return _listed(held, listed, found)
    imported, bound, star = _bindings(source)

    def own(name: str, value: Any) -> bool:
        if name.startswith("_") or name in imported:
            return False
        return name in bound or not star or getattr(value, "source", "") == module.__name__

    tools = {name: value for name, value in held.items() if isinstance(value, Tool) and own(name, value)}
    functions = {
        name: value
        for name, value in held.items()
        if inspect.isfunction(value)
        and value.__module__ == module.__name__
        and own(name, value)
        and (name == DEFAULT or (not tools and inspect.getdoc(value)))
    }
    return {name: value for name, value in held.items() if name in tools or name in functions}


def _listed(held: dict[str, Any], listed: Any, found: Exports) -> dict[str, Tool | Callable[..., Any]]:
    taken: dict[str, Tool | Callable[..., Any]] = {}
    names = listed if isinstance(listed, (list, tuple)) else []
    if names is not listed:
        found.problems.append((None, f"__all__ must be a list of names, not {type(listed).__name__}"))
    for name in names:
        value = held.get(name) if isinstance(name, str) else None
        if isinstance(value, Tool) or inspect.isfunction(value):
            taken[name] = value
        else:
            there = isinstance(name, str) and name in held
            said = "is neither a tool nor a function" if there else "is missing"
            found.problems.append((None, f"__all__ names {name}, which {said}"))
    return taken


def _bindings(source: bytes) -> tuple[set[str], set[str], bool]:
    """Names that the module's own level imports, names that it binds otherwise, and whether it imports ``*``."""
    imported: set[str] = set()
    bound: set[str] = set()
    star = False
    waiting: list[ast.stmt] = list(ast.parse(source).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                star = star or alias.name == "*"
                imported.add((alias.asname or alias.name).partition(".")[0])
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound.add(node.name)
        else:
            for inside in ast.iter_child_nodes(node):
                if isinstance(inside, ast.stmt):
                    waiting.append(inside)
                elif isinstance(inside, (ast.ExceptHandler, ast.match_case)):
                    waiting += inside.body
                else:
                    bound |= {
                        one.id
                        for one in ast.walk(inside)
                        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
                    }
    return imported - bound, bound, star


def _line(value: Any) -> int | None:
    code = getattr(value, "__code__", None)
    return code.co_firstlineno if code is not None else None
