"""A small language server that speaks the real protocol and misbehaves as it is told. Run as a script.

It knows one language: ``def NAME`` defines a name, ``NAME(`` calls it, ``BUG`` is an error. Its only argument is a JSON
object:

- ``log``: a file to which each message received is written, one JSON a line
- ``capabilities``: laid over its own; null takes one away
- ``encoding``: how it counts characters (``utf-16``), announced if it is another
- ``push``: sends diagnostics unasked; else they are asked for
- ``die``, ``hang``, ``fail``, ``late``: the method at which it exits, falls silent, answers with an error, or answers
  only after being cancelled
- ``noise``: prints to stdout and stderr what is no message; ``child``: starts a process that outlives it
- ``asks``: sends its own requests after ``initialized``; the answers are in the log
- ``dynamic``: registers for diagnostics and watched files only later
- ``padding``: characters put into each hover
- ``more``: diagnostics that every file has besides
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

OPTIONS: dict[str, Any] = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
ENCODING = OPTIONS.get("encoding", "utf-16")
CAPABILITIES: dict[str, Any] = {
    "textDocumentSync": {"openClose": True, "change": 1, "save": {"includeText": True}},
    "definitionProvider": True,
    "referencesProvider": True,
    "hoverProvider": True,
    "documentSymbolProvider": True,
    "workspaceSymbolProvider": True,
    "implementationProvider": True,
    "callHierarchyProvider": True,
    **(
        {} if OPTIONS.get("push") or OPTIONS.get("dynamic") else {"diagnosticProvider": {"interFileDependencies": True}}
    ),
    **({} if ENCODING == "utf-16" else {"positionEncoding": ENCODING}),
    **OPTIONS.get("capabilities", {}),
}
texts: dict[str, str] = {}
cancelled: set[int] = set()
held: list[int] = []


def send(message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    if OPTIONS.get("noise"):
        sys.stdout.buffer.write(b"this is no message\n")
        sys.stderr.write("noise " * 20_000)
        sys.stderr.flush()
    sys.stdout.buffer.write(
        b"content-type: application/vscode-jsonrpc\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    )
    sys.stdout.buffer.flush()


def receive() -> dict[str, Any] | None:
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return json.loads(sys.stdin.buffer.read(length)) if length else None


def units(text: str) -> int:
    return len(text.encode()) if ENCODING == "utf-8" else len(text.encode("utf-16-le")) // 2


def character(line: str, units_before: int) -> int:
    return next((i for i in range(len(line) + 1) if units(line[:i]) >= units_before), len(line))


def span(number: int, line: str, start: int, end: int) -> dict[str, Any]:
    return {
        "start": {"line": number, "character": units(line[:start])},
        "end": {"line": number, "character": units(line[:end])},
    }


def locations(pattern: str) -> list[dict[str, Any]]:
    """Locations of a pattern's first group in all open documents."""
    return [
        {"uri": uri, "range": span(number, line, match.start(1), match.end(1))}
        for uri, text in texts.items()
        for number, line in enumerate(text.split("\n"))
        for match in re.finditer(pattern, line)
    ]


def word(params: dict[str, Any]) -> str:
    position = params["position"]
    line = texts[params["textDocument"]["uri"]].split("\n")[position["line"]]
    at = character(line, position["character"])
    return next((m[0] for m in re.finditer(r"\w+", line) if m.start() <= at <= m.end()), "")


def symbols(uri: str) -> list[dict[str, Any]]:
    lines = texts[uri].split("\n")
    heads = [(i, m) for i, line in enumerate(lines) if (m := re.match(r"def (\w+)", line))]
    out = []
    for (number, match), after in zip(heads, [*(n for n, _ in heads[1:]), len(lines)], strict=True):
        last = after - 1
        whole = {"start": {"line": number, "character": 0}, "end": {"line": last, "character": units(lines[last])}}
        name = span(number, lines[number], match.start(1), match.end(1))
        out.append({"name": match[1], "kind": 12, "range": whole, "selectionRange": name, "children": []})
    return out


def items(params: dict[str, Any]) -> list[dict[str, Any]]:
    name = word(params)
    return [{**s, "uri": uri, "data": [1]} for uri in texts for s in symbols(uri) if s["name"] == name]


def bugs(uri: str) -> list[dict[str, Any]]:
    return [
        {
            "range": span(number, line, match.start(), match.end()),
            "severity": 1,
            "message": f"a bug in line {number + 1}",
        }
        for number, line in enumerate(texts[uri].split("\n"))
        for match in re.finditer("BUG", line)
    ] + OPTIONS.get("more", [])


