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
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.arity import prefix
from . import tables
from .words import Word, source, words

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

NOT_ANALYSED = "(not analysed) "
"""Begins a pattern for what only running it can tell."""
LONGEST = 100_000
"""Bytes of a command that are analysed; a longer one is asked for as a whole."""
_DEPTH = 6
_PLACES = 16

_TOKENS = frozenset({"command_name", "word", "string", "raw_string", "concatenation"})
_NOT_ARGUMENTS = frozenset({"variable_assignment", "file_redirect", "herestring_redirect", "heredoc_redirect", "subscript"})


@dataclass(frozen=True, slots=True)
class Judged:
    """Another reading of a command, for the rules to judge.

    Attributes:
        pattern: the reading.
        always: what to remember if a person allows it for the session.
        of: the sub-command it is a reading of, as it stands in `ShellAsks.patterns`; a rule for exactly that text settles it.
    """

    pattern: str
    always: tuple[str, ...] = ()
    of: str = ""


@dataclass(slots=True)
class ShellAsks:
    """What to ask for a command.

    Attributes:
        directories: folders outside the project that it touches.
        unknown: paths that only running it can tell, as written.
        patterns: its sub-commands, as OpenCode asks for them.
        always: what a person may remember for them.
        judged: other readings of the sub-commands.
        reasons: in words, why there is more to it than the patterns show.
    """

    directories: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    patterns: list[str] = field(default_factory=list)
    always: list[str] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)


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
    reader = _Reader(asks, cwd, contains, variables)
    reader.program(command, 0)
    if not asks.patterns:
        for reading in asks.judged:
            _add(asks.patterns, [reading.pattern])
            _add(asks.always, reading.always)
        asks.judged.clear()
        if not asks.patterns and not reader.moved:
            _whole(asks, command, "no command was found in it", mark=False)
    return asks


def _whole(asks: ShellAsks, command: str, reason: str, *, mark: bool = True) -> None:
    pattern = (NOT_ANALYSED if mark else "") + command.strip()
    _add(asks.patterns, [pattern])
    _add(asks.always, _exactly(pattern))
    asks.reasons.append(reason)


def _add(target: list[str], values: list[str] | tuple[str, ...]) -> None:
    target += [v for v in dict.fromkeys(values) if v not in target]


