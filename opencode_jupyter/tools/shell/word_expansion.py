"""Words of a shell command with the quoting undone, or marked as known only when it runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node

BRACES = 64
"""Words that one word with braces may become; more count as not known."""

# A quoted character that would mean something unquoted is moved to Unicode's private use area until all is expanded.
_HIDE = {ord(c): 0xE000 + ord(c) for c in "{},*?[]~"}
_SHOW = {hidden: plain for plain, hidden in _HIDE.items()}
_PRIVATE = re.compile("[\ue000-\ue0ff]")
_ESCAPE = re.compile(r"\\(\n|.)", re.DOTALL)
_ANSI = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|c.|.)", re.DOTALL)
_ANSI_LETTERS = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_RANGE = re.compile(r"(-?\d{1,9}|[A-Za-z])\.\.(-?\d{1,9}|[A-Za-z])(?:\.\.(-?\d{1,9}))?")
_GLOB = re.compile(r"[*?\[]")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SPLITS = re.compile(r"[$`]")


class Word(NamedTuple):
    """One word.

    Attributes:
        source: as written.
        text: what the program gets, wildcards unexpanded; None if only running the command can tell.
        glob: whether it has unquoted wildcards.
    """

    source: str
    text: str | None
    glob: bool = False

    @property
    def shown(self) -> str:
        """The text if it is known, else the source."""
        return self.source if self.text is None else self.text

    def may_be_option(self, long: str, letters: str, valued: str = "") -> bool:
        """Return whether this may become one of a program's options: a long one cut short, or a letter after a dash.

        Args:
            long: names of options, separated by blanks.
            letters: short ones.
            valued: letters whose value is the rest of the word.
        """
        text = self.text
        if text is None:
            if _SPLITS.search(_QUOTED.sub("", self.source)) or re.search(r"\[@\]|\$@", self.source):
                return True
            text = re.split(r"[$`<]", re.sub(r"[\"']", "", self.source), maxsplit=1)[0]
            if text in ("", "-", "--"):
                return True
        if text.startswith("--"):
            name = text[2:].partition("=")[0]
            return name != "" and any(option.startswith(name) for option in long.split())
        for letter in text[1:].partition("=")[0] if text.startswith("-") else "":
            if letter in letters:
                return True
            if letter in valued:
                break
        return False


class Text:
    """A command's text and what its nodes say.

    Args:
        data: the text; nodes are looked up in it by their offsets.
        variables: those whose value is known.
        counts: whether a substitution gives nothing but a number.
    """

    def __init__(self, data: bytes, variables: Mapping[str, str], counts: Callable[[str], bool]) -> None:
        self._data = data
        self._variables = variables
        self._counts = counts

    def source(self, node: Node) -> str:
        """A node's text."""
        return self._slice(node.start_byte, node.end_byte)

    def words(self, node: Node) -> list[Word]:
        """The words a node of a command becomes (a word, a string, an expansion...): several if it has braces."""
        written = self.source(node)
        raw = None if _PRIVATE.search(written) else self._raw(node)
        if raw is None:
            return [Word(written, None)]
        expanded = _expand(raw) if raw.count("{") <= BRACES else None
        if expanded is None:
            return [Word(written, None)]
        out = []
        for text in expanded:
            known = _at_home(text, self._variables.get("HOME")) if text.startswith("~") else text
            if known is None:
                out.append(Word(written, None))
            else:
                out.append(Word(written, known.translate(_SHOW), _GLOB.search(known) is not None))
        return out

    def _slice(self, start: int, end: int) -> str:
        return self._data[start:end].decode("utf-8", "replace")

    def _raw(self, node: Node) -> str | None:
        """The text with quoted specials hidden; None if it is not known."""
        written = self.source(node)
        match node.type:
            case "word" | "number" | "regex" | "test_operator":
                if node.type == "number" and node.child_count:
                    return None  # 2#$x
                return _ESCAPE.sub(lambda m: "" if m[1] == "\n" else m[1].translate(_HIDE), written)
            case "brace_expression":
                return written
            case "raw_string":
                return written[1:-1].translate(_HIDE)
            case "ansi_c_string":
                return None if "\\x{" in written else _ansi(written[2:-1]).partition("\0")[0].translate(_HIDE)
            case "string" | "translated_string":
                return self._string(node)
            case "simple_expansion":
                return _variable(written[1:], self._variables)
            case "expansion":
                return _variable(written[2:-1], self._variables)
            case "concatenation" | "command_name":
                return self._joined(node)
            case "command_substitution" if self._counts(written):
                return "1"
        return None

    def _joined(self, node: Node) -> str | None:
        parts = []
        end = node.start_byte
        for child in node.children:
            if child.start_byte != end:
                return None  # something between that the grammar does not show
            end = child.end_byte
            part = self._raw(child)
            if part is None:
                return None
            parts.append(part)
        return "".join(parts) if end == node.end_byte else None

    def _string(self, node: Node) -> str | None:
        """A double-quoted string; the grammar drops some white space, so texts are those between expansions."""
        parts: list[str] = []
        at = node.start_byte + (2 if node.type == "translated_string" else 1)
        for child in node.children:
            if child.type in ("string_content", "string", '"', "$", '$"'):
                continue
            text = self._raw(child) if child.type in ("simple_expansion", "expansion") else None
            if text is None:
                return None
            parts += (_unescaped(self._slice(at, child.start_byte)), text.translate(_HIDE))
            at = child.end_byte
        parts.append(_unescaped(self._slice(at, node.end_byte - 1)))
        return "".join(parts)


