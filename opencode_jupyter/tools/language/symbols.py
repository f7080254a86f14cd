"""Symbols and places of the protocol's answers, in the few shapes that servers give them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .capabilities import SYMBOL_KINDS


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
