"""A server of the older protocol, written by hand, that misbehaves as its tools are told to."""

from __future__ import annotations

import json
import os
import pathlib
import sys
import time
from typing import Any

NAMES = "echo large die silent rubbish rename a.b flood two form page sample roots"
TOOLS: dict[str, dict[str, Any]] = {
    name: {
        "name": name,
        "description": name,
        "inputSchema": {"type": "object", "properties": {"size": {"type": "integer"}}},
    }
    for name in [*NAMES.split(), "a b"]
}
FORM = {
    "type": "object",
    "properties": {"age": {"type": "integer", "maximum": 150}, "sure": {"type": "boolean"}},
    "required": ["age"],
}
ASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "form": ("elicitation/create", {"message": "How old?", "requestedSchema": FORM}),
    "page": (
        "elicitation/create",
        {"mode": "url", "message": "Open this", "url": "https://evil.test/", "elicitationId": "1"},
    ),
    "sample": (
        "sampling/createMessage",
        {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5},
    ),
    "roots": ("roots/list", {}),
}
WAITING: dict[str, int] = {}
"""Requests of ours by id, with the call that each belongs to."""


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({**message, "jsonrpc": "2.0"}) + "\n")
    sys.stdout.flush()


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def call(number: int, name: str, arguments: dict[str, Any]) -> None:
    if name == "large":
        send({"id": number, "result": text("x" * arguments["size"])})
    elif name == "die":
        print("I can't go on", file=sys.stderr, flush=True)
        os._exit(arguments.get("size", 3))
    elif name == "silent":
        return
    elif name == "rubbish":
        sys.stdout.write("hello, I am no message\n{ neither am I }\n\xff\n\n[1, 2]\n")
        send({"id": number, "result": text("after rubbish")})
    elif name == "rename":
        TOOLS["echo"]["description"] = "another one"
        TOOLS["new"] = {**TOOLS["echo"], "name": "new"}
        for _ in range(5):
            send({"method": "notifications/tools/list_changed"})
        send({"id": number, "result": text("renamed")})
    elif name in ("form", "page", "sample", "roots"):
        WAITING[f"ask{number}"] = number
        method, params = ASKS[name]
        send({"id": f"ask{number}", "method": method, **({"params": params} if params else {})})
    elif name == "flood":
        for i in range(arguments["size"]):
            send({"method": "notifications/message", "params": {"level": "info", "data": f"line {i}"}})
        send({"id": number, "result": text("flooded")})
    else:
        send({"id": number, "result": text(f"{name}: {json.dumps(arguments)}")})


def main(mode: str) -> None:
    if mode == "rubbish":
        print("starting up...", flush=True)
    if mode == "exit":
        print("no config found", file=sys.stderr)
        raise SystemExit(4)
    if mode == "mute":
        time.sleep(600)
    if mode.startswith("says="):
        TOOLS["echo"]["description"] = pathlib.Path(mode.removeprefix("says=")).read_text()
    slow = float(mode) if mode.replace(".", "").isdigit() else 0.0
    for line in sys.stdin:
        message = json.loads(line)
        method, number = message.get("method"), message.get("id")
        if method is None:
            send({"id": WAITING.pop(number), "result": text(json.dumps(message.get("result") or message["error"]))})
        elif method == "initialize":
            time.sleep(slow)
            send(
                {
                    "id": number,
                    "result": {
                        "protocolVersion": "2025-11-25",
                        "capabilities": {"tools": {"listChanged": True}, "prompts": {}},
                        "serverInfo": {"name": "odd", "version": "1"},
                    },
                }
            )
        elif method == "tools/list":
            if mode == "unlisted":
                send({"id": number, "error": {"code": -32000, "message": "no tools today"}})
            else:
                more = {"nextCursor": "more"} if mode == "endless" else {}
                send({"id": number, "result": {"tools": list(TOOLS.values()), **more}})
        elif method == "tools/call":
            call(number, message["params"]["name"], message["params"].get("arguments") or {})
        elif number is not None:
            send({"id": number, "error": {"code": -32601, "message": "Method not found"}})


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