def answer(method: str, params: dict[str, Any]) -> Any:
    if method == "textDocument/definition":
        return locations(rf"def ({word(params)})\b") or None
    if method == "textDocument/implementation":
        return (locations(rf"def ({word(params)})\b") or [None])[0]
    if method == "textDocument/references":
        pattern = (
            rf"\b({word(params)})\b" if params["context"]["includeDeclaration"] else rf"(?<!def )\b({word(params)})\("
        )
        return locations(pattern)
    if method == "textDocument/hover":
        name = word(params)
        return (
            {"contents": [f"`{name}`", {"language": "x", "value": "·" * OPTIONS.get("padding", 1)}]} if name else None
        )
    if method == "textDocument/documentSymbol":
        return symbols(params["textDocument"]["uri"])
    if method == "workspace/symbol":
        return [
            {"name": s["name"], "kind": kind, "location": {"uri": uri, "range": s["selectionRange"]}}
            for uri in texts
            for s in symbols(uri)
            for kind in (12, 26)
        ]
    if method == "textDocument/prepareCallHierarchy":
        return items(params)
    if method in ("callHierarchy/incomingCalls", "callHierarchy/outgoingCalls"):
        assert params["item"]["data"] == [1], "the item must come back as it was"
        key = "from" if method.endswith("incomingCalls") else "to"
        return [{key: params["item"], "fromRanges": [params["item"]["selectionRange"]]}]
    if method == "textDocument/diagnostic":
        return {"kind": "full", "items": bugs(params["textDocument"]["uri"])}
    raise LookupError(method)


def notified(method: str, params: Any) -> None:
    if method == "initialized":
        if OPTIONS.get("asks"):
            requests = [("workspace/configuration", {"items": [{"section": "mine.inner"}, {}]}), ("no/such", None)]
            requests += [("workspace/workspaceFolders", None), ("window/workDoneProgress/create", {"token": 7})]
            for number, (name, parameters) in enumerate(requests):
                send({"id": f"s{number}", "method": name, "params": parameters})
        if OPTIONS.get("dynamic"):
            time.sleep(0.3)
            for name in ("textDocument/diagnostic", "workspace/didChangeWatchedFiles"):
                send(
                    {
                        "id": name,
                        "method": "client/registerCapability",
                        "params": {"registrations": [{"id": name, "method": name}]},
                    }
                )
    elif method in ("textDocument/didOpen", "textDocument/didChange"):
        document = params["textDocument"]
        uri = document["uri"]
        texts[uri] = document["text"] if "text" in document else params["contentChanges"][-1]["text"]
        if OPTIONS.get("push"):
            shown = {"uri": uri, "version": document["version"], "diagnostics": bugs(uri)}
            send({"method": "textDocument/publishDiagnostics", "params": {**shown, "version": document["version"] - 1}})
            time.sleep(0.05)
            send({"method": "textDocument/publishDiagnostics", "params": shown})
    elif method == "textDocument/didClose":
        texts.pop(params["textDocument"]["uri"], None)
    elif method == "workspace/didChangeWatchedFiles":
        for change in params["changes"]:
            path = Path(unquote(urlsplit(change["uri"]).path))
            if path.is_file():
                texts.setdefault(change["uri"], path.read_text())
    elif method == "$/cancelRequest" and params["id"] in held:
        send({"id": params["id"], "error": {"code": -32800, "message": "cancelled"}})
    elif method == "exit":
        sys.exit(0)


def main() -> None:
    if OPTIONS.get("child"):
        subprocess.Popen(["/bin/sh", "-c", f"exec sleep {OPTIONS['child']}"], start_new_session=True)
    while (message := receive()) is not None:
        if OPTIONS.get("log"):
            with open(OPTIONS["log"], "a") as log:
                log.write(json.dumps(message) + "\n")
        method, number = message.get("method"), message.get("id")
        if method is None:
            continue
        if method == OPTIONS.get("die"):
            sys.stderr.write("the last words\n")
            sys.exit(3)
        if method == OPTIONS.get("hang"):
            time.sleep(3600)
        if number is None:
            notified(method, message.get("params"))
        elif method == OPTIONS.get("late"):
            held.append(number)
        elif method == OPTIONS.get("fail"):
            send({"id": number, "error": {"code": -32603, "message": "it went wrong"}})
        elif method == "initialize":
            send({"id": number, "result": {"capabilities": CAPABILITIES}})
        elif method == "shutdown":
            send({"id": number, "result": None})
        else:
            send({"id": number, "result": answer(method, message.get("params"))})


if __name__ == "__main__":
    main()
