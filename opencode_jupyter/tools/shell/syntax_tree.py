"""The syntax tree of a shell command: made in bounded time, and what a node's place in it says."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

PATIENCE = 1.5
"""Seconds that reading it may take. It is read twice: with the rest that stays below five on a busy machine."""
SMALL = 2_000
"""Bytes that are read in little time however broken they are."""


_PLAIN = bytes(range(128)) + b"%" * 128
_PART = r"[^;|()&\n{}'\"\\$`]"
_CHAIN_WITH_CD = re.compile(
    rf"(?:(?:\s*(?:cd|pushd)\s{_PART}+|(?:(?!\b(?:cd|pushd)\b){_PART})*)&&)*\s*(?:cd|pushd)\s{_PART}+"
    rf"(?:&&(?:(?!\b(?:cd|pushd)\b){_PART})*)*"
)
"""Commands joined by ``&&``, the last ``cd`` of which is in plain sight."""
_ENDS_A_TEST = frozenset("|| && | & ; < > ( ) << <<< command redirected_statement list pipeline =~".split())
_HAS_WORDS = frozenset(
    "command declaration_command unset_command array for_statement select_statement redirected_statement file_redirect "
    "herestring_redirect heredoc_redirect".split()
)
_WORDS = frozenset(
    "word number raw_string string translated_string ansi_c_string concatenation brace_expression simple_expansion "
    "expansion arithmetic_expansion command_substitution process_substitution command_name".split()
)
_ENDS_IN_A_WORD = _WORDS | {"variable_assignment", "variable_name", "file_redirect", "herestring_redirect"}
_NOT_VERBATIM = frozenset(
    {"expansion", "string", "translated_string", "arithmetic_expansion", "subscript", "heredoc_body"}
)


@cache
def _parser() -> Parser:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def parse(data: bytes) -> Node | None:
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


class Position(NamedTuple):
    """A node and where it stands; `Node.parent` would search from the root each time."""

    node: Node
    up: Position | None
    level: int

    @property
    def parent(self) -> Node | None:
        """The node it stands in."""
        return self.up.node if self.up is not None else None


def walk(root: Node) -> Iterator[Position]:
    """All nodes in document order, without recursion."""
    stack = [Position(root, None, 0)]
    while stack:
        position = stack.pop()
        yield position
        stack.extend(Position(child, position, position.level + 1) for child in reversed(position.node.children))


def assigned(expansion: Node) -> Node | None:
    """The variable that ``${x:=value}`` sets."""
    types = [child.type for child in expansion.children]
    at = next((types.index(sign) for sign in ("=", ":=") if sign in types), 0)
    return expansion.children[at - 1] if at else None


def verbatim(position: Position) -> bool:
    """Return whether a text in single quotes is one: not so inside ``"${x:-'...'}"`` and in calculations."""
    current = position.up
    while current is not None:
        if current.node.type in _NOT_VERBATIM or (
            current.node.type == "compound_statement" and current.node.children[0].type == "(("
        ):
            return False
        if current.node.type in ("command", "command_substitution", "process_substitution"):
            return True
        current = current.up
    return True


def behind_redirections(position: Position) -> list[Node]:
    """A command's words that stand after ``> file`` or ``<<EOF``; the grammar takes them for part of those."""
    out: list[Node] = []
    current = position
    while current.up is not None:
        parent = current.up.node
        if parent.type == "redirected_statement":
            if parent.children[0] != current.node:
                break
            for child in parent.children:
                out += _extra(child)
        elif parent.type not in ("pipeline", "list", "negated_command") or parent.children[-1] != current.node:
            break
        current = current.up
    return out


def _extra(redirect: Node) -> list[Node]:
    if redirect.type == "file_redirect":
        return redirect.children_by_field_name("destination")[1:]
    if redirect.type != "heredoc_redirect":
        return []
    out = redirect.children_by_field_name("argument")
    for child in redirect.children:
        out += _extra(child)
    return out


def is_test(node: Node, data: bytes) -> bool:
    """Return whether ``[ ... ]`` is one command: the grammar reads on over ``||``, ``>`` and the end of a line."""
    if node.children[0].type != "[":
        return True
    stack = list(node.children[1:])
    at = node.children[0].end_byte
    while stack:
        child = stack.pop(0)
        if b"\n" in data[at : child.start_byte].replace(b"\\\n", b"") or child.type in _ENDS_A_TEST:
            return False
        if child.type in ("binary_expression", "unary_expression", "parenthesized_expression"):
            stack = child.children + stack
        else:
            at = child.end_byte
    return True


