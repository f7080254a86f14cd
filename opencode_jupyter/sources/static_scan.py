"""Find the tools that a file seems to export from its text, without running it; and the ids of exports.

The scan finds the file that a call needs, and shows a person what an untrusted file would bring. The tools of a file
are known once it is loaded: any code can make tools, and of JavaScript only the usual forms of an export are found.

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
import re

from .tool_files import clean

DEFAULT = "default"
_MAKERS = frozenset({"tool", "Tool"})
_MAX_SCRIPT = 200_000
"""Characters of a script that are scanned."""
_SCRIPT_EXPORT = re.compile(
    r"^[ \t]*export[ \t]+(?:(default)\b|"
    r"(?:const|let|var|class|async[ \t]+function|function)\b[ \t*]*([A-Za-z_$][\w$]*))",
    re.MULTILINE,
)


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
        return namespace or clean(stem)
    if not namespace:
        return clean(export)
    if python and not has_default and export == re.sub(r"\W", "_", stem):
        return namespace
    return f"{namespace}_{clean(export)}"


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
    listed: list[str] | None = None
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            makers |= {alias.asname for alias in node.names if alias.asname and alias.name in _MAKERS}
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if any(_makes(decorator, makers) for decorator in node.decorator_list):
                exports[node.name] = True
            elif ast.get_docstring(node, clean=False) or node.name == DEFAULT:
                exports[node.name] = False
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            if names == ["__all__"]:
                listed = _texts(node.value)
            elif isinstance(node.value, ast.Call) and _makes(node.value, makers):
                exports.update(dict.fromkeys(names, True))
            elif DEFAULT in names:
                exports[DEFAULT] = False
    if listed is not None:
        return listed
    has_tools = any(exports.values())
    return [
        name
        for name, certain in exports.items()
        if (certain or not has_tools or name == DEFAULT) and not name.startswith("_")
    ]


def _makes(node: ast.expr, makers: set[str]) -> bool:
    """Whether an expression is ``tool``, ``tool(...)``, ``tool(...)(f)``, ``Tool.define(...)``, also by a module."""
    while isinstance(node, ast.Call):
        node = node.func
    while isinstance(node, ast.Attribute):
        if node.attr in makers:
            return True
        node = node.value
    return isinstance(node, ast.Name) and node.id in makers


def _texts(node: ast.expr) -> list[str] | None:
    try:
        names = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return [name for name in names if isinstance(name, str)] if isinstance(names, (list, tuple)) else None


def script_exports(text: str) -> list[str]:
    """The names that a JavaScript or TypeScript module exports at the start of a line; it may export others."""
    return list(dict.fromkeys(first or second for first, second in _SCRIPT_EXPORT.findall(text[:_MAX_SCRIPT])))
