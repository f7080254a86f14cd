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

from .words import Word

if TYPE_CHECKING:
    from tree_sitter import Node

AS_PROMPT = "it reads a value as a prompt, and the shell runs the commands in that"
AS_NUMBER = "it calculates with a value only known at run time, and the shell runs commands inside such a value"

PROMPT = re.compile(r"@P\s*\}")
"""A value read as a prompt, where the grammar sees but text."""
_NAME = re.compile(r"[A-Za-z_]\w*")
_NUMERIC = re.compile(r"(?<![\w-])-(?:eq|ne|lt|le|gt|ge|v|R)(?![\w-])")
_NAMED = re.compile(r"(?<![\w-])-[vR](?![\w-])")
_READERS = {
    "read": "REPLY",
    "mapfile": "MAPFILE",
    "readarray": "MAPFILE",
    "getopts": "OPTARG",
    "printf": "",
    "wait": "",
}
"""Builtins that put what they read into variables, and into which where none is named."""
_RUNS = frozenset({"command_substitution", "process_substitution"})
_GLOB = re.compile(r"[*?\[]")
_PLAIN = re.compile(r"[^\[\]$`\\]*")
_ARGUMENT = re.compile(r"\$\{?[!#]?[0-9@*_]")
"""``$1``, ``$@``, ``$_``: what a function or ``set`` was given."""
_IN_TEXT = re.compile(r"\$\(\((.*?)\)\)|\$\[(.*?)\]|\$\{([^}]*[\[:][^}]*)\}", re.DOTALL)
"""Calculations in a here-document, which the grammar reads as text, or as a command."""
_ANYTHING = "*"
"""Stands for every variable: which ones are set can't be told."""
_ARGUMENTS = "1"
"""Stands for ``$1`` and the like."""

Words = Callable[["Node"], list[Word]]


def plain(value: str) -> bool:
    """Whether a value can be calculated with: no command can stand in it, alone or put together with another."""
    return _PLAIN.fullmatch(value) is not None


def run_as_values(root: Node, source: Callable[[Node], str], words: Words) -> list[tuple[Node, str]]:
    """The nodes below `root` whose values the shell may run, and why in words.

    Args:
        root: a program's syntax tree.
        source: gives a node's text.
        words: gives the words that a node becomes.
    """
    nodes = list(_below(root))
    out = [(node, AS_PROMPT) for node in nodes if node.type == "expansion" and _as_prompt(node)]
    places = [(node, parts) for node in nodes if (parts := _calculated(node, source))]
    values = _Values(nodes, source, words)
    for node, parts in places:
        below = [one for part in parts for one in _below(part)]
        names = {name for one in below if not one.child_count for name in _NAME.findall(source(one))}
        runs = any(one.type in _RUNS and not values.counts(one) for one in below)
        if runs or values.told(names, any(_ARGUMENT.search(source(part)) or source(part) in "1@*" for part in parts)):
            out.append((node, AS_NUMBER))
    for node in nodes:
        if node.type == "heredoc_body":
            written = [found[0] for found in _IN_TEXT.finditer(source(node))]
            if any(values.told(set(_NAME.findall(text)), bool(_ARGUMENT.search(text))) for text in written):
                out.append((node, AS_NUMBER))
        elif node.type in ("command", "declaration_command") and values.calculates(node):
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
        case "array":
            return [child for child in children if source(child).startswith("[")]
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
            if "!" in types[:2]:
                return [child for child in children if child.type in ("variable_name", "special_variable_name")]
            return children[types.index(":") + 1 :] if ":" in types else []
        case _:
            return []


