"""The pieces of what is not Python: notebooks, Markdown, and other languages by the shape of their lines."""

from __future__ import annotations

import json
import re

from .python_source import BLOCK, Piece, python_pieces

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
_HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*#*\s*$")
_UNDERLINE = re.compile(r"^([=\-~^\"'`+*#<>:._])\1{2,}\s*$")


def generic_pieces(source: str) -> list[Piece]:
    """Definitions found by their keyword or by ``name(...) {``; a file without any in blocks of lines."""
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    starts: dict[int, tuple[int, str, str]] = {}
    for expression in (_NAMED, _CALLED, _ASSIGNED, _SHELL):
        for match in expression.finditer(source):
            line = source.count("\n", 0, match.start()) if not starts else -1
            line = line if line >= 0 else source.count("\n", 0, match.start())
            name = match[match.re.groups]
            kind = match[2] if match.re is _NAMED else "function"
            starts.setdefault(line, (len(match[1]), kind, name))
            if len(starts) > 5000:  # a minified or generated file
                return blocks(source)
    if not starts:
        return blocks(source)
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


def blocks(source: str) -> list[Piece]:
    """A text in blocks of lines."""
    rows = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    pieces = [Piece("module", "", 1, 1)]
    for first in range(0, len(rows), BLOCK):
        part = rows[first : first + BLOCK]
        text = "\n".join(row[:1000] for row in part)
        if text.strip():
            pieces.append(Piece("code", "", first + 1, first + len(part), body=text))
    return pieces


def prose_pieces(source: str) -> list[Piece]:
    """The sections of Markdown or reStructuredText."""
    rows = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
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


def notebook_pieces(source: str) -> list[Piece]:
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