def _exactly(pattern: str) -> tuple[str, ...]:
    """The pattern as a rule that covers it alone; none if it has characters that a rule reads as wildcards."""
    return () if "*" in pattern or "?" in pattern else (pattern,)


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

    def __init__(
        self, asks: ShellAsks, cwd: Path, contains: Callable[[Path], bool], variables: dict[str, str]
    ) -> None:
        self.asks = asks
        self.contains = contains
        self.variables = variables
        self.moved = False
        self.places: list[str] | None = [str(cwd)]
        """Where relative paths may start by now; None when only running it can tell."""

    # ------------------------------------------------------------------ the tree

    def program(self, text: str, depth: int, of: str = "") -> None:
        root = _parser().parse(text.encode("utf-8", "replace")).root_node
        if root.has_error:
            self.opaque(text.strip(), "its syntax could not be read", of)
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
                    self.judge(written, (written.split(None, 1)[0] + " *",), of)
                case "declaration_command" | "unset_command":
                    self.declaration(node, of)
                case "variable_assignment" if node.parent is not None and node.parent.type != "command":
                    self.assignment(node, source(node), of)

    def command(self, node: Node, depth: int, of: str) -> None:
        parent = node.parent
        text = source(parent if parent is not None and parent.type == "redirected_statement" else node)
        tokens = [source(child) for child in node.children if child.type in _TOKENS]
        if depth == 0 and tokens and tokens[0] != "cd":
            _add(self.asks.patterns, [text])
            _add(self.asks.always, [" ".join([*prefix(tokens), "*"])])
        of = of or text
        for child in node.children:
            if child.type == "variable_assignment":
                self.assignment(child, text, of)
        parts = [
            word
            for child in node.children
            if child.type not in _NOT_ARGUMENTS
            for word in words(child, self.variables)
        ]
        if not parts:
            return
        self.run(parts, text, depth, of, fed=_is_fed(node))

    def redirected(self, node: Node, of: str) -> None:
        """A redirection of something that is no command of its own shows in no pattern."""
        body = node.child_by_field_name("body")
        if body is None:
            self.judge(source(node), _exactly(source(node)), of)

    def redirect(self, node: Node, of: str) -> None:
        """``< file``, ``> file``: where it leads, and that it writes."""
        target = node.child_by_field_name("destination")
        operator = next((child.type for child in node.children if child.type.strip("&|<>") == ""), ">")
        if target is None:
            return
        for word in words(target, self.variables):
            if word.text is not None:
                if operator.endswith("&") and (word.text.isdigit() or word.text.rstrip("-").isdigit() or word.text == "-"):
                    continue
                if tables.HARMLESS_TARGETS.fullmatch(word.text):
                    continue
            self.path(word)
            if ">" in operator:
                written = f"{operator} {word.source}"
                parent = node.parent
                self.judge(written, _exactly(written), of or (source(parent) if parent is not None else ""))

    def declaration(self, node: Node, of: str) -> None:
        written = source(node)
        names = [source(child) for child in _nodes(node) if child.type == "variable_name"]
        if any(tables.DANGEROUS.fullmatch(name) for name in names):
            self.opaque(written, "it sets a variable that decides what runs", of)
        else:
            self.judge(written, _exactly(written), of)

    def assignment(self, node: Node, text: str, of: str) -> None:
        name = source(node).partition("=")[0].rstrip("+").partition("[")[0]
        parent = node.parent
        if parent is not None and parent.type == "declaration_command":
            return
        if tables.DANGEROUS.fullmatch(name):
            self.opaque(text, f"it sets {name}, which decides what runs", of)

    # ------------------------------------------------------------------ one command

    def run(self, parts: list[Word], text: str, depth: int, of: str, *, fed: bool = False) -> None:
        """A command by its words, whether it stands for itself or inside another."""
        head = parts[0]
        if head.text is None or head.glob or not head.text:
            self.opaque(text, f"which command {head.source} is, only running it can tell", of)
            return
        shown = " ".join(word.shown for word in parts)
        name = os.path.basename(head.text)
        always = " ".join([*prefix([name, *(word.shown for word in parts[1:])]), "*"])
        if shown != of:
            self.judge(shown, (always,), of)
        if name != head.text:
            self.judge(" ".join([name, *(word.shown for word in parts[1:])]), (always,), of)
        arguments = parts[1:]
        if name in tables.PATH_COMMANDS or name in tables.WRITERS:
            self.paths(name, arguments)
        elif name == "dd":
            for word in arguments:
                if word.shown.startswith("of="):
                    self.path(Word(word.source, None if word.text is None else word.text[3:]))
        if depth >= _DEPTH:
            self.opaque(text, "it nests too deep", of)
            return
        if name in tables.OPAQUE:
            self.opaque(text, f"what {name} does depends on more than this line", of)
        elif name == "eval":
            self.code(arguments, text, depth, of)
        elif name in tables.SHELLS:
            self.shell(arguments, text, depth, of, fed=fed)
        elif tables.INTERPRETERS.fullmatch(name):
            if fed or any(w.text is None or tables.INLINE_CODE.fullmatch(w.text) for w in _options(arguments)):
                self.opaque(text, f"it gives {name} a program to run", of)
        elif name == "find":
            self.find(arguments, text, depth, of)
        elif name in tables.WRAPPERS:
            self.unwrap(name, arguments, text, depth, of, fed=fed)

    def paths(self, name: str, arguments: list[Word]) -> None:
        moves = name in tables.MOVERS
        targets = [
            word
            for word in arguments
            if not word.source.startswith("-") and not (name == "chmod" and word.source.startswith("+"))
        ]
        if moves:
            self.moved = True
            if not targets and not arguments and "HOME" in self.variables:
                targets = [Word("~", self.variables["HOME"])]
        for word in targets:
            self.path(word)
            if moves:
                self.move(word)

    def move(self, word: Word) -> None:
        """After ``cd``: paths may start there too (or still where they did, if it fails or runs in a subshell)."""
        if word.text is None or word.glob or self.places is None or len(self.places) >= _PLACES:
            self.places = None
            return
        _add(self.places, [os.path.normpath(os.path.join(place, word.text)) for place in self.places])

    def path(self, word: Word) -> None:
        """A path the command touches: remember its folder if it is outside the project."""
        text = word.text
        if text is not None and word.glob:
            text = _before_wildcard(text)
        if text is None or "\0" in text or (self.places is None and not os.path.isabs(text)):
            _add(self.asks.unknown, [word.source])
            _add(self.asks.reasons, [f"where {word.source} leads, only running it can tell"])
            return
        if not text:
            return
        for place in [""] if os.path.isabs(text) else self.places or []:
            written = os.path.normpath(os.path.join(place, text))
            if self.contains(Path(written)):
                continue
            actual = os.path.realpath(written)
            target = written if self.contains(Path(actual)) else actual
            _add(self.asks.directories, [target if os.path.isdir(target) else os.path.dirname(target)])

    def code(self, arguments: list[Word], text: str, depth: int, of: str) -> None:
        """``eval`` and ``sh -c``: the words are a program."""
        if any(word.text is None or word.glob for word in arguments):
            self.opaque(text, "the program it runs is not known before", of)
        elif arguments:
            self.program(" ".join(word.shown for word in arguments), depth + 1, of)

    def shell(self, arguments: list[Word], text: str, depth: int, of: str, *, fed: bool) -> None:
        for index, word in enumerate(arguments):
            if word.text is None:
                self.opaque(text, "what it gives the shell is not known before", of)
                return
            if not word.text.startswith(("-", "+")) or word.text in ("-", "--"):
                break
            if not word.text.startswith("--") and "c" in word.text:
                code = next((w for w in arguments[index + 1 :] if not w.source.startswith(("-", "+"))), None)
                self.code([code] if code is not None else [], text, depth, of)
                return
        else:
            fed = fed or not arguments
        if fed or not any(not (w.text or "").startswith("-") for w in arguments):
            self.opaque(text, "a shell reads its commands from somewhere else", of)

    def find(self, arguments: list[Word], text: str, depth: int, of: str) -> None:
        inner: list[Word] | None = None
        for word in arguments:
            if inner is None:
                if word.text in tables.FIND_EXEC:
                    inner = []
                elif word.text in tables.FIND_WRITES:
                    self.opaque(text, f"find's {word.text} changes files", of)
            elif word.text in (";", "+"):
                if inner:
                    self.run(inner, " ".join(w.source for w in inner), depth + 1, of)
                inner = None
            else:
                inner.append(word)
        if inner:
            self.run(inner, " ".join(w.source for w in inner), depth + 1, of)

    def unwrap(self, name: str, arguments: list[Word], text: str, depth: int, of: str, *, fed: bool) -> None:
        """The command inside: after the wrapper's options, their values, and its own words."""
        valued, skip = tables.WRAPPERS[name]
        options = valued.split()
        index = 0
        while index < len(arguments):
            word = arguments[index]
            if word.text is None and not word.source.startswith("-"):
                break
            shown = word.shown
            if name in ("env", "sudo", "doas") and not shown.startswith("-") and "=" in shown:
                if tables.DANGEROUS.fullmatch(shown.partition("=")[0]):
                    self.opaque(text, f"it sets {shown.partition('=')[0]}, which decides what runs", of)
                index += 1
            elif shown.startswith("-") and shown != "-":
                if name == "env" and shown.startswith(("-S", "--split-string")):
                    self.opaque(text, "env -S splits a text into a command", of)
                if name == "command" and shown in ("-v", "-V"):
                    return
                index += 2 if shown in options else 1
            elif skip:
                skip -= 1
                index += 1
            else:
                break
        inner = arguments[index:]
        if inner:
            # xargs puts what it reads behind the words: the rest of that command is not known
            self.run(inner, " ".join(w.source for w in inner), depth + 1, of, fed=fed and name != "xargs")

    # ------------------------------------------------------------------ findings

    def judge(self, pattern: str, always: tuple[str, ...], of: str) -> None:
        reading = Judged(pattern, always, of)
        if pattern and pattern not in self.asks.patterns and reading not in self.asks.judged:
            self.asks.judged.append(reading)

    def opaque(self, text: str, reason: str, of: str) -> None:
        pattern = NOT_ANALYSED + text
        self.judge(pattern, _exactly(pattern), of or text)
        _add(self.asks.reasons, [reason])


def _options(arguments: list[Word]) -> list[Word]:
    """The words an interpreter reads as its own options: those before the first that is none."""
    out = []
    for word in arguments:
        if word.text is not None and not word.text.startswith("-") and word.text != "eval":
            break
        out.append(word)
    return out


def _before_wildcard(text: str) -> str | None:
    """The folder whose entries a wildcard is matched with; None if ``..`` comes after it."""
    parts = text.split("/")
    first = next((i for i, part in enumerate(parts) if any(c in part for c in "*?[")), len(parts))
    if ".." in parts[first:]:
        return None
    return "/".join(parts[:first]) or ("/" if text.startswith("/") else ".")


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
