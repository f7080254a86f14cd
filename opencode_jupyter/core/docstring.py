"""What a docstring says of each parameter, in Google's, NumPy's or Sphinx's style."""

from __future__ import annotations

import re

_SECTIONS = frozenset({"args", "arguments", "parameters", "params", "keyword args", "keyword arguments"})
_GOOGLE = re.compile(r"\*{0,2}(\w+)\s*(?:\([^:]*\))?\s*:\s*(.*)")
_NUMPY = re.compile(r"\*{0,2}(\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")
_SPHINX = re.compile(r":(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*?\s)?\*{0,2}(\w+)\s*:\s*(.*)")


def parameter_texts(doc: str) -> dict[str, str]:
    """Each parameter's text, its lines joined; empty for a docstring that says nothing of them.

    Args:
        doc: as `inspect.getdoc` gives it, without the indentation of the code.
    """
    lines = doc.expandtabs().splitlines()
    found: dict[str, list[str]] = {}
    at = 0
    while at < len(lines):
        line = lines[at].strip()
        title = line.rstrip(":").lower()
        below = lines[at + 1].strip() if at + 1 < len(lines) else ""
        if title in _SECTIONS and len(below) >= 3 and set(below) == {"-"}:
            at = _numpy(lines, at + 2, found)
        elif title in _SECTIONS and line.endswith(":"):
            at = _google(lines, at + 1, _indent(lines[at]), found)
        elif match := _SPHINX.match(line):
            at = _block(lines, at + 1, _indent(lines[at]), found.setdefault(match[1], [match[2]]))
        else:
            at += 1
    texts = {name: " ".join(piece for piece in pieces if piece) for name, pieces in found.items()}
    return {name: text for name, text in texts.items() if text}


def _google(lines: list[str], at: int, outer: int, found: dict[str, list[str]]) -> int:
    """Entries indented deeper than the section's title, each with lines indented deeper than its own."""
    inner: int | None = None
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        indent = _indent(lines[at])
        if indent <= outer:
            break
        inner = indent if inner is None else inner
        match = _GOOGLE.match(lines[at].strip()) if indent == inner else None
        pieces = found.setdefault(match[1], [match[2]]) if match else []
        at = _block(lines, at + 1, indent, pieces)
    return at


def _numpy(lines: list[str], at: int, found: dict[str, list[str]]) -> int:
    """Names at the section's own indentation, each with a text indented deeper; the next underlined title ends them."""
    outer = _indent(lines[at]) if at < len(lines) else 0
    while at < len(lines):
        line = lines[at].strip()
        below = lines[at + 1].strip() if at + 1 < len(lines) else ""
        if (below and set(below) == {"-"}) or (line and _indent(lines[at]) < outer):
            break
        match = _NUMPY.fullmatch(line)
        pieces: list[str] = []
        end = _block(lines, at + 1, _indent(lines[at]), pieces)
        if match and pieces:
            for name in re.findall(r"\w+", match[1]):
                found.setdefault(name, pieces)
        at = end
    return at


def _block(lines: list[str], at: int, indent: int, pieces: list[str]) -> int:
    """Take the lines indented deeper than `indent`; gives where they end."""
    while at < len(lines):
        if not lines[at].strip():
            if at + 1 < len(lines) and lines[at + 1].strip() and _indent(lines[at + 1]) > indent:
                at += 1
                continue
            return at + 1
        if _indent(lines[at]) <= indent:
            return at
        pieces.append(lines[at].strip())
        at += 1
    return at


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
