"""Load a tool file: read it, find what it seems to export, run it in its language and take its exports as tools.

An export of a Python file is a `Tool` that the module makes; a module that makes none exports its public functions that
have a docstring. What it imports is no export, unless ``__all__`` names it: that list, if there is one, decides alone.

| in the file ``weather.py`` | id |
|---|---|
| the export ``default``; in Python also the one named like the file, ``weather`` | ``weather`` |
| another export, ``forecast`` | ``weather_forecast`` |
| in the single file ``tools.py``: ``forecast`` | ``forecast`` |
| in the single file ``tools.py``: ``default`` | ``tools`` |

As in OpenCode, only the names of file and export make the id: that of ``@tool("id")`` does not count. Characters that
providers do not accept in an id become ``_``.
"""

from __future__ import annotations

import ast
import copy
import inspect
import logging
import re
import traceback
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from ..core.ids import clean_tool_id
from ..core.tool import Bound, Tool, tool
from ..core.tool_source import ToolFileError, ToolFileLoader
from .python_modules import LoadingTimeoutError, drop_module, run_limited, run_module
from .source_code import SourceCode, SourceCodeError, read_source_code
from .tool_file_discovery import PYTHON, ToolFile, ToolFileProblem

log = logging.getLogger(__name__)

DEFAULT = "default"
_MAKERS = frozenset({"tool", "Tool"})
_MAX_SCRIPT = 200_000
"""Characters of a script that are scanned."""
_SCRIPT_EXPORT = re.compile(
    r"^[ \t]*export[ \t]+(?:(default)\b|"
    r"(?:const|let|var|class|async[ \t]+function|function)\b[ \t*]*([A-Za-z_$][\w$]*))",
    re.MULTILINE,
)


class RuntimeMissingError(ToolFileError):
    """The program that runs the file is missing; the file can be loaded once it is installed."""


@dataclass(slots=True)
class _FileExports:
    tools: list[Tool] = field(default_factory=list)
    problems: list[tuple[int | None, str]] = field(default_factory=list)
    """Line and message, of exports that could not be used and of oddities."""
    module: str = ""


def read_tool_file(file: ToolFile) -> bool:
    """Read a file and what it imports from beside it; False if that fails. Nothing of it runs. Blocks."""
    try:
        code = read_source_code(file.path)
    except SourceCodeError as error:
        _set_failed(file, ToolFileError(str(error), error.path))
        return False
    file.scanned_ids = scan_ids(file.namespace, file.path.stem, code.files[file.path], python=file.python)
    file.code, file.fingerprint = code, code.fingerprint
    return True


async def load_tool_file(file: ToolFile, scripts: Callable[[], ToolFileLoader] | None) -> None:
    """Run a file that was read; afterwards it holds its tools, or why there are none.

    Args:
        file: the file, which may run.
        scripts: gives the loader of JavaScript and TypeScript files.
    """
    assert file.code is not None
    try:
        exports = await (_load_python(file, file.code) if file.python else _load_script(file, scripts))
    except ToolFileError as error:
        _set_failed(file, error)
        return
    except Exception as error:
        log.exception("%s could not be loaded", file.label)
        _set_failed(file, ToolFileError(f"{type(error).__name__}: {error}", file.path))
        return
    file.tools, file.module = exports.tools, exports.module
    weakref.finalize(file, drop_module, exports.module).atexit = False
    file.problems = [ToolFileProblem(file.path, line, message) for line, message in exports.problems]
    file.failure = ""
    file.state = "loaded"


async def unload_tool_file(file: ToolFile, scripts: Callable[[], ToolFileLoader] | None) -> None:
    """Remove the module of a file that was changed or deleted."""
    if file.python:
        drop_module(file.module)
    elif scripts is not None and file.state == "loaded":
        await scripts().forget(file.path)


def _set_failed(file: ToolFile, error: ToolFileError) -> None:
    problem = ToolFileProblem(error.path, error.line, str(error))
    file.state = "missing" if isinstance(error, RuntimeMissingError) else "failed"
    file.problems, file.tools = [problem], []
    position = f"line {error.line}" if error.line and f":{error.line}" not in str(error) else ""
    position += f" of {error.path.name}" if error.path != file.path else ""
    file.failure = f"{error} ({position.strip()})" if position else str(error)
    log.info("tool file %s", problem)


# ---------------------------------------------------------------------- running a file