def splits_word(node: Node) -> bool:
    """Return whether the grammar took a word apart: two of the node's words, or a redirection and a word, touch."""
    return node.type in _HAS_WORDS and any(
        before.end_byte == word.start_byte and word.type in _WORDS and before.type in _ENDS_IN_A_WORD
        for before, word in pairwise(node.children)
    )


def is_fed(position: Position) -> bool:
    """Return whether a command's input comes from a pipe, a file or the text itself, or may."""
    if any(child.type == "herestring_redirect" for child in position.node.children):
        return True
    current = position
    while current.up is not None:
        parent = current.up.node
        if parent.type == "pipeline" and parent.child(0) != current.node:
            return True
        if parent.type == "redirected_statement" and any(map(_feeds, parent.children)):
            return True
        if parent.type == "function_definition":
            return True
        if parent.type == "process_substitution" and parent.children[0].type == ">(":
            return True
        current = current.up
    return False


def is_piped(position: Position) -> bool:
    """Return whether what a command prints is read by another command, or becomes part of the line."""
    current = position
    while current.up is not None:
        parent = current.up.node
        if parent.type in ("command_substitution", "process_substitution"):
            return True
        if parent.type == "pipeline" and parent.child(parent.child_count - 1) != current.node:
            return True
        current = current.up
    return False


def follows_cd(position: Position, source: Callable[[Node], str]) -> bool:
    """Return whether a command runs only after a ``cd`` that succeeded: ``cd x && command``."""
    current = position
    while current.up is not None:
        parent = current.up.node
        if parent.type == "list" and parent.children[-1] == current.node:
            if parent.children[1].type != "&&":
                return False
            before = parent.children[0]
            if before.end_byte - before.start_byte < SMALL and _CHAIN_WITH_CD.fullmatch(source(before)):
                return True
        elif parent.type not in ("redirected_statement", "pipeline", "list"):
            return False
        current = current.up
    return False


def _feeds(redirect: Node) -> bool:
    if redirect.type == "file_redirect":
        return any(child.type.startswith("<") for child in redirect.children)
    return redirect.type in ("heredoc_redirect", "herestring_redirect")


def misread_heredocs(root: Node, data: bytes) -> list[Node]:
    """The here-documents whose end the grammar sees somewhere else than the shell."""
    out: list[Node] = []
    if b"<<" not in data:
        return out
    resume = 0
    for position in walk(root):
        node = position.node
        if node.type != "heredoc_start":
            continue
        mark = data[node.start_byte : node.end_byte]
        end = next((c for c in position.parent.children if c.type == "heredoc_end"), None) if position.parent else None
        body = max(data.find(b"\n", node.end_byte) + 1, resume)
        if end is None or not body or any(sign in mark for sign in b"<>$`&|;()\n"):
            out.append(node)
            continue
        delimiter = mark.translate(None, b"'\"\\\\")
        tabs = any(child.type == "<<-" for child in position.parent.children) if position.parent else False
        at = body
        for line in data[body:].split(b"\n"):
            if (line.lstrip(b"\t") if tabs else line) == delimiter:
                break
            at += len(line) + 1
        else:
            at = -1
        line_end = data.find(b"\n", at) if at >= 0 else -1
        resume = len(data) if line_end < 0 else line_end
        if at < 0 or end.end_byte != (len(data) if line_end < 0 else line_end):
            out.append(node)
    return out


def joins_words(position: Position, written: str) -> bool:
    """Return whether the grammar joined words that the shell separates: ``$ rm``, or a word and the next line's."""
    if position.node.type == "ansi_c_string":
        return re.fullmatch(r"\$'(?:[^'\\]|\\.)*'", written, re.DOTALL) is None
    if position.node.type == "raw_string":
        return written.count("'") != 2
    if position.node.type == "word":
        return re.search(r"(?<!\\)(?:\\\\)*\n", written) is not None
    if position.node.type in ("simple_expansion", "expansion"):
        return re.match(r"\$\{?\s", written) is not None
    return False


def between(node: Node, data: bytes) -> list[str]:
    """What stands between a node's children and is in none of them, but white space."""
    out: list[str] = []
    at = node.start_byte
    for child in node.children:
        if child.start_byte > at:
            out.append(data[at : child.start_byte].decode("utf-8", "replace"))
        at = max(at, child.end_byte)
    if node.children and node.end_byte > at:
        out.append(data[at : node.end_byte].decode("utf-8", "replace"))
    return [text for text in out if text.strip(" \t\r\n\\")]
