"""Google's generateContent from a script. A call's arguments are always whole there, in one event."""

from __future__ import annotations

import json
from typing import Any

from .script import Turn
from .server import Request, Server, serve_from_command_line

USAGE = {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}


class ScriptedServer(Server):
    """POST ``/v1beta/models/MODEL:streamGenerateContent`` (or ``:generateContent``); see `server.Server`."""

    prefix = "/v1beta"

    def streams(self, request: Request) -> bool:
        return ":streamGenerateContent" in request.path

    def parts(self, turn: Turn) -> list[dict[str, Any]]:
        """The parts of an answer, in the pieces that they come in."""
        out: list[dict[str, Any]] = [{"text": piece, "thought": True} for piece in turn.pieces(turn.reasoning)]
        out += [{"text": piece} for piece in turn.pieces(turn.text)]
        for name, arguments, call_id in turn.calls_whole():
            call: dict[str, Any] = {"functionCall": {"name": name, "args": json.loads(arguments)}}
            if call_id is not None and turn.signature:  # newer models, which sign their calls, give ids too
                call["functionCall"]["id"] = call_id
            if turn.signature:
                call["thoughtSignature"] = turn.signature
            out.append(call)
        return out + [{"text": piece} for piece in turn.pieces(turn.after)]

    def chunk(self, parts: list[dict[str, Any]], turn: Turn, finish: str | None = None) -> dict[str, Any]:
        """One event's JSON."""
        candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
        if finish:
            candidate["finishReason"] = finish
        return {"candidates": [candidate], "usageMetadata": {**USAGE, **turn.usage}, "modelVersion": "m"}

    def events(self, turn: Turn, request: Request) -> list[bytes]:
        chunks = [self.chunk([part], turn) for part in self.parts(turn)]
        if turn.end:
            chunks.append(self.chunk([{"text": ""}], turn, turn.finish or "STOP"))
        return [b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\r\n\r\n" for chunk in chunks]

    def whole(self, turn: Turn, request: Request) -> dict[str, Any]:
        return self.chunk(self.parts(turn), turn, turn.finish or "STOP")


if __name__ == "__main__":
    serve_from_command_line(ScriptedServer)
