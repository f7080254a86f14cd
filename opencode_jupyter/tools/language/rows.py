"""The answers of the lsp tool as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...text.encoding import printable
from .uris import to_path, to_uri

SYMBOL_KINDS = (
    *("file", "module", "namespace", "package", "class", "method", "property", "field", "constructor", "enum"),
    *("interface", "function", "variable", "constant", "string", "number", "boolean", "array", "object", "key"),
    *("null", "enumMember", "struct", "event", "operator", "typeParameter"),
)
"""Names of the protocol's symbol kinds, from 1."""


def rows(result: list[Any], operation: str, path: Path, line: int, character: int) -> list[dict[str, Any]]:
    """One row for each place, symbol or caller, lines and characters counted from 1.

    Args:
        result: what the servers said.
        operation: the tool's.
        path: the file that was asked about.
        line: where, counted from 1.
        character: likewise.
    """
    out: list[dict[str, Any]] = []
    if operation == "hover":
        return [
            {"path": str(path), "line": line, "character": character, "text": _plain(_text(item.get("contents")))}
            for item in result
            if isinstance(item, dict)
        ]
    for item in result:
        if isinstance(item, dict):
            _row(out, item, to_uri(path), None)
    return out


def _row(out: list[dict[str, Any]], item: dict[str, Any], uri: str, container: Any) -> None:
    other = _object(item.get("from")) or _object(item.get("to"))
    named = other or item
    location = _object(named.get("location"))
    where = next(
        (u for u in (named.get("uri"), named.get("targetUri"), location.get("uri")) if isinstance(u, str)), uri
    )
    place = _object(named.get("selectionRange")) or _object(named.get("targetSelectionRange"))
    start = _object((place or _object(named.get("range")) or _object(location.get("range"))).get("start"))
    file = to_path(where)
    row: dict[str, Any] = {
        "path": printable(str(file)) if file is not None else where,
        "line": _count(start.get("line")) + 1,
        "character": _count(start.get("character")) + 1,
    }
    if "name" in named:
        row["name"] = named["name"]
        row["kind"] = _kind_name(named.get("kind"))
        row["container"] = container or named.get("containerName") or named.get("detail")
    if other:
        ranges = item.get("fromRanges")
        row["calls"] = len(ranges) if isinstance(ranges, list) else 0
    out.append(row)
    children = named.get("children")
    for child in children if isinstance(children, list) else ():
        if isinstance(child, dict):
            _row(out, child, uri, named.get("name"))


def _kind_name(kind: Any) -> str | None:
    """The name of a symbol kind's number."""
    return SYMBOL_KINDS[kind - 1] if isinstance(kind, int) and 1 <= kind <= len(SYMBOL_KINDS) else None


def _object(value: Any) -> dict[str, Any]:
    """A server may send anything in the place of an object."""
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _plain(markdown: str) -> str:
    """A hover's text without the lines that begin and end code in Markdown, and without its rules."""
    lines = [line for line in markdown.splitlines() if not line.startswith("```") and line != "---"]
    return "\n".join(lines).strip()


def _text(contents: Any) -> str:
    """A hover's text: a string, a marked string, markup, or a list of these."""
    if isinstance(contents, list):
        return "\n\n".join(filter(None, map(_text, contents)))
    if isinstance(contents, dict):
        return str(contents.get("value") or "")
    return contents if isinstance(contents, str) else ""
