"""Which permission requests a shell command needs, from its syntax tree. Runs nothing; only follows paths.

What OpenCode asks for a command is collected as OpenCode collects it (docs/opencode/tools.md 2.3). What it does not see
is added: folders that a redirection, ``~`` or a ``cd`` before reaches; and as `Reading`, other readings of the same
command (quoting undone, the command inside a wrapper, what a redirection writes), which count where the rules are
stricter with them. What can't be read at all is put into a pattern that begins with `NOT_ANALYSED`, so that no rule for
the command's first word covers it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.arity import prefix
from ...core.permission.rules import NOT_ANALYSED
from . import assignments, catalog, git_commands
from .arithmetic import AS_NUMBER, AS_PROMPT, PROMPT, Arithmetic, is_number
from .commands import Commands
from .interpreters import reads_alike
from .paths import Paths
from .shell_requests import ShellRequests, add, exact_rule
from .syntax_tree import (
    Position,
    assigned,
    behind_redirections,
    between,
    follows_cd,
    is_fed,
    is_piped,
    is_test,
    joins_words,
    misread_heredocs,
    parse,
    splits_word,
    verbatim,
    walk,
)
from .word_expansion import Text, Word

if TYPE_CHECKING:
    from tree_sitter import Node

LONGEST = 100_000
"""Characters of a command that are analysed; a longer one is asked for as a whole."""
DEEPEST = 400
"""Levels of its syntax tree that are looked at."""
MOST = 500
"""Sub-commands that are asked for one by one."""
NODES = 10_000
"""Nodes of its syntax tree that are looked at."""
_TOKENS = frozenset({"command_name", "word", "string", "raw_string", "concatenation"})
_LITERAL = frozenset({"raw_string", "ansi_c_string", "comment", "heredoc_start", "heredoc_end"})
_SUBSTITUTION = re.compile(r"(?<!\\)(?:\\\\)*(?:`|\$\()")
_SUBSCRIPT = re.compile(r"\[[^\]]*(?:\$\(|`)")
"""``a[$(...)]`` in quotes: arithmetic, ``test -v``, ``printf -v`` and others run what is inside."""
_PROCESS = re.compile(r"[<>]\(")
_EXEC_FEEDS = re.compile(r"\bexec\b[^;|&\n]*<|\bcoproc\b")
_LISTS_FILES = re.compile(
    r"(?:find\b(?!.*\s-f?printf)|fd|fdfind|ls|git\s+(?:ls-files|diff\b.*--name-only|grep\s+-\w*l)|rg\b.*\s(?:-l|--files)"
    r"|e?grep\s+-\w*l|locate|seq(?=(?:\s+[\d.]+)+\s*$)|(?:echo|printf)\b(?:(?!\W-|\\n-|\\[^n])[^$`])*$)(?:\s|$)",
    re.DOTALL,
)
"""Commands that give names of files, found or as a folder lists them, or what stands in the line."""
_FILTERS = re.compile(
    r"e?grep(?:\s+-[viEFxw]+)*\s+(?:'[^']*'|\"[^\"$`]*\"|[\w.|^$/-]+)|(?:head|tail)(?:\s+-n?\s*\d+)?|(?:sort|uniq)(?:\s+-[urnzVf]+)*"
)
"""Commands that choose some of the lines that they are given."""
_VALUES = frozenset(
    "expansion for_statement select_statement arithmetic_expansion c_style_for_statement compound_statement "
    "file_descriptor".split()
)
_READS_NAMES = re.compile(r"xargs|read|stdin|from")
"""In lines with programs that may read names of files."""
DEEPEST_BACKQUOTES = 6
"""Levels of backquotes inside backquotes that are looked into."""
_NO_ASSIGNMENTS = frozenset({"command", "c_style_for_statement"})
_NOT_ARGUMENTS = frozenset({"variable_assignment", "file_redirect", "herestring_redirect", "heredoc_redirect"})


def analyse(
    command: str,
    cwd: Path,
    contains: Callable[[Path], bool],
    *,
    home: str | None = None,
    shell: str = "bash",
    protected: Sequence[str] = (),
) -> ShellRequests:
    """Read a command. Never raises, whatever the text.

    Args:
        command: what the shell would be given.
        cwd: where it would run.
        contains: whether a path is inside the project.
        home: what ``~`` stands for; the user's home if left out.
        shell: the name of the shell that would run it; what it reads in other ways than bash is not analysed.
        protected: folders that nothing is written to unasked.
    """
    outside = [] if contains(cwd) else [str(cwd)]
    if not command.strip():
        return ShellRequests(outside)
    if len(command) > LONGEST or "\0" in command:
        reason = "it is too long to be analysed" if len(command) > LONGEST else "it has a NUL character"
        return unreadable(command, reason, outside)
    requests = ShellRequests(outside)
    variables = {"HOME": home or os.path.expanduser("~")}
    if "HOME" in command.replace("$HOME", "").replace("${HOME}", ""):
        variables.clear()  # something may set it
    if not re.search(r"\bcd\b|pushd|popd|PWD=|\bPWD\b(?<!\$PWD)(?<!\$\{PWD)", command):
        variables["PWD"] = str(cwd)
    paths = Paths(requests, cwd, contains, variables.get("HOME"), protected)
    reader = _Reader(command, requests, paths, variables)
    reader.program(command, 0)
    if not reads_alike(shell, command):
        requests.opaque(command.strip(), f"{shell} reads it in other ways than bash")
    if "\\\n" in command:  # the shell joins such lines before it looks for words, the grammar takes them for a gap
        for text in {command, _without_comments(command)}:
            reader.program(text.replace("\\\n", ""), 1, command)
    for written, of in reader.numbers.findings():
        requests.opaque(written, AS_NUMBER, of or command.strip())
    checkouts = reader.commands.checkouts
    if checkouts and (files := git_commands.startup_changes(str(cwd), dict.fromkeys(reader.commands.revisions))):
        requests.opaque(checkouts[0][0], f"it may bring another {files[0]}, which decides what runs", checkouts[0][1])
    if not requests.patterns:
        for reading in requests.readings:
            add(requests.patterns, [reading.pattern])
            add(requests.always, reading.always)
        requests.readings.clear()
        if not requests.patterns and not paths.moved:
            _whole(requests, command, "no command was found in it", mark=False)
    return requests


def unreadable(command: str, reason: str, outside: Sequence[str] = ()) -> ShellRequests:
    """What is requested for a command of which nothing is known: approval of the whole, wherever it may reach."""
    requests = ShellRequests(list(outside), [command.strip()])
    _whole(requests, command, reason)
    return requests


def _without_comments(command: str) -> str:
    """The command with each comment's last backslash taken away: a comment ends with its line, joined or not."""
    data = command.encode("utf-8", "replace")
    root = parse(data)
    if root is None:
        return command
    ends = [position.node.end_byte for position in walk(root) if position.node.type == "comment"]
    for end in reversed(ends):
        if data[end - 1 : end] == b"\\":
            data = data[: end - 1] + data[end:]
    return data.decode("utf-8", "replace")


