"""Answers in the form of Google's generateContent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..events import FinishReason, Usage
from .parts import PartAssembler
from .provider_adapter import BadCallError, BlockedError, ResponseParser, count

REASONS: dict[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "content-filter",
    "RECITATION": "content-filter",
    "LANGUAGE": "content-filter",
    "BLOCKLIST": "content-filter",
    "PROHIBITED_CONTENT": "content-filter",
    "SPII": "content-filter",
    "IMAGE_SAFETY": "content-filter",
    "MALFORMED_FUNCTION_CALL": "error",
    "UNEXPECTED_TOOL_CALL": "error",
    "FINISH_REASON_UNSPECIFIED": "unknown",
}


class GoogleParser(ResponseParser):
    """Reads chunks; a call comes whole, in one of them."""

    def __init__(self, parts: PartAssembler) -> None:
        super().__init__(parts)
        self._signature: str | None = None

    def feed(self, value: Mapping[str, Any]) -> None:
        """One event of a stream."""
        used = value.get("usageMetadata")
        if isinstance(used, Mapping):
            self._used(used)
        blocked = (value.get("promptFeedback") or {}).get("blockReason")
        if blocked:
            raise BlockedError(str(blocked))
        candidates = value.get("candidates")
        candidate = candidates[0] if isinstance(candidates, list) and candidates else None
        if not isinstance(candidate, Mapping):
            return
        for part in (candidate.get("content") or {}).get("parts") or ():
            self._part(part)
        reason = candidate.get("finishReason")
        if reason:
            self.finished = True
            self.reason = REASONS.get(str(reason), "other")
            if candidate.get("finishMessage"):
                self.metadata["google"] = {"finishMessage": candidate["finishMessage"]}
            self._end_thought()
            if self.reason == "error" and not self.parts.said:
                raise BadCallError(str(candidate.get("finishMessage") or reason))
            self.parts.end()

    # ------------------------------------------------------------------ inside

    def _part(self, part: Mapping[str, Any]) -> None:
        signature = part.get("thoughtSignature")
        call = part.get("functionCall")
        if isinstance(call, Mapping):
            self._end_thought()
            opened = self.parts.call(str(call.get("id") or ""), str(call.get("name") or ""))
            if signature:
                opened.metadata = {"google": {"thoughtSignature": signature}}
            self.parts.arguments(opened, json.dumps(call.get("args") or {}, ensure_ascii=False))
            self.parts.end_call(opened)
            return
        text = part.get("text")
        if not isinstance(text, str):
            return
        if part.get("thought"):
            self._signature = signature or self._signature
            self.parts.reasoning(text)
        elif text:
            self._end_thought()
            self.parts.text(text)

    def _end_thought(self) -> None:
        metadata = {"google": {"thoughtSignature": self._signature}} if self._signature else None
        self.parts.end_reasoning(metadata)
        self._signature = None

    def _used(self, used: Mapping[str, Any]) -> None:
        read = count(used.get("cachedContentTokenCount"))
        total = used.get("totalTokenCount")
        self.usage = Usage(
            input=max(0, count(used.get("promptTokenCount")) + count(used.get("toolUsePromptTokenCount")) - read),
            output=count(used.get("candidatesTokenCount")),
            reasoning=count(used.get("thoughtsTokenCount")),
            cache_read=read,
            total=int(total) if isinstance(total, int) else None,
        )