async def _load_script(file: ToolFile, scripts: Callable[[], ToolFileLoader] | None) -> _FileExports:
    if scripts is None:
        raise ToolFileError("JavaScript and TypeScript files can't be loaded here", file.path)
    loader = scripts()
    missing = loader.why_not()
    if missing:
        raise RuntimeMissingError(missing, file.path)
    tools = await loader.load(file.path, file.namespace or file.path.stem)
    prefix = "" if file.namespace else f"{file.path.stem}_"  # a single file's exports keep their own names
    return _FileExports([_rename_tool(tool, tool.id.removeprefix(prefix), file.label) for tool in tools])


async def _load_python(file: ToolFile, code: SourceCode) -> _FileExports:
    def work() -> _FileExports:
        module = run_module(code, clean_tool_id(file.path.stem), trusted_only=not file.own)
        return _exports_of(module, file, code.files[code.main])

    try:
        exports, error = await run_limited(work, list(code.files))
    except LoadingTimeoutError as timeout:
        problem = "what it imports was not loaded" if timeout.importing else "it did not come to an end"
        hint = "a tool file must define its tools and do nothing else while it is loaded"
        raise ToolFileError(f"{problem} in time; {hint}", file.path, timeout.line) from None
    if exports is None:
        raise _error_with_position(error, code) from None
    return exports


def _error_with_position(error: BaseException | None, code: SourceCode) -> ToolFileError:
    """An exception of a file in one line, with its position in the file or in one that it imports from beside it."""
    path, line = code.main, None
    if isinstance(error, SyntaxError) and error.filename in [str(file) for file in code.files]:
        path, line = Path(str(error.filename)), error.lineno
        return ToolFileError(f"{type(error).__name__}: {error.msg}", path, line)
    for frame, number in traceback.walk_tb(error.__traceback__ if error is not None else None):
        file = Path(frame.f_code.co_filename)
        if file in code.files:
            path, line = file, number
    text = str(error).strip().partition("\n")[0]
    message = f"{type(error).__name__}: {text}".removesuffix(": ")
    if isinstance(error, ModuleNotFoundError) and error.name:
        name = error.name.partition(".")[0]
        sibling = code.main.parent / name
        if sibling.is_dir() or sibling.with_name(name + PYTHON).is_file():
            message += f"; it is beside the file: from . import {name}"
    if isinstance(error, (SystemExit, KeyboardInterrupt)):
        message += "; a tool file must not end the process"
    return ToolFileError(message, path, line)


# ---------------------------------------------------------------------- the exports of a Python module


def _exports_of(module: ModuleType, file: ToolFile, source: bytes) -> _FileExports:
    exports = _FileExports(module=module.__name__)
    candidates = _candidates(module, source, exports)
    for name, value in candidates.items():
        id = tool_id(file.namespace, file.path.stem, name, python=True, has_default=DEFAULT in candidates)
        if isinstance(value, Tool):
            exported = value
            function = vars(value.static.definition.execute).get("__wrapped__") if value.static is not None else None
            if value.id not in (id, name, getattr(function, "__name__", name)):
                note = f'@tool("{value.id}") is {id} here: the names of file and export make the id'
                exports.problems.append((None, note))
        else:
            try:
                exported = tool(value)
            except TypeError as error:
                exports.problems.append((value.__code__.co_firstlineno, str(error)))
                continue
        exports.tools.append(_rename_tool(exported, id, file.label))
    return exports


def _rename_tool(original: Tool, id: str, label: str) -> Tool:
    """A copy of a tool under another id, with the file as its source."""
    renamed = copy.copy(original)
    renamed.id, renamed.source, renamed.builtin = id, label, False
    if original.static is not None:
        renamed.static = Bound(id, original.static.description, original.static.definition)
    return renamed


def _candidates(module: ModuleType, source: bytes, exports: _FileExports) -> dict[str, Any]:
    """The exports by name, in the order they were bound."""
    namespace = vars(module)
    names = namespace.get("__all__")
    if names is not None:
        return _exports_in_all(namespace, names, exports)
    imported, bound = _bindings(source)

    def is_own(name: str, value: Any) -> bool:
        if name.startswith("_") or name in imported - bound:
            return False
        return name in bound or "*" not in imported or getattr(value, "source", "") == module.__name__

    public = {name: value for name, value in namespace.items() if is_own(name, value)}
    has_tools = any(isinstance(value, Tool) for value in public.values())

    def is_export(name: str, value: Any) -> bool:
        if isinstance(value, Tool):
            return True
        is_local = inspect.isfunction(value) and value.__module__ == module.__name__
        return is_local and (name == DEFAULT or (not has_tools and bool(inspect.getdoc(value))))

    return {name: value for name, value in public.items() if is_export(name, value)}


