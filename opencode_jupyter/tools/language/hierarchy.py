"""Who calls whom, worked out from definitions, references and symbols, for servers that offer no call hierarchy.

Found by the text: a reference that a parenthesis follows is a call.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

from ...core.errors import ToolError
from .client import Client
from .positions import UTF16, UTF32, convert
from .rpc import RpcError
from .symbols import flat, holds, innermost, locations
from .uris import to_path, to_uri

NEEDED = ("textDocument/definition", "textDocument/references", "textDocument/documentSymbol")
MAX_FILES = 50
"""Files whose symbols are looked at for one question."""
MAX_CALLS = 200
"""Calls of a function that are followed."""
MODULE = 2
"""The symbol kind of code that is in no function."""
_CALL = re.compile(r"([^\W\d]\w*)\s*\(")
_CALLED = re.compile(r"\s*\(")
_NO_CALLS = frozenset(
    {"if", "elif", "while", "for", "return", "and", "or", "not", "in", "is", "def", "class", "switch"}
)


class Hierarchy:
    """One question's look at a project through one server."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._symbols: dict[Path, list[dict[str, Any]]] = {}

    async def prepare(self, path: Path, line: int, character: int) -> list[dict[str, Any]]:
        """The function, method or class that is named at a place; else the one the place is in."""
        answer = await self._ask("textDocument/definition", path, line, character)
        for uri, place in locations(answer):
            found = await self._item(uri, place)
            if found is not None:
                return [found]
        inside = innermost(await self._of(path), line, character)
        return [] if inside is None else [_item(inside)]

    async def incoming(self, item: dict[str, Any]) -> list[dict[str, Any]]:
        """The calls of an item, by caller."""
        path = to_path(item["uri"])
        if path is None:
            return []
        start = item["selectionRange"]["start"]
        await self._of(path)
        context = {"includeDeclaration": False}
        answer = await self._ask("textDocument/references", path, start["line"], start["character"], context=context)
        callers: dict[tuple[str, int, int], dict[str, Any]] = {}
        for uri, place in locations(answer):
            if place["start"] == start and to_path(uri) == path:
                continue  # the definition itself, which some servers give all the same
            caller = await self._caller(uri, place)
            if caller is not None:
                top = caller["selectionRange"]["start"]
                key = (caller["uri"], top["line"], top["character"])
                callers.setdefault(key, {"from": caller, "fromRanges": []})["fromRanges"].append(place)
        return list(callers.values())

    async def outgoing(self, item: dict[str, Any]) -> list[dict[str, Any]]:
        """What an item calls, each with the places where it does."""
        path = to_path(item["uri"])
        lines = None if path is None else await self._lines(path)
        if path is None or lines is None:
            return []
        calls = _calls(lines, item["range"], item["selectionRange"]["start"])[:MAX_CALLS]
        questions = [self._ask("textDocument/definition", path, line, column) for line, column, _ in calls]
        answers = await asyncio.gather(*questions, return_exceptions=True)
        called: dict[tuple[str, int, int], dict[str, Any]] = {}
        for (line, column, name), answer in zip(calls, answers, strict=True):
            if isinstance(answer, BaseException):
                continue
            for uri, place in locations(answer)[:1]:
                start = place["start"]
                key = (uri, start["line"], start["character"])
                if key not in called:
                    to = await self._item(uri, place) or _named(name, uri, place)
                    called[key] = {"to": to, "fromRanges": []}
                called[key]["fromRanges"].append(_span(line, column, len(name)))
        return list(called.values())

    async def _ask(self, method: str, path: Path, line: int, character: int, **more: Any) -> Any:
        answer = await self._client.ask_at(method, path, line, character, **more)
        return await self._client.in_utf16(answer, path)

    async def _caller(self, uri: str, place: dict[str, Any]) -> dict[str, Any] | None:
        path = to_path(uri)
        lines = None if path is None else await self._lines(path)
        end = place["end"]
        if path is None or lines is None or end["line"] >= len(lines):
            return None
        text = lines[end["line"]]
        if not _CALLED.match(text, convert(text, end["character"], UTF16, UTF32)):
            return None
        inside = innermost(await self._of(path), place["start"]["line"], place["start"]["character"])
        return _named(path.stem, uri, _span(0, 0, 0), MODULE) if inside is None else _item(inside)

    async def _item(self, uri: str, place: dict[str, Any]) -> dict[str, Any] | None:
        """The symbol that is defined at a place."""
        path = to_path(uri)
        if path is None:
            return None
        start = place["start"]
        for symbol in await self._of(path):
            chosen = symbol["selectionRange"]
            if holds(chosen, start["line"], start["character"]):
                return _item(symbol)
        return None

    async def _of(self, path: Path) -> list[dict[str, Any]]:
        """A file's symbols, with the place of each one's name."""
        if path in self._symbols or len(self._symbols) >= MAX_FILES:
            return self._symbols.get(path, [])
        self._symbols[path] = []
        try:
            await self._client.touch(path)
            uri = to_uri(path)
            answer = await self._client.request("textDocument/documentSymbol", {"textDocument": {"uri": uri}})
            answer = await self._client.in_utf16(answer, path)
            symbols = [s for s in flat(answer, uri) if s["range"]]
            lines = await self._lines(path) or []
        except (RpcError, ToolError):
            return []
        for symbol in symbols:
            symbol["selectionRange"] = symbol["selectionRange"] or _name_in(symbol, lines)
        self._symbols[path] = symbols
        return symbols

    async def _lines(self, path: Path) -> list[str] | None:
        return await asyncio.to_thread(self._client.lines, path)


def _item(symbol: dict[str, Any]) -> dict[str, Any]:
    keys = ("name", "kind", "uri", "range", "selectionRange")
    return {**({"detail": symbol["detail"]} if symbol["detail"] else {}), **{key: symbol[key] for key in keys}}


def _named(name: str, uri: str, place: dict[str, Any], kind: int = 12) -> dict[str, Any]:
    return {"name": name, "kind": kind, "uri": uri, "range": place, "selectionRange": place}


def _name_in(symbol: dict[str, Any], lines: list[str]) -> dict[str, Any]:
    """Where a symbol's name stands in the first lines of its range."""
    start, end = symbol["range"]["start"], symbol["range"]["end"]
    word = re.compile(rf"\b{re.escape(symbol['name'])}\b")
    for number in range(start["line"], min(end["line"] + 1, start["line"] + 20, len(lines))):
        text = lines[number]
        begin = convert(text, start["character"], UTF16, UTF32) if number == start["line"] else 0
        if found := word.search(text, begin):
            return _span(number, convert(text, found.start(), UTF32, UTF16), len(symbol["name"]))
    return {"start": start, "end": start}


def _calls(lines: list[str], place: dict[str, Any], own: dict[str, int]) -> list[tuple[int, int, str]]:
    """Line, column and name of each call in a range; `own` is the place of the range's own name."""
    out = []
    for number in range(place["start"]["line"], min(place["end"]["line"] + 1, len(lines))):
        for found in _CALL.finditer(lines[number]):
            here = (number, convert(lines[number], found.start(1), UTF32, UTF16))
            if found[1] not in _NO_CALLS and here != (own["line"], own["character"]) and holds(place, *here):
                out.append((*here, found[1]))
    return out


def _span(line: int, character: int, length: int) -> dict[str, Any]:
    return {
        "start": {"line": line, "character": character},
        "end": {"line": line, "character": character + length},
    }
