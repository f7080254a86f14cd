"""Which asks a shell command needs, from its syntax tree. Pure: runs nothing, and looks only at where paths lead.

What OpenCode asks for a command is collected as OpenCode collects it (reference: tools.md 2.3). What it does not see is
added: folders that a redirection, ``~`` or a ``cd`` before reaches; and as `Judged`, other readings of the same command
(quoting undone, the command inside a wrapper, what a redirection writes), which count where the rules are stricter with
them. What can't be read at all is put into a pattern that begins with `NOT_ANALYSED`, so that no rule for the
command's first word covers it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.arity import prefix
from . import tables
from .commands import Commands
from .findings import NOT_ANALYSED, ShellAsks, add, exactly
from .paths import Paths
from .words import source, words

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

LONGEST = 100_000
"""Characters of a command that are analysed; a longer one is asked for as a whole."""

_TOKENS = frozenset({"command_name", "word", "string", "raw_string", "concatenation"})
_NOT_ARGUMENTS = frozenset({"variable_assignment", "file_redirect", "herestring_redirect", "heredoc_redirect"})


def analyse(command: str, cwd: Path, contains: Callable[[Path], bool], *, home: str | None = None) -> ShellAsks:
    """Read a command. Never raises, whatever the text.

    Args:
        command: what the shell would be given.
        cwd: where it would run.
        contains: whether a path is inside the project.
        home: what ``~`` stands for; the user's home if left out.
    """
    asks = ShellAsks()
    if not contains(cwd):
        asks.directories.append(str(cwd))
    if not command.strip():
        return asks
    if len(command) > LONGEST or "\0" in command:
        _whole(asks, command, "it is too long to be analysed" if len(command) > LONGEST else "it has a NUL character")
        return asks
    variables = {"HOME": home or os.path.expanduser("~")}
    if "HOME" in command.replace("$HOME", "").replace("${HOME}", ""):
        variables.clear()  # something may set it
    paths = Paths(asks, cwd, contains, variables.get("HOME"))
    _Reader(asks, paths, variables).program(command, 0)
    if not asks.patterns:
        for reading in asks.judged:
            add(asks.patterns, [reading.pattern])
            add(asks.always, reading.always)
        asks.judged.clear()
        if not asks.patterns and not paths.moved:
            _whole(asks, command, "no command was found in it", mark=False)
    return asks


def _whole(asks: ShellAsks, command: str, reason: str, *, mark: bool = True) -> None:
    pattern = (NOT_ANALYSED if mark else "") + command.strip()
    add(asks.patterns, [pattern])
    add(asks.always, exactly(pattern))
    asks.reasons.append(reason)


@cache
def _parser() -> Parser:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def _nodes(root: Node) -> Iterator[Node]:
    """All nodes in document order, without recursion."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


class _Reader:
    """Walks the tree of one command, and those of commands inside its strings."""

    def __init__(self, asks: ShellAsks, paths: Paths, variables: dict[str, str]) -> None:
        self._asks = asks
        self._paths = paths
        self._variables = variables
        self._commands = Commands(asks, paths, self.program)

    # ------------------------------------------------------------------ the tree

    def program(self, text: str, depth: int, of: str = "") -> None:
        root = _parser().parse(text.encode("utf-8", "replace")).root_node
        if root.has_error:
            self._asks.opaque(text.strip(), "its syntax could not be read", of)
        for node in _nodes(root):
            match node.type:
                case "command":
                    self.command(node, depth, of)
                case "redirected_statement":
                    self.redirected(node, of)
                case "file_redirect":
                    self.redirect(node, of)
                case "test_command":
                    written = source(node)
                    self._asks.judge(written, (written.split(None, 1)[0] + " *",), of)
                case "declaration_command" | "unset_command":
                    self.declaration(node, of)
                case "variable_assignment" if node.parent is not None and node.parent.type != "command":
                    self.assignment(node, source(node), of)

    def command(self, node: Node, depth: int, of: str) -> None:
        parent = node.parent
        text = source(parent if parent is not None and parent.type == "redirected_statement" else node)
        tokens = [source(child) for child in node.children if child.type in _TOKENS]
        if depth == 0 and tokens and tokens[0] != "cd":
            add(self._asks.patterns, [text])
            add(self._asks.always, [" ".join([*prefix(tokens), "*"])])
        of = of or text
        for child in node.children:
            if child.type == "variable_assignment":
                self.assignment(child, text, of)
        parts = [
            word
            for child in node.children
            if child.type not in _NOT_ARGUMENTS
            for word in words(child, self._variables)
        ]
        if not parts:
            return
        self._commands.run(parts, text, depth, of, fed=_is_fed(node))

    def redirected(self, node: Node, of: str) -> None:
        """A redirection of something that is no command of its own shows in no pattern."""
        body = node.child_by_field_name("body")
        if body is None:
            self._asks.judge(source(node), exactly(source(node)), of)

    def redirect(self, node: Node, of: str) -> None:
        """``< file``, ``> file``: where it leads, and that it writes."""
        target = node.child_by_field_name("destination")
        operator = next((child.type for child in node.children if child.type.strip("&|<>") == ""), ">")
        if target is None:
            return
        for word in words(target, self._variables):
            if word.text is not None:
                if operator.endswith("&") and (word.text == "-" or word.text.removesuffix("-").isdigit()):
                    continue  # another descriptor, not a file
                if tables.HARMLESS_TARGETS.fullmatch(word.text):
                    continue
            self._paths.touch(word)
            if ">" in operator:
                written = f"{operator} {word.source}"
                parent = node.parent
                self._asks.judge(written, exactly(written), of or (source(parent) if parent is not None else ""))

    def declaration(self, node: Node, of: str) -> None:
        written = source(node)
        names = [source(child) for child in _nodes(node) if child.type == "variable_name"]
        if any(tables.DANGEROUS.fullmatch(name) for name in names):
            self._asks.opaque(written, "it sets a variable that decides what runs", of)
        else:
            self._asks.judge(written, exactly(written), of)

    def assignment(self, node: Node, text: str, of: str) -> None:
        name = source(node).partition("=")[0].rstrip("+").partition("[")[0]
        parent = node.parent
        if parent is not None and parent.type == "declaration_command":
            return
        if tables.DANGEROUS.fullmatch(name):
            self._asks.opaque(text, f"it sets {name}, which decides what runs", of)


def _is_fed(node: Node) -> bool:
    """Whether a command's input comes from a pipe, a file or the text itself."""
    current = node
    while current.parent is not None:
        parent = current.parent
        if parent.type == "pipeline" and parent.children and parent.children[0] != current:
            return True
        if parent.type == "redirected_statement" and any(
            child.type in ("heredoc_redirect", "herestring_redirect")
            or (child.type == "file_redirect" and any(c.type.startswith("<") for c in child.children))
            for child in parent.children
        ):
            return True
        if parent.type not in ("pipeline", "redirected_statement", "negated_command", "compound_statement", "subshell"):
            break
        current = parent
    return any(child.type == "herestring_redirect" for child in node.children)
