"""Which ids a tool file may give, by the look of its text: nothing of it runs.

It serves to find the file that a call wants and to show a person what a file that is not trusted would bring. What the
file really gives is known when it was loaded.
"""

from __future__ import annotations

import ast
import re

from .find import ToolFile
from .names import DEFAULT, tool_id

_MAKERS = frozenset({"tool", "Tool"})
_MOST = 200_000
"""Characters of a script that are looked at; the patterns below take time in proportion to them at most."""
_SCRIPT_DEFAULT = re.compile(r"^[ \t]*export[ \t]+default\b|\bmodule\.exports[ \t]*=", re.MULTILINE)
_SCRIPT_NAMED = re.compile(
    r"^[ \t]*export[ \t]+(?:declare[ \t]+)?(?:const|let|var|class|async[ \t]+function|function)\b[ \t*]*"
    r"([A-Za-z_$][\w$]*)"
    r"|^[ \t]*(?:module\.)?exports\.([A-Za-z_$][\w$]*)[ \t]*=",
    re.MULTILINE,
)
_SCRIPT_LIST = re.compile(r"^[ \t]*export[ \t]*\{([^{}]{0,5000})\}", re.MULTILINE)
_SCRIPT_OBJECT = re.compile(r"\bmodule\.exports[ \t]*=[ \t\n]{0,50}\{")
_KEY = re.compile(r"\s*(?:async\s+)?([A-Za-z_$][\w$]*)\s*(?=[:,(}])")
_NO_TEXT = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|`(?:\\.|[^`\\])*`", re.DOTALL
)


def glance(file: ToolFile, text: bytes) -> list[str]:
    """The ids that a file seems to give, in its order; empty if its text does not say."""
    if file.python:
        exports = python_exports(text)
        own_name = True
    else:
        exports = script_exports(text.decode("utf-8", "replace"))
        own_name = False
    has_default = DEFAULT in exports
    ids = [
        tool_id(file.namespace, file.path.stem, name, own_name=own_name, has_default=has_default) for name in exports
    ]
    return list(dict.fromkeys(ids))


def python_exports(source: bytes) -> list[str]:
    """The names under which a module seems to hold tools; its documented public functions if it has none."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    makers = set(_MAKERS)
    found: dict[str, bool] = {}
    """Name to whether it is a tool for sure."""
    listed: list[str] | None = None
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            makers |= {alias.asname for alias in node.names if alias.asname and alias.name in _MAKERS}
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if any(_makes(one, makers) for one in node.decorator_list):
                found[node.name] = True
            elif ast.get_docstring(node, clean=False) or node.name == DEFAULT:
                found[node.name] = False
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            if names == ["__all__"]:
                listed = _texts(node.value)
            elif isinstance(node.value, ast.Call) and _makes(node.value, makers):
                found.update(dict.fromkeys(names, True))
            elif DEFAULT in names:
                found[DEFAULT] = False
    if listed is not None:
        return listed
    some = any(found.values())
    return [name for name, sure in found.items() if (sure or not some or name == DEFAULT) and not name.startswith("_")]


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
        found = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return [name for name in found if isinstance(name, str)] if isinstance(found, (list, tuple)) else None


def script_exports(text: str) -> list[str]:
    """The names that a JavaScript or TypeScript module seems to export."""
    plain = _NO_TEXT.sub(lambda found: " " if found.group()[0] == "/" else "''", text[:_MOST])
    found: list[str] = []
    whole = _SCRIPT_OBJECT.search(plain)
    if whole is not None:  # CommonJS: the object's keys are the exports
        found += _keys(plain[whole.end() :])
    elif _SCRIPT_DEFAULT.search(plain):
        found.append(DEFAULT)
    found += [first or second for first, second in _SCRIPT_NAMED.findall(plain)]
    for names in _SCRIPT_LIST.findall(plain):
        for name in names.split(","):
            words = name.split()
            if words and words[0] != "type":
                found.append(words[-1])
    return list(dict.fromkeys(found))


def _keys(text: str) -> list[str]:
    """The keys of an object literal whose opening brace stands before `text`."""
    depth, keys, at_key = 0, [], True
    i = 0
    while i < len(text) and depth >= 0:
        if depth == 0 and at_key:
            match = _KEY.match(text, i)
            at_key = False
            if match is not None:
                keys.append(match.group(1))
                i = match.end()
                continue
        char = text[i]
        if char in "{[(":
            depth += 1
        elif char in "}])":
            depth -= 1
        elif char == "," and depth == 0:
            at_key = True
        i += 1
    return keys