def _at_home(text: str, home: str | None) -> str | None:
    """``~`` and ``~/...``; other people's homes are not known."""
    if home is None or text[1:2] not in ("", "/"):
        return None
    return home.translate(_HIDE) + text[1:]


def _unescaped(written: str) -> str:
    text = re.sub(r"\\([$`\"\\\n])", lambda m: "" if m[1] == "\n" else m[1], written)
    return text.translate(_HIDE)


def _variable(name: str, variables: Mapping[str, str]) -> str | None:
    value = variables.get(name)
    if value is None or re.search(r"[\s*?\[]", value):
        return None  # unquoted, it could become several words
    return value.translate(_HIDE)


def _ansi(text: str) -> str:
    def decode(m: re.Match[str]) -> str:
        code = m[1]
        if code[0] in "xuU" and len(code) > 1:
            value = int(code[1:], 16)
            return chr(value) if value < 0x110000 else "\ufffd"
        if code[0] in "01234567":
            return chr(int(code, 8) & 0xFF)
        if code[0] == "c" and len(code) > 1:
            return chr(ord(code[1]) & 0x1F)
        return _ANSI_LETTERS.get(code, code if code in "\\'\"?" else "\\" + code)

    return _ANSI.sub(decode, text)


def _expand(text: str, budget: int = BRACES) -> list[str] | None:
    """Brace expansion; None when there are too many."""
    start = 0
    while (start := text.find("{", start)) >= 0:
        depth, commas, end = 0, [], -1
        for index in range(start, len(text)):
            char = text[index]
            if char == "{":
                depth += 1
            elif char == "}":
                depth -= 1
                if depth == 0:
                    end = index
                    break
            elif char == "," and depth == 1:
                commas.append(index)
        if end < 0:
            start += 1
            continue
        cuts = [start, *commas, end]
        choices: list[str] | None = [text[a + 1 : b] for a, b in pairwise(cuts)] if commas else []
        if not commas:
            match = _RANGE.fullmatch(text[start + 1 : end])
            if not match:
                start += 1
                continue
            choices = _range(match, budget)
        if choices is None:
            return None
        out: list[str] = []
        for choice in choices:
            rest = _expand(text[:start] + choice + text[end + 1 :], budget - len(out))
            if rest is None:
                return None
            out += rest
            if len(out) > budget:
                return None
        return out
    return [text] if budget > 0 else None


def _range(match: re.Match[str], budget: int) -> list[str] | None:
    first, last, step = match[1], match[2], abs(int(match[3] or 1)) or 1
    if first.isalpha() != last.isalpha():
        return None
    low, high = (ord(first), ord(last)) if first.isalpha() else (int(first), int(last))
    if abs(high - low) // step >= budget:
        return None
    values = range(low, high + 1, step) if low <= high else range(low, high - 1, -step)
    return [chr(v) if first.isalpha() else str(v) for v in values]
