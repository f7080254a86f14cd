"""The nine operations of the lsp tool, on one server, and their answers as rows (docs/opencode/tools.md 13.1)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ...text.encoding import printable
from .client import Client
from .documents import to_path

PREPARE = "textDocument/prepareCallHierarchy"
METHODS = {
    "goToDefinition": "textDocument/definition",
    "findReferences": "textDocument/references",
    "hover": "textDocument/hover",
    "documentSymbol": "textDocument/documentSymbol",
    "workspaceSymbol": "workspace/symbol",
    "goToImplementation": "textDocument/implementation",
    "prepareCallHierarchy": PREPARE,
    "incomingCalls": PREPARE,
    "outgoingCalls": PREPARE,
}
"""Operation to the request a server must offer for it."""
CALLS = {"incomingCalls": "callHierarchy/incomingCalls", "outgoingCalls": "callHierarchy/outgoingCalls"}
WORKSPACE_KINDS = frozenset({5, 6, 10, 11, 12, 13, 14, 23})
"""class, method, enum, interface, function, variable, constant, struct."""
WORKSPACE_SYMBOLS = 10
"""Symbols of the workspace that one server gives."""
COMMON = ("e", "a", "i", "o", "t", "n")
"""Asked for by servers that give nothing for an empty query (all of Python's): most names hold one of them."""
_WORD = re.compile(r"\w+")


def is_offered(client: Client, operation: str) -> bool:
    """Return whether a server offers what an operation needs."""
    return client.supports(METHODS[operation])


async def run_operation(client: Client, operation: str, path: Path, line: int, character: int) -> list[Any]:
    """Ask one server.

    Args:
        client: it has been shown the file, and `is_offered` says that it offers this.
        operation: one of `METHODS`.
        path: the file.
        line: counted from 0.
        character: counted from 0, in UTF-16 units.

    Returns:
        What the server found, empty values left out; for hover one entry, which may be None.

    Raises:
        RpcError: the server answered with an error.
        ServerFailedError: it ended or did not answer in time.
    """
    if operation in ("prepareCallHierarchy", *CALLS):
        return await _calls(client, operation, path, line, character)
    method = METHODS[operation]
    if operation == "workspaceSymbol":
        return await _workspace_symbols(client, path, line, character)
    if operation == "documentSymbol":
        answer = await client.request(method, {"textDocument": {"uri": path.as_uri()}})
    elif operation == "findReferences":
        answer = await client.ask_at(method, path, line, character, context={"includeDeclaration": True})
    else:
        answer = await client.ask_at(method, path, line, character)
    return [answer] if operation == "hover" else _as_list(answer)


async def _calls(client: Client, operation: str, path: Path, line: int, character: int) -> list[Any]:
    items = _as_list(await client.ask_at(PREPARE, path, line, character))
    if operation == "prepareCallHierarchy" or not items:
        return items
    return _as_list(await client.request(CALLS[operation], {"item": items[0]}))


async def _workspace_symbols(client: Client, path: Path, line: int, character: int) -> list[Any]:
    """Symbols for an empty query, as OpenCode asks. A server that gives none then is asked for the word at the place,
    and failing that for symbols of any name.
    """
    word = await _word(client, path, line, character)
    for query in ("", *([word] if word else []), *COMMON):
        symbols = _as_list(await client.request("workspace/symbol", {"query": query}))
        fitting = [symbol for symbol in symbols if symbol.get("kind") in WORKSPACE_KINDS]
        if fitting:
            fitting.sort(key=lambda symbol: bool(query == word and symbol.get("name") != word))
            return fitting[:WORKSPACE_SYMBOLS]
    return []


async def _word(client: Client, path: Path, line: int, character: int) -> str:
    lines = client.lines(path)
    if lines is None or line >= len(lines):
        return ""
    before = lines[line].encode("utf-16-le", "surrogatepass")[: 2 * character]
    at = len(before.decode("utf-16-le", "ignore"))
    words = [match[0] for match in _WORD.finditer(lines[line]) if match.start() <= at <= match.end()]
    return words[-1] if words else ""


def _as_list(answer: Any) -> list[Any]:
    """An answer's items; servers give one, a list, or nothing."""
    items = answer if isinstance(answer, list) else [answer]
    return [item for item in items if item]


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
            _row(out, item, path.as_uri(), None)
    return out


def _row(out: list[dict[str, Any]], item: dict[str, Any], uri: str, container: Any) -> None:
    other = _object(item.get("from")) or _object(item.get("to"))
    symbol = other or item
    location = _object(symbol.get("location"))
    where = next(
        (u for u in (symbol.get("uri"), symbol.get("targetUri"), location.get("uri")) if isinstance(u, str)), uri
    )
    range_of_name = _object(symbol.get("selectionRange")) or _object(symbol.get("targetSelectionRange"))
    start = _object((range_of_name or _object(symbol.get("range")) or _object(location.get("range"))).get("start"))
    file = to_path(where)
    row: dict[str, Any] = {
        "path": printable(str(file)) if file is not None else where,
        "line": _count(start.get("line")) + 1,
        "character": _count(start.get("character")) + 1,
    }
    if "name" in symbol:
        row["name"] = symbol["name"]
        row["kind"] = _kind_name(symbol.get("kind"))
        row["container"] = container or symbol.get("containerName") or symbol.get("detail")
    if other:
        ranges = item.get("fromRanges")
        row["calls"] = len(ranges) if isinstance(ranges, list) else 0
    out.append(row)
    children = symbol.get("children")
    for child in children if isinstance(children, list) else ():
        if isinstance(child, dict):
            _row(out, child, uri, symbol.get("name"))


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
