"""Which asks a shell command needs, from its syntax tree. Pure: runs nothing, and looks only at where paths lead.

What OpenCode asks for a command is collected as OpenCode collects it (reference: tools.md 2.3). What it does not see is
added: folders that a redirection, ``~`` or a ``cd`` before reaches; and as `Judged`, other readings of the same command
(quoting undone, the command inside a wrapper, what a redirection writes), which count where the rules are stricter with
them. What can't be read at all is put into a pattern that begins with `NOT_ANALYSED`, so that no rule for the
command's first word covers it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ...core.arity import prefix
from ...core.permission.rules import NOT_ANALYSED
from . import tables
from .commands import Commands
from .findings import ShellAsks, add, exactly
from .numbers import AS_PROMPT, PROMPT, run_as_values
from .paths import Paths
from .words import Text

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

LONGEST = 100_000
"""Characters of a command that are analysed; a longer one is asked for as a whole."""
DEEPEST = 400
"""Levels of its syntax tree that are looked at."""
MOST = 500
"""Sub-commands that are asked for one by one."""
NODES = 10_000
"""Nodes of its syntax tree that are looked at."""
PATIENCE = 2.0
"""Seconds that reading it may take."""
SMALL = 2_000
"""Bytes that are read in little time however broken they are."""

_PLAIN = bytes(range(128)) + b"%" * 128
_TOKENS = frozenset({"command_name", "word", "string", "raw_string", "concatenation"})
_LITERAL = frozenset({"raw_string", "ansi_c_string", "comment", "heredoc_start", "heredoc_end"})
_SUBSTITUTION = re.compile(r"(?<!\\)(?:\\\\)*(?:`|\$\()")
_SUBSCRIPT = re.compile(r"\[[^\]]*(?:\$\(|`)")
"""``a[$(...)]`` in quotes: arithmetic, ``test -v``, ``printf -v`` and others run what is inside."""
_ASSIGNING = frozenset({"command", "declaration_command"})
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
        asks.unknown.append(command.strip())
        return asks
    variables = {"HOME": home or os.path.expanduser("~")}
    if "HOME" in command.replace("$HOME", "").replace("${HOME}", ""):
        variables.clear()  # something may set it
    paths = Paths(asks, cwd, contains, variables.get("HOME"))
    reader = _Reader(asks, paths, variables)
    reader.program(command, 0)
    if "\\\n" in command:  # the shell joins such lines before it looks for words, the grammar takes them for a gap
        reader.program(command.replace("\\\n", ""), 1, command)
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


def _parse(data: bytes) -> Node | None:
    """The root of a text's syntax tree; None if reading it takes too long.

    Some broken texts take quadratic time, and the parser can't be interrupted: so a long text is first read in a child.
    """
    # The grammar's scanner crashes on some characters beyond ASCII; to a shell they are letters like any other,
    # though none of a variable's name.
    data = data.translate(_PLAIN)
    if len(data) > SMALL:
        program = (
            "import sys, tree_sitter as t, tree_sitter_bash as b\n"
            "t.Parser(t.Language(b.language())).parse(sys.stdin.buffer.read())"
        )
        try:
            subprocess.run([sys.executable, "-I", "-c", program], input=data, timeout=PATIENCE, check=True)
        except (OSError, subprocess.SubprocessError):
            return None
    return _parser().parse(data).root_node


class _Place(NamedTuple):
    """A node and where it stands; `Node.parent` would search from the root each time."""

    node: Node
    up: _Place | None
    level: int

    @property
    def parent(self) -> Node | None:
        return self.up.node if self.up is not None else None


def _places(root: Node) -> Iterator[_Place]:
    """All nodes in document order, without recursion."""
    stack = [_Place(root, None, 0)]
    while stack:
        place = stack.pop()
        yield place
        stack.extend(_Place(child, place, place.level + 1) for child in reversed(place.node.children))


class _Reader:
    """Walks the tree of one command, and those of commands inside its strings."""

    def __init__(self, asks: ShellAsks, paths: Paths, variables: dict[str, str]) -> None:
        self._asks = asks
        self._paths = paths
        self._variables = variables
        self._text = Text(b"", variables)
        self._commands = Commands(asks, paths, self.program)

    # ------------------------------------------------------------------ the tree

    def program(self, text: str, depth: int, of: str = "") -> None:
        data = text.encode("utf-8", "replace")
        root = _parse(data)
        if root is None:
            self.give_up(text, of)
            return
        outer, self._text = self._text, Text(data, self._variables)
        try:
            self._walk(root, text, depth, of)
        finally:
            self._text = outer

    def _walk(self, root: Node, text: str, depth: int, of: str) -> None:
        if root.has_error:
            self._asks.opaque(text.strip(), "its syntax could not be read", of)
        for node, why in run_as_values(root, self._text.source):
            self._asks.opaque(self._text.source(node), why, of or text.strip())
        commands = 0
        for count, place in enumerate(_places(root)):
            node = place.node
            commands += node.type == "command"
            if place.level > DEEPEST or count > NODES or max(commands, len(self._asks.judged)) > MOST:
                self.give_up(text, of)
                return
            if node.is_named and not node.child_count:
                self.leaf(place, of)
            match node.type:
                case "command":
                    self.command(place, depth, of)
                case "redirected_statement":
                    self.redirected(node, of)
                case "file_redirect":
                    self.redirect(place, of)
                case "test_command":
                    written = self._text.source(node)
                    self._asks.judge(written, (written.split(None, 1)[0] + " *",), of)
                case "declaration_command" | "unset_command":
                    self.declaration(node, of)
                case "variable_assignment" if place.parent is None or place.parent.type not in _ASSIGNING:
                    self.assignment(node, self._text.source(node), of)

    def leaf(self, place: _Place, of: str) -> None:
        """A piece of text in which the grammar sees nothing more, though the shell may."""
        node, written = place.node, self._text.source(place.node)
        literal = node.type in _LITERAL or (node.type == "heredoc_body" and self._quoted(place))
        if not literal and _SUBSTITUTION.search(written):
            self._asks.opaque(written.strip(), "a command inside it could not be read", of)
        if not literal and PROMPT.search(written):
            self._asks.opaque(written.strip(), AS_PROMPT, of)
        if node.type != "comment" and _SUBSCRIPT.search(written.replace("\\", "")):
            self._asks.opaque(written.strip(), "where it is used as a number, the shell runs the command inside it", of)

    def _quoted(self, place: _Place) -> bool:
        """Whether a here-document's text is taken as it stands: its mark is quoted."""
        start = next((c for c in place.parent.children if c.type == "heredoc_start"), None) if place.parent else None
        return start is not None and any(quote in self._text.source(start) for quote in "'\"\\")

    def give_up(self, text: str, of: str) -> None:
        """Nothing is known of a text: neither what it runs nor where its paths lead."""
        self._asks.opaque(text.strip(), "it is too intricate to be analysed", of)
        add(self._asks.unknown, [text.strip()])

    def command(self, place: _Place, depth: int, of: str) -> None:
        """A command that stands for itself."""
        node, parent = place.node, place.parent
        text = self._text.source(parent if parent is not None and parent.type == "redirected_statement" else node)
        tokens = [self._text.source(child) for child in node.children if child.type in _TOKENS]
        if depth == 0 and tokens and tokens[0] != "cd":
            add(self._asks.patterns, [text])
            add(self._asks.always, [" ".join([*prefix(tokens), "*"])])
        of = of or text
        for child in node.children:
            if child.type == "variable_assignment":
                self.assignment(child, text, of)
        parts = [
            word for child in node.children if child.type not in _NOT_ARGUMENTS for word in self._text.words(child)
        ]
        if not parts:
            return
        self._commands.run(parts, text, depth, of, fed=_is_fed(place))

    def redirected(self, node: Node, of: str) -> None:
        """A redirection of something that is no command of its own shows in no pattern."""
        body = node.child_by_field_name("body")
        if body is None:
            self._asks.judge(self._text.source(node), exactly(self._text.source(node)), of)

    def redirect(self, place: _Place, of: str) -> None:
        """``< file``, ``> file``: where it leads, and that it writes."""
        node = place.node
        target = node.child_by_field_name("destination")
        operator = next((child.type for child in node.children if child.type.strip("&|<>") == ""), ">")
        if target is None:
            return
        for word in self._text.words(target):
            if word.text is not None:
                if operator.endswith("&") and (word.text == "-" or word.text.removesuffix("-").isdigit()):
                    continue  # another descriptor, not a file
                if tables.HARMLESS_TARGETS.fullmatch(word.text):
                    continue
            self._paths.touch(word)
            if ">" in operator:
                self._paths.write(word)
                written = f"{operator} {word.source}"
                parent = place.parent
                self._asks.judge(written, exactly(written), of or (self._text.source(parent) if parent else ""))

    def declaration(self, node: Node, of: str) -> None:
        written = self._text.source(node)
        names = [self._text.source(p.node) for p in _places(node) if p.node.type == "variable_name"]
        if any(tables.DANGEROUS.fullmatch(name) for name in names):
            self._asks.opaque(written, "it sets a variable that decides what runs", of)
        else:
            self._asks.judge(written, exactly(written), of)

    def assignment(self, node: Node, text: str, of: str) -> None:
        name = self._text.source(node).partition("=")[0].rstrip("+").partition("[")[0]
        if tables.DANGEROUS.fullmatch(name):
            self._asks.opaque(text, f"it sets {name}, which decides what runs", of)


def _is_fed(place: _Place) -> bool:
    """Whether a command's input comes from a pipe, a file or the text itself."""
    if any(child.type == "herestring_redirect" for child in place.node.children):
        return True
    current = place
    while current.up is not None:
        parent = current.up.node
        if parent.type == "pipeline" and parent.child(0) != current.node:
            return True
        if parent.type == "redirected_statement" and any(map(_feeds, parent.children)):
            return True
        if parent.type not in ("pipeline", "redirected_statement", "negated_command", "compound_statement", "subshell"):
            break
        current = current.up
    return False


def _feeds(redirect: Node) -> bool:
    if redirect.type == "file_redirect":
        return any(child.type.startswith("<") for child in redirect.children)
    return redirect.type in ("heredoc_redirect", "herestring_redirect")
