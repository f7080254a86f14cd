"""Answers in the form of OpenAI's chat completions, in the many ways servers write them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..events import FinishReason, Usage
from .parts import OpenCall, PartAssembler
from .provider_adapter import ResponseParser, count

REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "tool_calls": "tool-calls",
    "function_call": "tool-calls",
    "tool_use": "tool-calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content-filter",
    "sensitive": "content-filter",
    "error": "error",
}
THOUGHTS = ("reasoning_content", "reasoning")
"""Fields that servers put thoughts in: DeepSeek, vLLM and others; OpenRouter, Groq and Ollama."""


class OpenAIParser(ResponseParser):
    """Reads chunks."""

    def __init__(self, parts: PartAssembler) -> None:
        super().__init__(parts)
        self._by_index: dict[int, OpenCall] = {}
        self._field = ""
        self._details: list[Any] = []
        self._refused = False

    def feed(self, value: Mapping[str, Any]) -> None:
        """One event of a stream."""
        used = value.get("usage") or _mapping(value.get("x_groq")).get("usage")
        if isinstance(used, Mapping):
            self._used(used)
        choices = value.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if not isinstance(choice, Mapping) or choice.get("index") not in (0, None):
                continue
            delta = choice.get("delta") or choice.get("message")
            if isinstance(delta, Mapping):
                self._delta(delta)
            reason = choice.get("finish_reason")
            if reason:
                self.finished = True
                self.reason = "content-filter" if self._refused else REASONS.get(str(reason).lower(), "other")
                self._end_thought()
                self.parts.end()

    # ------------------------------------------------------------------ inside

    def _delta(self, delta: Mapping[str, Any]) -> None:
        details = delta.get("reasoning_details")
        if isinstance(details, list):
            self._details += details
        for name in THOUGHTS:
            thought = delta.get(name)
            if isinstance(thought, str) and thought:
                self._field = name
                self.parts.reasoning(thought)
                break
        content = delta.get("content")
        if isinstance(content, str):
            self._text(content)
        for piece in content if isinstance(content, list) else ():
            self._piece(piece)
        refusal = delta.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._refused = True
            self._text(refusal)
        calls = delta.get("tool_calls")
        if isinstance(calls, list) and calls:
            self._end_thought()
            for at, call in enumerate(calls):
                if isinstance(call, Mapping):
                    self._call(call, at if len(calls) > 1 else None)

    def _text(self, text: str) -> None:
        if text:
            self._end_thought()
            self.parts.text(text)

    def _piece(self, piece: Any) -> None:
        """A piece of a content that is a list, as Mistral sends it."""
        if not isinstance(piece, Mapping):
            return
        if piece.get("type") == "thinking":
            thinking = piece.get("thinking")
            for entry in thinking if isinstance(thinking, list) else [thinking]:
                self.parts.reasoning(str(entry.get("text") or "") if isinstance(entry, Mapping) else str(entry or ""))
        elif isinstance(piece.get("text"), str):
            self._text(piece["text"])

    def _end_thought(self) -> None:
        if self._details and not self.parts.thinking:
            self.parts.reasoning("", begin=True)  # all there is of it is for the provider alone
        if not self.parts.thinking:
            return
        metadata: dict[str, Any] = {}
        if self._field:
            metadata["field"] = self._field
        if self._details:
            metadata = {"reasoning_details": _merge_details(self._details)}
        self.parts.end_reasoning({"openai": metadata} if metadata else None)
        self._field, self._details = "", []

    def _call(self, value: Mapping[str, Any], position: int | None) -> None:
        function = value.get("function")
        function = function if isinstance(function, Mapping) else {}
        provider_id, name = _text(value.get("id")), _text(function.get("name"))
        arguments = function.get("arguments")
        if arguments is None:
            text = ""
        else:
            text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        index = value.get("index") if isinstance(value.get("index"), int) else position
        call = self._find_call(index, provider_id, name, text)
        if call is None:
            call = self.parts.call(provider_id, name)
            self._by_index[index if index is not None else len(self._by_index)] = call
        else:
            self.parts.named(call, name)
            call.provider_id = call.provider_id or provider_id
            if not call.started:
                call.id = call.id or provider_id
        self.parts.arguments(call, text)

    def _find_call(self, index: int | None, provider_id: str, name: str, text: str) -> OpenCall | None:
        """The call that an entry belongs to; None if a new one begins with it."""
        if index is not None:
            call = self._by_index.get(index)
        elif provider_id:
            call = next((open_call for open_call in self.parts.calls if open_call.provider_id == provider_id), None)
        else:
            call = self.parts.calls[-1] if self.parts.calls else None
        if call is None:
            return None
        if provider_id and call.provider_id and provider_id != call.provider_id:
            return None  # all calls under one index, as Google's and some local servers have it
        if name and call.whole and (text or name != call.name):
            return None  # another call that forgot its id
        if (
            index is None
            and not provider_id
            and name != call.name
            and self.parts.offers(name)
            and self.parts.offers(call.name)
        ):
            return None  # the same, without arguments
        return call

    def _used(self, used: Mapping[str, Any]) -> None:
        prompt_details = _mapping(used.get("prompt_tokens_details"))
        completion_details = _mapping(used.get("completion_tokens_details"))
        prompt, completion = count(used.get("prompt_tokens")), count(used.get("completion_tokens"))
        read = count(
            prompt_details.get("cached_tokens") or used.get("prompt_cache_hit_tokens") or used.get("cached_tokens")
        )  # OpenAI; DeepSeek; Moonshot
        wrote = count(prompt_details.get("cache_write_tokens"))  # OpenRouter
        thought = count(completion_details.get("reasoning_tokens"))
        total = used.get("total_tokens")
        self.usage = Usage(
            input=max(0, prompt - read - wrote),
            # xAI counts the reasoning beside the completion, not in it
            output=completion - thought if completion >= thought else completion,
            reasoning=thought,
            cache_read=read,
            cache_write=wrote,
            total=int(total) if isinstance(total, int) else None,
        )
        if isinstance(used.get("cost"), int | float):
            self.metadata["cost"] = used["cost"]  # OpenRouter says it in dollars


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _merge_details(details: list[Any]) -> list[dict[str, Any]]:
    """OpenRouter's pieces of reasoning, those of one index put together: it wants them back as they would be whole."""
    out: list[dict[str, Any]] = []
    for detail in details:
        if not isinstance(detail, dict):
            continue
        last = out[-1] if out else {}
        marks = (detail.get("type"), detail.get("index"))
        if marks[1] is None or marks != (last.get("type"), last.get("index")):
            out.append(dict(detail))
            continue
        for key, value in detail.items():
            if key in ("text", "summary", "data", "signature") and isinstance(value, str):
                last[key] = (last.get(key) or "") + value
            elif value is not None:
                last[key] = value
    return out
