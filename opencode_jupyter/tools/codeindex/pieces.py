"""The pieces of a file that a search can find: of Python, notebooks, Markdown and other languages.

All are found with regular expressions, not with a parser: this takes a third of the time of ``ast`` or tree-sitter
(which would not do 20,000 files in a minute), and a file that does not parse, being written at the moment or for Python
2, has pieces too. What makes it sound for Python is that strings over several lines are blanked first, so that nothing
in them looks like code; other languages are read by the shape of their lines.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath

PYTHON = frozenset({".py", ".pyw", ".pyi", ".pyx", ".pxd"})
PROSE = frozenset({".md", ".markdown", ".rst", ".qmd", ".rmd"})
NOTEBOOK = frozenset({".ipynb"})
_OTHER = """
js jsx mjs cjs ts tsx mts cts vue svelte go rs java kt kts scala groovy c h cc cpp cxx hh hpp hxx cu m mm cs fs swift
rb php pl pm lua r jl ex exs erl hs ml clj dart zig nim sh bash zsh fish ps1 sql proto graphql tf v sv vhd f90 f pas
"""
OTHER = frozenset(f".{extension}" for extension in _OTHER.split())
KNOWN = PYTHON | PROSE | NOTEBOOK | OTHER
"""Extensions of what is indexed."""
MAX_BYTES = 1 << 20
"""Larger files are data or generated; their first part only is looked at."""
BLOCK = 40
"""Lines of top-level code that make one piece."""
_CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")


@dataclass(slots=True)
class Piece:
    """One thing to find.

    Attributes:
        kind: ``function``, ``method``, ``class``, ``module``, ``code``, ``cell``, ``section``.
        symbol: its name with those it stands in (``Reader.read``); for a section its heading.
        line: first line, counted from 1.
        end_line: last line.
        signature: parameters and return type as written; bases of a class.
        doc: its docstring, or the comment above it.
        body: its code without the docstring.
    """

    kind: str
    symbol: str
    line: int
    end_line: int
    signature: str = ""
    doc: str = ""
    body: str = ""


def pieces(path: str, data: bytes) -> list[Piece]:
    """The pieces of a file that a search can find.

    Args:
        path: relative to the project; its extension says what the file is.
        data: its content; a binary file has no pieces.
    """
    if b"\0" in data[:8192] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return []
    extension = PurePosixPath(path).suffix.lower()
    if extension in NOTEBOOK:
        try:
            return _notebook_pieces(decode(data))
        except ValueError:
            return []
    text = decode(data[:MAX_BYTES])
    if extension in PYTHON:
        return python_pieces(text)
    if extension in PROSE:
        return _prose_pieces(text)
    return _generic_pieces(text)


def decode(data: bytes) -> str:
    """Text of a file with plain line ends: its byte order mark or declared encoding, UTF-8, else Latin-1."""
    return _decode(data).replace("\r\n", "\n").replace("\r", "\n")


def _decode(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    for line in data.split(b"\n", 2)[:2]:
        if match := _CODING.match(line):
            try:
                return data.decode(match[1].decode("ascii"), "replace")
            except (LookupError, UnicodeDecodeError, ValueError):
                break
    return data.decode("latin-1")


# ---------------------------------------------------------------------- Python

_SIGNATURE = 2000
_TOKENS = re.compile(
    r'"""(?:[^"\\]++|\\.|"(?!""))*+(?:"""|\Z)?'
    r"|'''(?:[^'\\]++|\\.|'(?!''))*+(?:'''|\Z)?"
    r'|"(?:[^"\\\n]|\\.)*+"?'
    r"|'(?:[^'\\\n]|\\.)*+'?"
    r"|#[^\n]*",
    re.DOTALL,
)
# Every repetition is possessive (it gives nothing back), so that no file, however odd, takes more than linear time.
_DEFINITION = re.compile(r"^([ \t]*)(async[ \t]+def|def|class)[ \t]+(\w+)", re.MULTILINE)
_FLAT = r"[^()]*+"
_NESTED = rf"{_FLAT}(?:\({_FLAT}(?:\({_FLAT}(?:\({_FLAT}\){_FLAT})*+\){_FLAT})*+\){_FLAT})*+"
_HEADER = re.compile(rf"\s*+(?:\[[^\]\n]*+\]\s*+)?(?:\({_NESTED}\)\s*+)?(?:->[^\n:]*+)?:")
_DOCSTRING = re.compile(
    r"\s*+(?:#[^\n]*+\n\s*+)*+[rRuU]?"
    r'(?:"""((?:[^"\\]++|\\.|"(?!""))*+)"""'
    r"|'''((?:[^'\\]++|\\.|'(?!''))*+)'''"
    r'|"((?:[^"\\\n]|\\.)++)"(?=\s)|'
    r"'((?:[^'\\\n]|\\.)++)'(?=\s))",
    re.DOTALL,
)


@cache
def _dedent(indent: int) -> re.Pattern[str]:
    """The start of a line that ends a block of a header with this indent."""
    return re.compile(rf"\n[ \t]{{0,{indent}}}(?=[^\s#)\]}}])")


def blanked(source: str) -> str:
    """The source, equally long, with strings over several lines blanked."""
    parts = []
    at = 0
    for token in _TOKENS.finditer(source):
        start, end = token.span()
        if source[start] != "#" and source.find("\n", start, end) >= 0:
            parts += [source[at:start], '"', "\0" * (end - start - 2), '"']
            at = end
    return source if not parts else "".join(parts) + source[at:]


class _Lines:
    """Tells the line, from 1, of a position in a text, and where a line begins."""

    def __init__(self, text: str) -> None:
        self.starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def number(self, position: int) -> int:
        """The line a position is in."""
        return bisect_right(self.starts, position)

    def start(self, line: int) -> int:
        """Where a line begins."""
        return self.starts[line - 1]


def python_pieces(source: str) -> list[Piece]:
    """A file's pieces: the module itself, its classes, functions and methods, and its top-level code."""
    if "\r" in source:
        source = source.replace("\r\n", "\n").replace("\r", "\n")
    code = blanked(source)
    lines = _Lines(source)
    pieces: list[Piece] = []
    outer: list[tuple[int, int, str, str]] = []
    """Indent, end, kind and symbol of the definitions that the present place is in."""
    loose: list[tuple[int, int]] = []
    """Stretches of top-level code."""
    covered = 0
    for match in _DEFINITION.finditer(code):
        indent, kind, name = len(match[1]), match[2], match[3]
        start = match.start()
        while outer and (outer[-1][1] <= start or outer[-1][0] >= indent):
            outer.pop()
        header = _HEADER.match(code, match.end(), match.end() + 20_000)
        head_end = header.end() if header else code.find("\n", match.end())
        if head_end < 0:
            head_end = len(code)
        ended = _dedent(indent).search(code, head_end)
        end = _without_comments(source, head_end, ended.start() if ended else len(code), indent)
        first = _with_decorators(code, start, lines)
        is_class = kind == "class"
        in_class = bool(outer) and outer[-1][2] == "class"
        symbol = f"{outer[-1][3]}.{name}" if outer else name
        if not outer:
            loose.append((covered, lines.start(first)))
            covered = max(covered, end)
        doc, body_start = _docstring(source, head_end)
        body = source[body_start:end].rstrip()
        if is_class:
            inner = _DEFINITION.search(code, head_end, end)
            body = source[body_start : inner.start()] if inner and inner.start() > body_start else body[:4000]
        pieces.append(
            Piece(
                "class" if is_class else "method" if in_class else "function",
                symbol,
                first,
                lines.number(_last(source, end)),
                _signature(source, header, match.end()),
                doc,
                body,
            )
        )
        outer.append((indent, end, "class" if is_class else "function", symbol))
    loose.append((covered, len(source)))
    return [*_module(source, code, loose, lines), *pieces]


def _with_decorators(code: str, start: int, lines: _Lines) -> int:
    """The line of the first decorator above a definition, else its own."""
    line = lines.number(start)
    while line > 1:
        above = code[lines.start(line - 1) : lines.start(line)]
        if not above.lstrip().startswith("@"):
            break
        line -= 1
    return line


def _without_comments(source: str, start: int, end: int, indent: int) -> int:
    """The end of a block without the comments after it that stand as far left as its header."""
    while end > start:
        line = source.rfind("\n", start, end) + 1
        if line <= start:
            break
        text = source[line:end]
        inner = text.lstrip(" \t")
        if inner.strip() and not (inner.startswith("#") and len(text) - len(inner) <= indent):
            break
        end = line - 1
    return end


def _last(source: str, end: int) -> int:
    """The position of the last character before `end` that is not white."""
    while end > 0 and source[end - 1].isspace():
        end -= 1
    return max(0, end - 1)


def _signature(source: str, header: re.Match[str] | None, name_end: int) -> str:
    if header is None:
        return source[name_end : source.find("\n", name_end)][:200].strip().rstrip(":")
    return source[header.start() : header.end()].strip().rstrip(":")[:_SIGNATURE]


def _docstring(source: str, at: int) -> tuple[str, int]:
    """The docstring that begins at `at`, and where the code after it begins."""
    match = _DOCSTRING.match(source, at)
    if match is None:
        return "", at
    return (match[1] or match[2] or match[3] or match[4] or "").strip(), match.end()


def _module(source: str, code: str, loose: list[tuple[int, int]], lines: _Lines) -> list[Piece]:
    """The module with its docstring, and its top-level code in _blocks."""
    doc, at = _docstring(source, 0)
    pieces = [Piece("module", "", 1, max(1, lines.number(at) if doc else 1), doc=doc)]
    for start, end in loose:
        begin = max(start, at)
        if begin >= end:
            continue
        text = source[begin:end]
        if not text.strip():
            continue
        first = lines.number(begin + len(text) - len(text.lstrip()))
        last = lines.number(_last(source, end))
        while first <= last:
            stop = min(last, first + BLOCK - 1)
            part = source[lines.start(first) : lines.start(stop + 1) if stop < len(lines.starts) else len(source)]
            if part.strip():
                pieces.append(Piece("code", "", first, stop, body=part))
            first = stop + 1
    return pieces


# ---------------------------------------------------------------------- other languages

_MODIFIERS = (
    r"(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|pub(?:\([\w: ]+\))?|unsafe"
    r"|extern|inline|virtual|override|sealed|open|data|local|const|declare|partial|readonly|suspend)\s+){0,6}"
)
_KEYWORDS = (
    r"(?:function\*?|func|fun|fn|def|defp|defmodule|class|struct|interface|trait|impl|enum|type|module|namespace|object"
    r"|record|sub|proc|macro|protocol|extension|contract|message|service|table|view|procedure)"
)
_NAMED = re.compile(rf"^([ \t]*){_MODIFIERS}({_KEYWORDS})\s+(?:\([^)\n]*\)\s*)?([A-Za-z_$][\w$.:]*)", re.MULTILINE)
_CALLED = re.compile(
    r"^([ \t]*)(?!(?:if|for|while|switch|return|else|catch|do|new|throw|await|case|with|elif|match)\b)"
    r"(?:[\w<>\[\],*&:?.]+[ \t]+){0,5}[*&]*([A-Za-z_$][\w$:~]*)[ \t]*\([^;{}\n]*\)[^;{}()=\n]*\{[ \t]*$",
    re.MULTILINE,
)
_ASSIGNED = re.compile(
    rf"^([ \t]*){_MODIFIERS}(?:const |let |var )?([A-Za-z_$][\w$.]*)\s*(?:<-|=|:)\s*(?:async\s*)?"
    r"(?:function\b|\([^()\n]*\)\s*(?::[^=\n]+)?=>|[\w$]+\s*=>)",
    re.MULTILINE,
)
_SHELL = re.compile(r"^([ \t]*)([A-Za-z_][\w-]*)[ \t]*\(\)[ \t]*\{?", re.MULTILINE)
_COMMENT = re.compile(r"^\s*(?://+!?|/\*+|\*+/?|#+|--+|;+|%+|\"\"\"|''')\s?(.*?)(?:\*/)?\s*$")


def _generic_pieces(source: str) -> list[Piece]:
    """Definitions found by their keyword or by ``name(...) {``; a file without any in _blocks of lines."""
    lines = _Lines(source)
    starts: dict[int, tuple[int, str, str]] = {}
    for expression in (_NAMED, _CALLED, _ASSIGNED, _SHELL):
        for match in expression.finditer(source):
            line = lines.number(match.start()) - 1
            name = match[match.re.groups]
            kind = match[2] if match.re is _NAMED else "function"
            starts.setdefault(line, (len(match[1]), kind, name))
            if len(starts) > 5000:  # a minified or generated file
                return _blocks(source)
    if not starts:
        return _blocks(source)
    rows = source.split("\n")
    pieces = [Piece("module", "", 1, 1, doc=_comment_above(rows, _first_code(rows)))]
    for line, (indent, kind, name) in sorted(starts.items()):
        end = _block_end(rows, line, indent)
        container = kind in ("class", "struct", "interface", "trait", "impl", "module", "namespace", "object")
        body = "\n".join(rows[line + 1 : min(end + 1, line + (15 if container else 400))])
        plain = "class" if container or kind in ("enum", "type", "record", "protocol") else "function"
        pieces.append(
            Piece(
                plain, name.strip(":."), line + 1, end + 1, rows[line].strip()[:300], _comment_above(rows, line), body
            )
        )
    return pieces


def _first_code(rows: list[str]) -> int:
    for number, row in enumerate(rows[:200]):
        if row.strip() and not _COMMENT.match(row):
            return number
    return min(len(rows), 200)


def _block_end(rows: list[str], line: int, indent: int) -> int:
    """The last line of a block that begins at `line`: its closing bracket, or the last line indented more."""
    last = line
    for number in range(line + 1, min(len(rows), line + 2000)):
        row = rows[number]
        text = row.lstrip(" \t")
        if not text:
            continue
        if len(row) - len(text) <= indent:
            if text[0] in "})]" or text.startswith(("end", "fi", "done")):
                return number
            if text[0] == "{" and last == line:
                continue
            return last
        last = number
    return last


def _comment_above(rows: list[str], line: int) -> str:
    out: list[str] = []
    number = line - 1
    while number >= 0 and len(out) < 30 and rows[number].lstrip().startswith(("@", "#[", "[")):
        number -= 1
    while number >= 0 and len(out) < 30:
        match = _COMMENT.match(rows[number])
        if match is None or not rows[number].strip():
            break
        out.append(match[1])
        number -= 1
    return "\n".join(reversed(out)).strip()


def _blocks(source: str) -> list[Piece]:
    """A text in _blocks of lines."""
    rows = source.split("\n")
    pieces = [Piece("module", "", 1, 1)]
    for first in range(0, len(rows), BLOCK):
        part = rows[first : first + BLOCK]
        text = "\n".join(row[:1000] for row in part)
        if text.strip():
            pieces.append(Piece("code", "", first + 1, first + len(part), body=text))
    return pieces


# ---------------------------------------------------------------------- prose and notebooks

_HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*#*\s*$")
_UNDERLINE = re.compile(r"^([=\-~^\"'`+*#<>:._])\1{2,}\s*$")


def _prose_pieces(source: str) -> list[Piece]:
    """The sections of Markdown or reStructuredText."""
    rows = source.split("\n")
    heads: list[tuple[int, str]] = []
    fenced = False
    for number, row in enumerate(rows):
        if row.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and (match := _HEADING.match(row)):
            heads.append((number, match[2]))
        elif not fenced and number and rows[number - 1].strip() and _UNDERLINE.match(row):
            above = rows[number - 1].strip()
            if not _UNDERLINE.match(above) and len(row.strip()) >= len(above) - 2:
                heads.append((number - 1, above))
    if not heads or heads[0][0] > 0:
        heads.insert(0, (0, ""))
    pieces = []
    for (first, title), following in zip(heads, [*heads[1:], (len(rows), "")], strict=True):
        last = following[0]
        while last > first + 1 and not rows[last - 1].strip():
            last -= 1
        text = "\n".join(row[:1000] for row in rows[first + 1 : last])
        if title or text.strip():
            pieces.append(Piece("section", title[:200], first + 1, max(first + 1, last), body=text[:8000]))
    return pieces


def _notebook_pieces(source: str) -> list[Piece]:
    """The cells of a notebook, with the functions in them; lines are those of the file.

    Raises:
        ValueError: it is no notebook.
    """
    try:
        book = json.loads(source)
        cells = book["cells"] if "cells" in book else book["worksheets"][0]["cells"]
    except (KeyError, TypeError, IndexError, RecursionError) as error:
        raise ValueError("not a notebook") from error
    if not isinstance(cells, list):
        raise ValueError("not a notebook")  # noqa: TRY004 - the caller's kind of error
    rows = source.split("\n")
    pieces: list[Piece] = []
    at = 0
    for number, cell in enumerate(cells, 1):
        text, kind = _cell(cell)
        if not text.strip():
            continue
        parts = text.split("\n")
        at = _place(rows, parts[0], at)
        count = len(parts) if at + len(parts) <= len(rows) else 1
        name = f"cell {number}"
        if kind == "markdown":
            pieces.append(Piece("section", name, at + 1, at + count, doc=text[:2000]))
        else:
            pieces.append(Piece("cell", name, at + 1, at + count, body=text))
            for piece in python_pieces(text):
                if piece.kind in ("function", "method", "class"):
                    piece.line, piece.end_line = at + piece.line, at + piece.end_line
                    pieces.append(piece)
        at += count
    return pieces


def _cell(cell: object) -> tuple[str, str]:
    if not isinstance(cell, dict):
        return "", ""
    source = cell.get("source", cell.get("input", ""))
    text = "".join(map(str, source)) if isinstance(source, list) else str(source)
    return text, str(cell.get("cell_type", ""))


def _place(rows: list[str], first: str, at: int) -> int:
    """The line of the file, from 0, that a cell's first line stands in, looked for from `at` on."""
    for written in (json.dumps(first)[:-1], json.dumps(first, ensure_ascii=False)[:-1]):
        for number in range(at, len(rows)):
            if written in rows[number]:
                return number
    return at
