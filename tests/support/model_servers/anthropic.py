"""Anthropic's messages from a script."""

from __future__ import annotations

import json
from typing import Any

from .script import Turn
from .server import Request, Server, serve_from_command_line

USAGE = {"input_tokens": 100, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 20}


def event(value: dict[str, Any]) -> bytes:
    """A server-sent event with its name and its JSON."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return f"event: {value['type']}\ndata: {text}\n\n".encode()


class ScriptedServer(Server):
    """POST ``/v1/messages``; see `server.Server`."""

    prefix = "/v1"

    def events(self, turn: Turn, request: Request) -> list[bytes]:
        used = {**USAGE, **turn.usage}
        message = {
            "id": f"msg_{turn.number}",
            "type": "message",
            "role": "assistant",
            "model": request.body.get("model"),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**used, "output_tokens": 1},
        }
        out = [event({"type": "message_start", "message": message}), event({"type": "ping"})]
        index = 0

        def block(start: dict[str, Any], deltas: list[dict[str, Any]]) -> None:
            nonlocal index
            out.append(event({"type": "content_block_start", "index": index, "content_block": start}))
            out.extend(event({"type": "content_block_delta", "index": index, "delta": delta}) for delta in deltas)
            out.append(event({"type": "content_block_stop", "index": index}))
            index += 1

        def text(words: str) -> None:
            if words:
                block(
                    {"type": "text", "text": ""},
                    [{"type": "text_delta", "text": piece} for piece in turn.pieces(words)],
                )

        if turn.reasoning:
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in turn.pieces(turn.reasoning)]
            if turn.signature:
                deltas.append({"type": "signature_delta", "signature": turn.signature})
            block({"type": "thinking", "thinking": "", "signature": ""}, deltas)
        text(turn.text)
        for name, arguments, call_id in turn.calls_whole():
            block(
                {"type": "tool_use", "id": call_id, "name": name, "input": {}},
                [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *turn.pieces(arguments)]],
            )
        text(turn.after)
        stop = {"stop_reason": self._why(turn), "stop_sequence": None}
        out.append(event({"type": "message_delta", "delta": stop, "usage": {"output_tokens": used["output_tokens"]}}))
        if turn.end:
            out.append(event({"type": "message_stop"}))
        return out

    def whole(self, turn: Turn, request: Request) -> dict[str, Any]:
        content: list[dict[str, Any]] = []
        if turn.reasoning:
            content.append({"type": "thinking", "thinking": turn.reasoning, "signature": turn.signature})
        if turn.text:
            content.append({"type": "text", "text": turn.text})
        for name, arguments, call_id in turn.calls_whole():
            content.append({"type": "tool_use", "id": call_id, "name": name, "input": json.loads(arguments)})
        return {
            "id": f"msg_{turn.number}",
            "type": "message",
            "role": "assistant",
            "model": request.body.get("model"),
            "content": content,
            "stop_reason": self._why(turn),
            "usage": {**USAGE, **turn.usage},
        }

    @staticmethod
    def _why(turn: Turn) -> str:
        return turn.finish or ("tool_use" if turn.calls else "end_turn")


if __name__ == "__main__":
    serve_from_command_line(ScriptedServer)