def _whole(requests: ShellRequests, command: str, reason: str, *, mark: bool = True) -> None:
    pattern = (NOT_ANALYSED if mark else "") + command.strip()
    add(requests.patterns, [pattern])
    add(requests.always, exact_rule(pattern))
    requests.reasons.append(reason)


class _Reader:
    """Walks the tree of one command, and those of commands inside its strings."""

    def __init__(self, command: str, requests: ShellRequests, paths: Paths, variables: dict[str, str]) -> None:
        self.numbers = Arithmetic(command)
        self._command = command
        self._requests = requests
        self._paths = paths
        self._variables = variables
        self._text = Text(b"", variables, self.numbers.counts)
        self.commands = Commands(requests, paths, self.program, self.sets, self.numbers)
        self._data = b""
        self._fed = False

    # ------------------------------------------------------------------ the tree

    def program(self, text: str, depth: int, of: str = "") -> None:
        data = text.encode("utf-8", "replace")
        root = parse(data)
        if root is None:
            self.give_up(text, of)
            return
        outer, self._text = (self._text, self._data), Text(data, self._variables, self.numbers.counts)
        self._fed |= _EXEC_FEEDS.search(text) is not None
        try:
            for node in misread_heredocs(root, data):
                self._requests.opaque(
                    text.strip(), f"where the text for {self._text.source(node)} ends is not clear", of
                )
            self._data = data
            self._walk(root, text, depth, of)
        finally:
            self._text, self._data = outer

    def _walk(self, root: Node, text: str, depth: int, of: str) -> None:
        if root.has_error:
            self._requests.opaque(text.strip(), "its syntax could not be read", of)
        commands = 0
        for count, position in enumerate(walk(root)):
            node = position.node
            commands += node.type == "command"
            if position.level > DEEPEST or count > NODES or max(commands, len(self._requests.readings)) > MOST:
                self.give_up(text, of)
                return
            self.check_uncovered_text(position, text, of)
            self.numbers.look(node, position.parent, self._text.source, of or text.strip())
            match node.type:
                case "command":
                    self.command(position, depth, of)
                case "redirected_statement":
                    self.redirected(position, depth, of)
                case "command_substitution":
                    self.backquoted(node, depth, of)
                    self.taken_for_subshell(node, text, depth, of)
                case kind if kind in _VALUES:
                    self.note_values(node, of)
                case "file_redirect":
                    self.redirect(position, of)
                case "herestring_redirect" | "heredoc_body" if _READS_NAMES.search(self._command):
                    fed = self._text.source(node).removeprefix("<<<").replace("'", "").replace('"', "")
                    self._paths.look("", [Word(fed, fed.strip())], text=True)
                case "test_command":
                    written = self._text.source(node)
                    self._requests.add_reading(written, (written.split(None, 1)[0] + " *",), of)
                    if not is_test(node, self._data):
                        self._requests.opaque(text.strip(), "its syntax could not be read", of)
                case "declaration_command" | "unset_command":
                    self.declaration(node, of)
                case "variable_assignment" if position.parent is None or position.parent.type not in _NO_ASSIGNMENTS:
                    self.assignment(node, self._text.source(node), of)

    def check_uncovered_text(self, position: Position, text: str, of: str) -> None:
        """What of a node's text is in no other node: where the grammar may read something else than the shell."""
        written = self._text.source(position.node)
        if joins_words(position, written) or splits_word(position.node):
            self._requests.opaque(text.strip(), "its syntax could not be read", of)
        if position.node.child_count:
            for gap in between(position.node, self._data):
                self.check_leaf(position, gap, of)
        elif position.node.is_named:
            self.check_leaf(position, written, of)

    def check_leaf(self, position: Position, written: str, of: str) -> None:
        """A piece of text in which the grammar sees nothing more, though the shell may."""
        node = position.node
        literal = (node.type in _LITERAL and verbatim(position)) or (
            node.type == "heredoc_body" and self._quoted(position)
        )
        if not literal and _SUBSTITUTION.search(written):
            self._requests.opaque(written.strip(), "a command inside it could not be read", of)
        if not literal and PROMPT.search(written):
            self._requests.opaque(written.strip(), AS_PROMPT, of)
        if node.type != "comment" and _SUBSCRIPT.search(written.replace("\\", "")):
            self._requests.opaque(
                written.strip(), "where it is used as a number, the shell runs the command inside it", of
            )

    def note_values(self, node: Node, of: str) -> None:
        """What gives variables values without looking like it, or has the shell run what stands in a value."""
        written = self._text.source(node)
        match node.type:
            case "expansion":
                if _PROCESS.search(written):
                    self._requests.opaque(written, "a command inside it could not be read", of)
                types = [child.type for child in node.children]
                if ("@", "P") in pairwise(types):
                    self._requests.opaque(written, AS_PROMPT, of)
                if (name := assigned(node)) is not None:
                    self.sets(self._text.source(name), written, of)
            case "for_statement" | "select_statement":
                values = [c for c in node.children[3:] if c.type not in ("do_group", "compound_statement", ";")]
                words = [word for value in values for word in self._text.words(value)]
                number = bool(words) and all(word.text is not None and is_number(word.text) for word in words)
                self.sets(self._text.source(node.children[1]), written, of, number=number)
                self.names(self._text.source(node.children[1]), words, written, of)
            case "file_descriptor" if written.startswith("{"):
                self.sets(written.strip("{}"), written, of)
            case "arithmetic_expansion" | "c_style_for_statement":
                self.check_calculation(node, of)
            case "compound_statement" if node.children[0].type == "((":
                self.check_calculation(node, of)

    def backquoted(self, node: Node, depth: int, of: str) -> None:
        """What stands between backquotes is read once more, without the backslashes before some characters."""
        written = self._text.source(node)
        if not written.startswith("`") or not re.search(r"\\[`$\\\"]", written):
            return
        if depth >= DEEPEST_BACKQUOTES:
            self._requests.opaque(written, "it nests too deep", of)
            return
        for marks in ("`$\\\\", '`$\\\\"'):
            self.program(re.sub(rf"\\([{marks}])", r"\1", written[1:-1]), depth + 1, of or written)

    def taken_for_subshell(self, node: Node, text: str, depth: int, of: str) -> None:
        """Inside ``${...}`` the grammar takes ``$((...))`` for a subshell, which the shell takes for a calculation."""
        written = self._text.source(node)
        alone = f"_calculated={written}"
        if written.startswith("$((") and written.endswith("))") and text != alone:
            self.program(alone, depth + 1, of or written)

    def sets(self, name: str, text: str, of: str, *, number: bool = False) -> None:
        """A variable is given a value."""
        plainly = name.partition("[")[0].rstrip("+")
        self.numbers.sets(plainly, number=number)
        self.check_dangerous(plainly, text, of)

    def check_dangerous(self, plainly: str, text: str, of: str) -> None:
        """Ask if a variable that is set decides what runs."""
        if re.fullmatch(catalog.DANGEROUS, plainly):
            self._requests.opaque(text, f"it sets {plainly}, which decides what runs", of)

    def check_calculation(self, node: Node, of: str) -> None:
        """A calculation may give variables values."""
        for position in walk(node):
            if position.node.type in ("variable_name", "word"):
                self.check_dangerous(self._text.source(position.node), self._text.source(node), of)

    def _quoted(self, position: Position) -> bool:
        """Return whether a here-document's text is taken as it stands: its mark is quoted."""
        start = (
            next((c for c in position.parent.children if c.type == "heredoc_start"), None) if position.parent else None
        )
        return start is not None and any(quote in self._text.source(start) for quote in "'\"\\")

    def give_up(self, text: str, of: str) -> None:
        """Nothing is known of a text: neither what it runs nor where its paths lead."""
        self._requests.opaque(text.strip(), "it is too intricate to be analysed", of)
        add(self._requests.unknown, [text.strip()])

    def command(self, position: Position, depth: int, of: str) -> None:
        """A command that stands for itself."""
        node, parent = position.node, position.parent
        text = self._text.source(parent if parent is not None and parent.type == "redirected_statement" else node)
        tokens = [self._text.source(child) for child in node.children if child.type in _TOKENS]
        if depth == 0 and tokens and tokens[0] != "cd":
            add(self._requests.patterns, [text])
            add(self._requests.always, [" ".join([*prefix(tokens), "*"])])
        of = of or text
        for child in node.children:
            if child.type == "variable_assignment":
                self.assignment(child, text, of)
        nodes = [child for child in node.children if child.type not in _NOT_ARGUMENTS]
        nodes += behind_redirections(position)
        parts = [word for child in nodes for word in self._text.words(child)]
        if not parts:
            return
        for word in parts:
            if word.text is not None and word.text != word.source and _SUBSCRIPT.search(word.text):
                self._requests.opaque(text, "where it is used as a number, the shell runs the command inside it", of)
        self.commands.files = self._lists_files(position)
        self.commands.piped = is_piped(position)
        self.commands.lists = self.commands.piped and _READS_NAMES.search(self._command) is not None
        around = parent.children if parent is not None and parent.type == "redirected_statement" else ()
        inputs = (c for c in around if c.type == "file_redirect")
        targets = [c.child_by_field_name("destination") for c in inputs if c.children[0].type == "<"]
        self.commands.inputs = [word for target in targets if target is not None for word in self._text.words(target)]
        with self._paths.after_move(follows_cd(position, self._text.source)):
            self.commands.run(parts, text, depth, of, fed=self._fed or is_fed(position))

    def _lists_files(self, position: Position) -> bool:
        """Return whether a command is fed by one that gives nothing but names of files."""
        if position.parent is None or position.parent.type != "pipeline":
            return False
        before: list[str] = []
        for child in position.parent.children:
            if child == position.node:
                break
            body = child.child_by_field_name("body") if child.type == "redirected_statement" else child
            before += [self._text.source(body)] if child.is_named and body is not None else []
        while len(before) > 1 and _FILTERS.fullmatch(before[-1]):
            before.pop()
        return bool(before) and _LISTS_FILES.match(before[-1]) is not None

    def redirected(self, position: Position, depth: int, of: str) -> None:
        """A redirection of something that is no command of its own shows in no pattern."""
        node = position.node
        if node.child_by_field_name("body") is not None:
            return
        written = self._text.source(node)
        self._requests.add_reading(written, exact_rule(written), of)
        words = [
            word
            for extra in behind_redirections(Position(node.children[0], position, position.level + 1))
            for word in self._text.words(extra)
        ]
        while words and "=" in words[0].source:
            self.sets(words[0].source.partition("=")[0].rstrip("+"), written, of or written)
            words = words[1:]
        if words:
            self.commands.run(words, written, depth, of or written, fed=True)

    def redirect(self, position: Position, of: str) -> None:
        """``< file``, ``> file``: where it leads, and that it writes."""
        node = position.node
        target = node.child_by_field_name("destination")
        operator = next((child.type for child in node.children if child.type.strip("&|<>") == ""), ">")
        if target is None:
            return
        for word in self._text.words(target):
            if word.text is not None:
                if operator.endswith("&") and (word.text == "-" or word.text.removesuffix("-").isdigit()):
                    continue  # another descriptor, not a file
                if catalog.HARMLESS_TARGETS.fullmatch(word.text):
                    continue
            written = f"{operator} {word.source}"
            if self._paths.note_path(word) and ">" in operator:
                self._requests.opaque(written, f"it writes {word.shown}, which controls what runs", of)
            if ">" in operator:
                self._paths.write(word.shown)
                parent = position.parent
                self._requests.add_reading(
                    written, exact_rule(written), of or (self._text.source(parent) if parent else "")
                )

    def declaration(self, node: Node, of: str) -> None:
        """``export A=1``, ``declare -i n=...``, ``unset A``."""
        written = self._text.source(node)
        name = self._text.source(node.children[0])
        arguments = [word for child in node.children[1:] for word in self._declared(child)]
        words = [
            Word("", self._text.source(child.children[0])) if child.type == "variable_assignment" else word
            for child in node.children[1:]
            for word in self._declared(child)
        ]
        self.commands.declare(words, written, of)
        reason = assignments.runs(name, arguments)
        if reason is not None:
            self._requests.opaque(written, reason, of)
        else:
            self._requests.add_reading(written, exact_rule(written), of)

    def _declared(self, node: Node) -> list[Word]:
        """The words of a declaration; in ``x=(...)`` the commands inside are looked at by themselves."""
        source = self._text.source(node)
        if node.type == "variable_assignment":
            name, value = node.children[0], node.children[2:]
            start = f"{self._text.source(name)}="
            if value and value[0].type == "array":
                return [Word(source, start)]
            words = self._text.words(value[0]) if value else [Word("", "")]
            return [Word(source, start + words[0].text if len(words) == 1 and words[0].text is not None else None)]
        if node.type in ("variable_name", "subscript"):
            return [Word(source, source)]
        return self._text.words(node)

    def assignment(self, node: Node, text: str, of: str) -> None:
        name = self._text.source(node).partition("=")[0].rstrip("+")
        values = [child for child in node.children[1:] if child.type not in ("=", "+=")]
        self.sets(name, text, of, number=self.numbers.value(values, self._text.source))
        if re.search(rf"\$\{{?[!#]?{re.escape(name.partition('[')[0])}\b", self._command):
            elements = [c for value in values for c in (value.children[1:-1] if value.type == "array" else [value])]
            self.names(name, [word for element in elements for word in self._text.words(element)], text, of)

    def names(self, variable: str, words: list[Word], text: str, of: str) -> None:
        """Values of a variable that commands of the line may take for paths."""
        known = [word for word in words if word.text is not None]
        if len(known) == len(words):
            self._paths.assigned.add(variable)
        for file in self._paths.look("", known):
            self._requests.opaque(text, f"{file} decides what runs", of)
