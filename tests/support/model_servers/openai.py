"""OpenAI's chat completions from a script, as OpenAI and servers like it stream them."""

from __future__ import annotations

import json
from typing import Any

from .script import Turn
from .server import Request, Server, serve_from_command_line

USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


def event(value: Any) -> bytes:
    """A server-sent event with a JSON value."""
    return b"data: " + json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() + b"\n\n"


class ScriptedServer(Server):
    """POST ``/v1/chat/completions``; see `server.Server`."""

    prefix = "/v1"

    def events(self, turn: Turn, request: Request) -> list[bytes]:
        base = {
            "id": f"chatcmpl-{turn.number}",
            "object": "chat.completion.chunk",
            "created": 1700000000,
            "model": request.body.get("model", "m"),
        }

        def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
            return event({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

        out = [chunk({"role": "assistant", "content": ""})]
        out += [chunk({"reasoning_content": piece}) for piece in turn.pieces(turn.reasoning)]
        out += [chunk({"content": piece}) for piece in turn.pieces(turn.text)]
        for at, (name, arguments, call_id) in enumerate(turn.calls_whole()):
            first: dict[str, Any] = {"index": at, "type": "function", "function": {"name": name, "arguments": ""}}
            if call_id is not None:
                first["id"] = call_id
            out.append(chunk({"tool_calls": [first]}))
            out += [
                chunk({"tool_calls": [{"index": at, "function": {"arguments": piece}}]})
                for piece in turn.pieces(arguments)
            ]
        out += [chunk({"content": piece}) for piece in turn.pieces(turn.after)]
        out.append(chunk({}, turn.finish or ("tool_calls" if turn.calls else "stop")))
        if (request.body.get("stream_options") or {}).get("include_usage"):
            out.append(event({**base, "choices": [], "usage": {**USAGE, **turn.usage}}))
        if turn.end:
            out.append(b"data: [DONE]\n\n")
        return out

    def whole(self, turn: Turn, request: Request) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": (turn.text + turn.after) or None}
        if turn.reasoning:
            message["reasoning_content"] = turn.reasoning
        calls = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for name, arguments, call_id in turn.calls_whole()
        ]
        if calls:
            message["tool_calls"] = calls
        finish = turn.finish or ("tool_calls" if calls else "stop")
        return {
            "id": f"chatcmpl-{turn.number}",
            "object": "chat.completion",
            "created": 1700000000,
            "model": request.body.get("model", "m"),
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {**USAGE, **turn.usage},
        }


if __name__ == "__main__":
    serve_from_command_line(ScriptedServer)
