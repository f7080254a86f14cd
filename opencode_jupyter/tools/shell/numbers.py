"""Places where the shell runs what a value holds, though no command stands there.

Bash calculates with more than numbers: where it takes a value for one (``$((x))``, ``${y:x}``, ``${y[x]}``,
``[[ x -eq 1 ]]``) and where it takes one for a name (``${!x}``, ``[[ -v x ]]``), it runs a ``$(command)`` inside the
value. So a value that only running the line can tell must not get there unasked. ``${x@P}`` reads any value as a
prompt, which runs the commands in it too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

AS_PROMPT = "it reads a value as a prompt, and the shell runs the commands in that"
AS_NUMBER = "it calculates with what only running it can tell, and the shell runs a command in such a value"

PROMPT = re.compile(r"@P\s*\}")
"""A value read as a prompt, where the grammar sees but text."""
_NAME = re.compile(r"[A-Za-z_]\w*")
_NUMERIC = re.compile(r"(?<![\w-])-(?:eq|ne|lt|le|gt|ge|v)(?![\w-])")
_NAMED = re.compile(r"(?<![\w-])-v(?![\w-])")
_READERS = {"read": "REPLY", "mapfile": "MAPFILE", "readarray": "MAPFILE"}
"""Builtins that put what they read into variables, and into which where none is named."""
_RUNS = frozenset({"command_substitution", "process_substitution"})
_GLOB = re.compile(r"[*?\[]")


def run_as_values(root: Node, source: Callable[[Node], str]) -> list[tuple[Node, str]]:
    """The nodes below `root` whose values the shell may run, and why in words.

    Args:
        root: a program's syntax tree.
        source: gives a node's text.
    """
    nodes = list(_below(root))
    out = [(node, AS_PROMPT) for node in nodes if node.type == "expansion" and _as_prompt(node)]
    places = [(node, parts) for node in nodes if (parts := _calculated(node, source))]
    if places:
        told = _told_by_running(nodes, source)
        for node, parts in places:
            below = [one for part in parts for one in _below(part)]
            if any(one.type in _RUNS for one in below) or not told.isdisjoint(
                name for one in below if not one.child_count for name in _NAME.findall(source(one))
            ):
                out.append((node, AS_NUMBER))
    return out


def _below(root: Node) -> Iterator[Node]:
    """A node and all below it, without recursion."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def _as_prompt(node: Node) -> bool:
    types = [child.type for child in node.children]
    return ("@", "P") in pairwise(types)


def _calculated(node: Node, source: Callable[[Node], str]) -> list[Node]:
    """The parts of a node that the shell calculates with, or takes for names."""
    children = node.children
    match node.type:
        case "arithmetic_expansion":
            return [node]
        case "compound_statement" if children and children[0].type == "((":
            return [node]
        case "c_style_for_statement":
            return [child for child in children if child.type not in ("do_group", "compound_statement")]
        case "test_command":
            numeric = _NUMERIC if children[0].type == "[[" else _NAMED  # [ and test take plain numbers alone
            return [node] if numeric.search(source(node)) else []
        case "subscript":
            return [child for child in children[2:-1] if source(child) not in ("@", "*")]
        case "expansion":
            types = [child.type for child in children]
            if "!" in types[:2] and "variable_name" in types:
                return [child for child in children if child.type == "variable_name"]
            return children[types.index(":") + 1 :] if ":" in types else []
        case _:
            return []


def _told_by_running(nodes: list[Node], source: Callable[[Node], str]) -> set[str]:
    """The variables whose values come from a command, a file or a folder's names, or from such a variable."""
    told: set[str] = set()
    given: list[tuple[str, set[str]]] = []
    for node in nodes:
        if node.type == "command":
            words = [source(child) for child in node.children]
            default = _READERS.get(words[0]) if words else None
            if default is not None:
                told.update([default, *(word for word in words[1:] if _NAME.fullmatch(word))])
            continue
        if node.type not in ("variable_assignment", "for_statement"):
            continue
        name = _NAME.search(source(node.children[0 if node.type == "variable_assignment" else 1]))
        values = [child for child in node.children[2:] if child.type not in ("do_group", "compound_statement")]
        if name is None:
            continue
        below = [one for value in values if value.type != "arithmetic_expansion" for one in _below(value)]
        names_of_files = node.type == "for_statement" and any(
            one.type == "word" and _GLOB.search(source(one)) for one in below
        )
        if names_of_files or any(one.type in _RUNS for one in below):
            told.add(name[0])
        else:
            given.append((name[0], {source(one) for one in below if one.type == "variable_name"}))
    grown = True
    while grown and told:
        more = {name for name, sources in given if name not in told and not told.isdisjoint(sources)}
        grown = bool(more)
        told |= more
    return told
