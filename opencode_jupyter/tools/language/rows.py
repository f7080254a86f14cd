"""The answers of the lsp tool as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...text.encoding import printable
from .symbols import kind_name
from .uris import to_path, to_uri


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


def _row(out: list[dict[str, Any]], item: dict[str, Any], uri: str, container: str | None) -> None:
    other = item.get("from") or item.get("to")
    named = other if isinstance(other, dict) else item
    location = named.get("location") or {}
    where = named.get("uri") or named.get("targetUri") or location.get("uri") or uri
    place = named.get("selectionRange") or named.get("targetSelectionRange") or named.get("range")
    place = place or location.get("range") or {}
    start = place.get("start") or {}
    file = to_path(where)
    row: dict[str, Any] = {
        "path": printable(str(file)) if file is not None else where,
        "line": start.get("line", 0) + 1,
        "character": start.get("character", 0) + 1,
    }
    if "name" in named:
        row["name"] = named["name"]
        row["kind"] = kind_name(named.get("kind"))
        row["container"] = container or named.get("containerName") or named.get("detail")
    if isinstance(other, dict):
        row["calls"] = len(item.get("fromRanges") or ())
    out.append(row)
    for child in named.get("children") or ():
        _row(out, child, uri, named.get("name"))


def _plain(markdown: str) -> str:
    """A hover's text without the lines that begin and end code in Markdown, and without its rules."""
    lines = [line for line in markdown.splitlines() if not line.startswith("```") and line != "---"]
    return "\n".join(lines).strip()


def _text(contents: Any) -> str:
    """A hover's text: a string, a marked string, markup, or a list of these."""
    if isinstance(contents, list):
        return "\n\n".join(filter(None, map(_text, contents)))
    if isinstance(contents, dict):
        return str(contents.get("value", ""))
    return contents if isinstance(contents, str) else ""
