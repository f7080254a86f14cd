"""Positions are counted in UTF-16 code units, as the tools' parameters are; other counts are translated.

The protocol lets a server count a line's characters in UTF-16 or UTF-8 units or in code points. Only UTF-16 is offered
to it; some choose for themselves all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

UTF16, UTF8, UTF32 = "utf-16", "utf-8", "utf-32"
Lines = Callable[[str], "list[str] | None"]
"""Gives the lines of the document that a URI names, None if it can't be read."""


def width(char: str, encoding: str) -> int:
    """Units that one character takes."""
    if encoding == UTF8:
        return len(char.encode("utf-8", "surrogatepass"))
    return 2 if encoding == UTF16 and ord(char) > 0xFFFF else 1


def convert(line: str, character: int, source: str, target: str) -> int:
    """A place in a line counted in units of `source`, counted in units of `target`.

    Beyond the line's end it is the end, as in the protocol; inside a character it is that character's start.
    """
    if source == target or line.isascii():
        return character
    seen = out = 0
    for char in line:
        step = width(char, source)
        if seen + step > character:
            break
        seen += step
        out += width(char, target)
    return out


def translate(value: Any, source: str, target: str, lines: Lines, uri: str = "") -> Any:
    """A copy of a server's answer (or of its parameters) with every position translated.

    Args:
        value: JSON of the protocol: locations, links, symbols, calls, hovers, diagnostics.
        source: the encoding it is in.
        target: the encoding wanted.
        lines: gives a document's lines.
        uri: the document that positions belong to where nothing nearer says so.
    """
    if source == target:
        return value
    known = cache(lines)

    def place(position: dict[str, Any], of: str) -> dict[str, Any]:
        text = known(of)
        line, character = position["line"], position["character"]
        if text is None or not 0 <= line < len(text):
            return position
        return {**position, "character": convert(text[line], character, source, target)}

    def walk(node: Any, of: str) -> Any:
        if isinstance(node, list):
            return [walk(item, of) for item in node]
        if not isinstance(node, dict):
            return node
        if isinstance(node.get("line"), int) and isinstance(node.get("character"), int):
            return place(node, of)
        named = node.get("uri")
        here = named if isinstance(named, str) else of
        linked = node.get("targetUri")
        caller = node.get("from")
        calls = caller.get("uri", here) if isinstance(caller, dict) else of
        out = {}
        for key, item in node.items():
            owner = here
            if isinstance(linked, str) and key.startswith("target"):
                owner = linked
            elif key == "fromRanges":
                owner = calls
            elif key == "data":
                out[key] = item  # the server's own, given back to it untouched
                continue
            out[key] = walk(item, owner)
        return out

    return walk(value, uri)
