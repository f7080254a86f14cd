"""Answers in the form of Anthropic's messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..events import FinishReason, Usage
from .parts import OpenCall, PartAssembler
from .provider_adapter import ResponseParser, count

REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "tool_use": "tool-calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content-filter",
}


class AnthropicParser(ResponseParser):
    """Reads events."""

    def __init__(self, parts: PartAssembler) -> None:
        super().__init__(parts)
        self._calls: dict[int, OpenCall] = {}
        self._inputs: dict[int, Any] = {}
        self._thoughts: dict[int, dict[str, Any]] = {}
        self._used: dict[str, Any] = {}

    def feed(self, value: Mapping[str, Any]) -> None:
        """One event of a stream."""
        kind = value.get("type")
        if kind == "content_block_delta":
            self._delta(value.get("index", 0), value.get("delta") or {})
        elif kind == "content_block_start":
            self._start(value.get("index", 0), value.get("content_block") or {})
        elif kind == "content_block_stop":
            self._stop(value.get("index", 0))
        elif kind == "message_start":
            self._count((value.get("message") or {}).get("usage"))
        elif kind == "message_delta":
            self._count(value.get("usage"))
            self._why((value.get("delta") or {}).get("stop_reason"))
        elif kind == "message_stop":
            self.finished = self.closed = True
            self.parts.end()

    def whole(self, value: Mapping[str, Any]) -> None:
        """An answer that is no stream."""
        for at, block in enumerate(value.get("content") or ()):
            self._start(at, block)
            self._stop(at)
        self._count(value.get("usage"))
        self._why(value.get("stop_reason"))
        self.finished = self.closed = True

    # ------------------------------------------------------------------ blocks

    def _start(self, index: int, block: Mapping[str, Any]) -> None:
        kind = block.get("type")
        if kind == "text":
            self.parts.end_text()  # each block is a part of its own
            self.parts.text(block.get("text") or "")
        elif kind == "thinking":
            self._thoughts[index] = {"signature": block.get("signature") or ""}
            self.parts.reasoning(block.get("thinking") or "", begin=True)
        elif kind == "redacted_thinking":
            self._thoughts[index] = {"redactedData": block.get("data") or ""}
            self.parts.reasoning("", begin=True)
        elif kind == "tool_use":
            call = self.parts.call(str(block.get("id") or ""), str(block.get("name") or ""))
            self._calls[index] = call
            self._inputs[index] = block.get("input")

    def _delta(self, index: int, delta: Mapping[str, Any]) -> None:
        kind = delta.get("type")
        if kind == "text_delta":
            self.parts.text(delta.get("text") or "")
        elif kind == "input_json_delta":
            if index in self._calls:
                self.parts.arguments(self._calls[index], delta.get("partial_json") or "")
        elif kind == "thinking_delta":
            self.parts.reasoning(delta.get("thinking") or "")
        elif kind == "signature_delta" and index in self._thoughts:
            self._thoughts[index]["signature"] = self._thoughts[index].get("signature", "") + delta.get("signature", "")

    def _stop(self, index: int) -> None:
        if index in self._calls:
            call = self._calls.pop(index)
            arguments = self._inputs.pop(index)
            if arguments and not call.arguments:
                self.parts.arguments(call, json.dumps(arguments, ensure_ascii=False))  # all in one piece
            self.parts.end_call(call)
        elif index in self._thoughts:
            metadata = {key: value for key, value in self._thoughts.pop(index).items() if value}
            self.parts.end_reasoning({"anthropic": metadata} if metadata else None)
        else:
            self.parts.end_text()

    # ------------------------------------------------------------------ the end

    def _why(self, reason: Any) -> None:
        if reason:
            self.reason = REASONS.get(str(reason), "other")

    def _count(self, used: Any) -> None:
        """Take over counts; the later ones are sums, not additions."""
        if not isinstance(used, Mapping):
            return
        self._used.update({key: value for key, value in used.items() if value is not None})
        details = self._used.get("output_tokens_details")
        thought = count(details.get("thinking_tokens")) if isinstance(details, Mapping) else 0
        self.usage = Usage(
            input=count(self._used.get("input_tokens")),
            output=max(0, count(self._used.get("output_tokens")) - thought),
            reasoning=thought,
            cache_read=count(self._used.get("cache_read_input_tokens")),
            cache_write=count(self._used.get("cache_creation_input_tokens")),
        )