def _exports_in_all(namespace: dict[str, Any], names: Any, exports: _FileExports) -> dict[str, Any]:
    """The exports that ``__all__`` names."""
    if not isinstance(names, (list, tuple)):
        exports.problems.append((None, f"__all__ must be a list of names, not {type(names).__name__}"))
        return {}
    exports_by_name: dict[str, Any] = {}
    for name in map(str, names):
        value = namespace.get(name)
        if isinstance(value, Tool) or inspect.isfunction(value):
            exports_by_name[name] = value
        else:
            reason = "is neither a tool nor a function" if name in namespace else "is missing"
            exports.problems.append((None, f"__all__ names {name}, which {reason}"))
    return exports_by_name


def _bindings(source: bytes) -> tuple[set[str], set[str]]:
    """The names that a module imports (``*`` too), and those that it binds otherwise."""
    imported: set[str] = set()
    bound: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            imported |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
    return imported, bound


# ---------------------------------------------------------------------- what a file seems to export
# Read from its text, which is not run: which file a call needs, and what an untrusted file would bring. The tools of a
# file are known once it is loaded: any code can make tools, and in JavaScript exports have unusual forms too.


def tool_id(namespace: str, stem: str, export: str, *, python: bool, has_default: bool) -> str:
    """The id of an export.

    Args:
        namespace: the cleaned name of the file; "" for a single file.
        stem: the file's name without its ending.
        export: the export's name.
        python: an export named like the file counts as the default one.
        has_default: there is an export ``default``, so that no other gets the file's name.
    """
    if export == DEFAULT:
        return namespace or clean_tool_id(stem)
    if not namespace:
        return clean_tool_id(export)
    if python and not has_default and export == re.sub(r"\W", "_", stem):
        return namespace
    return f"{namespace}_{clean_tool_id(export)}"


def scan_ids(namespace: str, stem: str, text: bytes, *, python: bool) -> list[str]:
    """The ids of the tools that a file seems to export, in its order; empty if its text does not show any."""
    exports = python_exports(text) if python else script_exports(text.decode("utf-8", "replace"))
    has_default = DEFAULT in exports
    ids = [tool_id(namespace, stem, export, python=python, has_default=has_default) for export in exports]
    return list(dict.fromkeys(ids))


def python_exports(source: bytes) -> list[str]:
    """The names under which a module seems to hold tools; its documented public functions if it has none."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    makers = set(_MAKERS)
    exports: dict[str, bool] = {}
    """Name to whether it certainly is a tool."""
    all_names: list[str] | None = None
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            makers |= {alias.asname for alias in node.names if alias.asname and alias.name in _MAKERS}
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if any(_makes_tool(decorator, makers) for decorator in node.decorator_list):
                exports[node.name] = True
            elif ast.get_docstring(node, clean=False) or node.name == DEFAULT:
                exports[node.name] = False
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            if names == ["__all__"]:
                all_names = _literal_texts(node.value)
            elif isinstance(node.value, ast.Call) and _makes_tool(node.value, makers):
                exports.update(dict.fromkeys(names, True))
            elif DEFAULT in names:
                exports[DEFAULT] = False
    if all_names is not None:
        return all_names
    has_tools = any(exports.values())
    return [
        name
        for name, certain in exports.items()
        if (certain or not has_tools or name == DEFAULT) and not name.startswith("_")
    ]


def _makes_tool(node: ast.expr, makers: set[str]) -> bool:
    """Whether an expression is ``tool``, ``tool(...)``, ``tool(...)(f)``, ``Tool.define(...)``, also by a module."""
    while isinstance(node, ast.Call):
        node = node.func
    while isinstance(node, ast.Attribute):
        if node.attr in makers:
            return True
        node = node.value
    return isinstance(node, ast.Name) and node.id in makers


def _literal_texts(node: ast.expr) -> list[str] | None:
    try:
        names = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return [name for name in names if isinstance(name, str)] if isinstance(names, (list, tuple)) else None


def script_exports(text: str) -> list[str]:
    """The names that a JavaScript or TypeScript module exports at the start of a line; it may export others."""
    return list(dict.fromkeys(first or second for first, second in _SCRIPT_EXPORT.findall(text[:_MAX_SCRIPT])))