class _Values:
    """Where the values of a program's variables come from.

    A value is "told by running" if it comes from a command, a file or a folder's names, from such a variable, or from a
    text that could become part of a command in square brackets.
    """

    def __init__(self, nodes: list[Node], source: Callable[[Node], str], words: Words) -> None:
        self._source = source
        self._words = words
        self._functions = {source(node.children[0]) for node in nodes if node.type == "function_definition"} | {
            source(node.children[1]) for node in nodes if node.type == "function_definition" and len(node.children) > 1
        }
        self._told: set[str] = set()
        self._from: list[tuple[str, set[str]]] = []
        self._integers: set[str] = set()
        for node in nodes:
            self._note(node)
        grown = True
        while grown and self._told:
            more = {name for name, sources in self._from if name not in self._told and self.told(sources, False)}
            grown = bool(more)
            self._told |= more

    def told(self, names: set[str], arguments: bool) -> bool:
        """Whether one of the variables is told by running, or ``$1`` and the like if `arguments`."""
        if _ANYTHING in self._told:
            return bool(names) or arguments
        return not self._told.isdisjoint(names) or (arguments and _ARGUMENTS in self._told)

    def counts(self, node: Node) -> bool:
        """Whether a substitution gives nothing but a number."""
        if node.type != "command_substitution" or self._functions:
            return False
        inner = [child for child in node.children if child.is_named]
        if len(inner) != 1:
            return False
        last = inner[0]
        if last.type == "pipeline":
            last = [child for child in last.children if child.is_named][-1]
        if last.type == "redirected_statement" and last.children[0].type == "command":
            last = last.children[0]
        if last.type != "command":
            return False
        head, *rest = self._command(last)
        options = all(word.text is not None and word.text.startswith("-") for word in rest)
        shown = [word.shown for word in rest]
        match head.text:
            case "nproc":
                return options
            case "wc":
                return options and inner[0].type in ("pipeline", "redirected_statement")
            case "date":
                return len(shown) == 1 and re.fullmatch(r"\+[%sYmdHMSjNuVC-]*", shown[0]) is not None
            case "id":
                return shown in (["-u"], ["-g"])
            case "echo":
                return all(word.text is not None and re.fullmatch(r"[0-9]+", word.text) for word in rest)
            case "git":
                return shown[:2] == ["rev-list", "--count"]
        return False

    def calculates(self, node: Node) -> bool:
        """Whether a command calculates with a variable that is told by running: ``let``, ``declare -i``."""
        command = self._command(node)
        head = command[0].text if command else None
        if head == "let" or (node.type == "declaration_command" and self._option(command, "i")):
            texts = [word.shown for word in command[1:]]
            names = {name for text in texts for name in _NAME.findall(text)}
            return self.told(names, any(_ARGUMENT.search(text) for text in texts))
        return not self._integers.isdisjoint(self._told)

    def _command(self, node: Node) -> list[Word]:
        """A command's words, without what only passes them on."""
        if node.type == "declaration_command":
            words = [Word(self._source(child), self._source(child)) for child in node.children]
        else:
            kinds = ("variable_assignment", "file_redirect", "herestring_redirect")
            words = [word for child in node.children if child.type not in kinds for word in self._words(child)]
        while len(words) > 1 and words[0].text in ("builtin", "command", "time", "-p", "--", "!"):
            words = words[1:]
        return words or [Word("", "")]

    @staticmethod
    def _option(command: list[Word], letter: str) -> bool:
        return any(letter in (word.text or "")[1:] for word in command[1:] if (word.text or "").startswith("-"))

    def _note(self, node: Node) -> None:
        match node.type:
            case "command":
                self._note_command(self._command(node))
            case "declaration_command":
                for child in node.children[1:]:
                    if child.type in ("string", "concatenation", "raw_string", "simple_expansion", "expansion"):
                        self._note_word(self._source(child), [child])
                if self._option(self._command(node), "i"):
                    names = (self._source(c).partition("=")[0].partition("[")[0] for c in node.children[1:])
                    self._integers.update(name for name in names if _NAME.fullmatch(name))
            case "variable_assignment":
                name = _NAME.search(self._source(node.children[0]))
                if name:
                    self._note_value(name[0], node.children[2:])
            case "for_statement":
                name = _NAME.search(self._source(node.children[1]))
                values = [c for c in node.children[2:] if c.type not in ("do_group", "compound_statement", ";", "in")]
                if name:
                    self._note_value(name[0], values, files=True)
                    if not values or not any(child.type == "in" for child in node.children):
                        self._from.append((name[0], {_ARGUMENTS}))
            case "expansion":
                types = [child.type for child in node.children]
                at = next((types.index(sign) for sign in ("=", ":=") if sign in types), 0)
                if at and types[at - 1] == "variable_name":
                    self._note_value(self._source(node.children[at - 1]), node.children[at + 1 :])
            case "test_command" if "=~" in self._source(node):
                self._told.add("BASH_REMATCH")

    def _note_command(self, command: list[Word]) -> None:
        head, rest = command[0].text, command[1:]
        if head in _READERS and (head not in ("printf", "wait") or any(w.shown.startswith(("-v", "-p")) for w in rest)):
            self._told.add(_READERS[head])
            for word in rest:
                if word.text is None and head != "printf":
                    self._told.add(_ANYTHING)
                self._told.update(_NAME.findall(word.shown))
        if head in ("declare", "typeset", "local", "export", "readonly"):
            for word in rest:
                self._note_word(word.source, [])
                self._told.update(_NAME.findall(word.shown.partition("=")[0]))
        if head == "set" or head in self._functions:
            for word in rest:
                if word.text is None:
                    self._from.append((_ARGUMENTS, set(_NAME.findall(word.source))))
                    if "(" in word.source or "`" in word.source or _ARGUMENT.search(word.source):
                        self._told.add(_ARGUMENTS)
                elif not plain(word.text) or word.glob:
                    self._told.add(_ARGUMENTS)

    def _note_word(self, written: str, nodes: list[Node]) -> None:
        """``declare "x=$y"``: a word that sets a variable."""
        name, _, value = written.strip("\"'").partition("=")
        if not _NAME.fullmatch(name):
            self._told.add(_ANYTHING)
        elif any(one.type in _RUNS for node in nodes for one in _below(node)) or "`" in value or "$(" in value:
            self._told.add(name)
        else:
            self._from.append((name, set(_NAME.findall(value))))

    def _note_value(self, name: str, values: list[Node], *, files: bool = False) -> None:
        below = [one for value in values if value.type != "arithmetic_expansion" for one in _below(value)]
        leaves = [one for one in below if not one.child_count]
        listed = files or any(value.type == "array" for value in values)
        if any(one.type in _RUNS and not self.counts(one) for one in below):
            self._told.add(name)
        elif listed and any(one.type == "word" and _GLOB.search(self._source(one)) for one in below):
            self._told.add(name)  # names of files
        elif any(self._unsafe(one) for one in leaves):
            self._told.add(name)
        else:
            self._from.append((name, {found for one in leaves for found in _NAME.findall(self._source(one))}))
            if any(_ARGUMENT.search(self._source(value)) for value in values):
                self._from.append((name, {_ARGUMENTS}))

    def _unsafe(self, leaf: Node) -> bool:
        """Whether a piece of text could become part of ``a[$(command)]``."""
        text = self._source(leaf)
        if leaf.type == "raw_string":
            return not plain(text[1:-1])
        if leaf.type == "ansi_c_string":
            return not plain(text[2:-1])
        return leaf.type in ("word", "string_content") and not plain(text)
