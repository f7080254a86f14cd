"""Symbols and places of the protocol's answers, in the few shapes that servers give them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .capabilities import SYMBOL_KINDS

CALLABLE = frozenset({5, 6, 9, 12})
"""Kinds of symbols that hold calls: class, method, constructor, function."""
Range = dict[str, dict[str, int]]


def kind_name(kind: Any) -> str | None:
    """The name of a symbol kind's number."""
    return SYMBOL_KINDS[kind - 1] if isinstance(kind, int) and 1 <= kind <= len(SYMBOL_KINDS) else None


def flat(symbols: Any, uri: str, container: str | None = None) -> Iterator[dict[str, Any]]:
    """Document symbols one after another, parents first, each with ``uri``, both ranges and ``container``.

    Takes both shapes of the protocol: a tree of DocumentSymbol, and a list of SymbolInformation.
    """
    for symbol in symbols if isinstance(symbols, list) else ():
        if not isinstance(symbol, dict):
            continue
        location = symbol.get("location") or {}
        where = symbol.get("range") or location.get("range")
        yield {
            "name": symbol.get("name", ""),
            "kind": symbol.get("kind"),
            "detail": symbol.get("detail"),
            "container": container or symbol.get("containerName"),
            "uri": location.get("uri", uri),
            "range": where,
            "selectionRange": symbol.get("selectionRange"),
        }
        yield from flat(symbol.get("children"), uri, symbol.get("name"))


def holds(outer: Range | None, line: int, character: int) -> bool:
    """Whether a place is inside a range, its end included."""
    if not outer:
        return False
    start, end = outer["start"], outer["end"]
    return (start["line"], start["character"]) <= (line, character) <= (end["line"], end["character"])


def innermost(symbols: list[dict[str, Any]], line: int, character: int) -> dict[str, Any] | None:
    """The smallest symbol with calls in it that holds a place."""
    fitting = [s for s in symbols if s["kind"] in CALLABLE and holds(s["range"], line, character)]
    return max(fitting, key=lambda s: (s["range"]["start"]["line"], s["range"]["start"]["character"]), default=None)


def sound(items: list[Any]) -> list[dict[str, Any]]:
    """The diagnostics among these that have what the protocol demands: a place and a message in words."""
    return [
        item
        for item in items
        if isinstance(item, dict) and isinstance(item.get("message"), str) and _is_place(item.get("range"))
    ]


def _is_place(value: Any) -> bool:
    ends = [value.get("start"), value.get("end")] if isinstance(value, dict) else [None]
    return all(
        isinstance(end, dict) and isinstance(end.get("line"), int) and isinstance(end.get("character"), int)
        for end in ends
    )


def locations(answer: Any) -> list[tuple[str, Range]]:
    """URI and range of each location or location link of an answer."""
    out = []
    for item in answer if isinstance(answer, list) else [answer]:
        if isinstance(item, dict):
            uri = item.get("uri") or item.get("targetUri")
            place = item.get("range") or item.get("targetSelectionRange") or item.get("targetRange")
            if isinstance(uri, str) and isinstance(place, dict):
                out.append((uri, place))
    return out
