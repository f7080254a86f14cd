"""OpenAI's chat completions, which most providers and local servers speak: requests and answers."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..events import FinishReason, Usage
from ..model import ModelInfo, Request, ToolSpec
from ..turns import CallPiece, MediaPiece, ReasoningPiece, TextPiece, Turn
from .api_keys import Key
from .event_assembler import EventAssembler, OpenCall
from .provider_adapter import (
    ATTACHED,
    ProviderAdapter,
    ResponseParser,
    ToolsCache,
    TurnCache,
    encode,
    join_array,
    join_members,
    schema_of,
    snake,
    snake_keys,
    token_count,
    wire_name,
)
from .settings import ModelSettings, Provider

# ---------------------------------------------------------------------- answers

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
REASONING_FIELDS = ("reasoning_content", "reasoning")
"""Fields that servers put thoughts in: DeepSeek, vLLM and others; OpenRouter, Groq and Ollama."""


class OpenAIParser(ResponseParser):
    """Reads chunks."""

    def __init__(self, assembler: EventAssembler) -> None:
        super().__init__(assembler)
        self._by_index: dict[int, OpenCall] = {}
        self._field = ""
        self._details: list[Any] = []
        self._refused = False

    def feed(self, value: Mapping[str, Any]) -> None:
        """One event of a stream."""
        used = value.get("usage") or _mapping(value.get("x_groq")).get("usage")
        if isinstance(used, Mapping):
            self._read_usage(used)
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
                self._end_reasoning()
                self.assembler.end_all()

    # ------------------------------------------------------------------ inside

    def _delta(self, delta: Mapping[str, Any]) -> None:
        details = delta.get("reasoning_details")
        if isinstance(details, list):
            self._details += details
        for name in REASONING_FIELDS:
            thought = delta.get(name)
            if isinstance(thought, str) and thought:
                self._field = name
                self.assembler.add_reasoning(thought)
                break
        content = delta.get("content")
        if isinstance(content, str):
            self._text(content)
        for piece in content if isinstance(content, list) else ():
            self._content_piece(piece)
        refusal = delta.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._refused = True
            self._text(refusal)
        calls = delta.get("tool_calls")
        if isinstance(calls, list) and calls:
            self._end_reasoning()
            for at, call in enumerate(calls):
                if isinstance(call, Mapping):
                    self._call(call, at if len(calls) > 1 else None)

    def _text(self, text: str) -> None:
        if text:
            self._end_reasoning()
            self.assembler.add_text(text)

    def _content_piece(self, piece: Any) -> None:
        """A piece of a content that is a list, as Mistral sends it."""
        if not isinstance(piece, Mapping):
            return
        if piece.get("type") == "thinking":
            thinking = piece.get("thinking")
            for entry in thinking if isinstance(thinking, list) else [thinking]:
                self.assembler.add_reasoning(
                    str(entry.get("text") or "") if isinstance(entry, Mapping) else str(entry or "")
                )
        elif isinstance(piece.get("text"), str):
            self._text(piece["text"])

    def _end_reasoning(self) -> None:
        if self._details and not self.assembler.is_reasoning:
            self.assembler.add_reasoning("", begin=True)  # all there is of it is for the provider alone
        if not self.assembler.is_reasoning:
            return
        metadata: dict[str, Any] = {}
        if self._field:
            metadata["field"] = self._field
        if self._details:
            metadata = {"reasoning_details": _merge_details(self._details)}
        self.assembler.end_reasoning({"openai": metadata} if metadata else None)
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
            call = self.assembler.start_call(provider_id, name)
            self._by_index[index if index is not None else len(self._by_index)] = call
        else:
            self.assembler.add_name(call, name)
            call.provider_id = call.provider_id or provider_id
            if not call.started:
                call.id = call.id or provider_id
        self.assembler.add_arguments(call, text)

    def _find_call(self, index: int | None, provider_id: str, name: str, text: str) -> OpenCall | None:
        """The call that an entry belongs to; None if a new one begins with it."""
        if index is not None:
            call = self._by_index.get(index)
        elif provider_id:
            call = next((open_call for open_call in self.assembler.calls if open_call.provider_id == provider_id), None)
        else:
            call = self.assembler.calls[-1] if self.assembler.calls else None
        if call is None:
            return None
        if provider_id and call.provider_id and provider_id != call.provider_id:
            return None  # all calls under one index, as Google's and some local servers have it
        if name and call.is_complete and (text or name != call.name):
            return None  # another call that forgot its id
        if (
            index is None
            and not provider_id
            and name != call.name
            and self.assembler.has_tool(name)
            and self.assembler.has_tool(call.name)
        ):
            return None  # the same, without arguments
        return call

    def _read_usage(self, used: Mapping[str, Any]) -> None:
        prompt_details = _mapping(used.get("prompt_tokens_details"))
        completion_details = _mapping(used.get("completion_tokens_details"))
        prompt, completion = token_count(used.get("prompt_tokens")), token_count(used.get("completion_tokens"))
        read = token_count(
            prompt_details.get("cached_tokens") or used.get("prompt_cache_hit_tokens") or used.get("cached_tokens")
        )  # OpenAI; DeepSeek; Moonshot
        wrote = token_count(prompt_details.get("cache_write_tokens"))  # OpenRouter
        thought = token_count(completion_details.get("reasoning_tokens"))
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
            self.metadata["cost"] = used["cost"]  # OpenRouter's, in dollars


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


# ---------------------------------------------------------------------- requests

FIXED_TEMPERATURE = re.compile(r"^(o\d|gpt-[5-9])(?!.*chat)")
"""OpenAI's reasoning models: they refuse a temperature."""
MAX_ID_LENGTH = 40
"""Characters of a call's id, for OpenAI."""
MISTRAL_ID = re.compile(r"^[a-zA-Z0-9]{9}$")
"""The only ids that Mistral takes."""
UNCHANGED_OPTIONS = frozenset(
    {"thinking", "reasoning", "provider", "plugins", "chatTemplateArgs", "chat_template_kwargs"}
)
"""Options whose inner names are the provider's own already."""


class OpenAIAdapter(ProviderAdapter):
    """Chat completions."""

    parser = OpenAIParser

    def __init__(self, provider: Provider, info: ModelInfo, settings: ModelSettings) -> None:
        super().__init__(provider, info, settings)
        self._turn = TurnCache(self._messages)
        self._tools = ToolsCache(_tools)
        self._openai = provider.id == "openai"
        self._mistral = provider.id == "mistral"

    def url(self) -> str:
        """The address of requests."""
        return f"{self.provider.url}/chat/completions"

    def headers(self, key: Key | None) -> dict[str, str]:
        """The headers of a request, with the key."""
        return {"authorization": f"Bearer {key.value}"} if key else {}

    def body(self, request: Request) -> bytes:
        """A request."""
        options = self.options(request)
        head: dict[str, Any] = {"model": self.api_id, "stream": True, "stream_options": {"include_usage": True}}
        if self.settings.temperature and not (self._openai and FIXED_TEMPERATURE.match(self.api_id)):
            if request.temperature is not None:
                head["temperature"] = request.temperature
            if request.top_p is not None:
                head["top_p"] = request.top_p
        most = request.max_output or self.settings.max_output
        if most:
            head["max_completion_tokens" if self._openai else "max_tokens"] = most
        if self._openai and request.session:
            head["prompt_cache_key"] = request.session
        for name, value in options.items():
            head[snake(name)] = value if name in UNCHANGED_OPTIONS else snake_keys(value)
        messages = [self._turn(turn) for turn in request.turns]
        system = "\n\n".join(paragraph for paragraph in request.system if paragraph)
        if system:
            messages.insert(0, encode({"role": "system", "content": system}))
        parts = {"messages": join_array([message for message in messages if message])}
        if request.tools and self.settings.tools:
            head["tool_choice"] = _tool_choice(request.tool_choice)
            parts["tools"] = self._tools(request.tools)
        return join_members(head, **parts)

    # ------------------------------------------------------------------ turns

    def _messages(self, turn: Turn) -> bytes:
        """A turn's messages, joined by commas."""
        return b",".join(encode(message) for message in self._encode(turn))

    def _encode_user(self, turn: Turn) -> list[dict[str, Any]]:
        content: list[dict[str, Any]] = []
        for piece in turn.pieces:
            if isinstance(piece, TextPiece) and piece.text:
                content.append({"type": "text", "text": piece.text})
            elif isinstance(piece, MediaPiece) and self.accepts(piece):
                content.append(self._encode_media(piece))
            elif isinstance(piece, MediaPiece):
                content.append({"type": "text", "text": self.omission_note(piece)})
        if not content:
            return []
        texts = [entry["text"] for entry in content if entry["type"] == "text"]
        plain = len(texts) == len(content)  # a plain text is understood by every server
        return [{"role": "user", "content": "\n\n".join(texts) if plain else content}]

    def _encode_media(self, media: MediaPiece) -> dict[str, Any]:
        url = f"data:{media.mime};base64,{media.data}"
        if media.mime.startswith("image/"):
            return {"type": "image_url", "image_url": {"url": url}}
        return {"type": "file", "file": {"filename": media.filename or "document.pdf", "file_data": url}}

    def _encode_assistant(self, turn: Turn) -> list[dict[str, Any]]:
        text = "".join(piece.text for piece in turn.pieces if isinstance(piece, TextPiece))
        calls = [
            {
                "id": self.call_id(piece.id),
                "type": "function",
                "function": {"name": wire_name(piece.name), "arguments": encode(piece.arguments).decode()},
            }
            for piece in turn.pieces
            if isinstance(piece, CallPiece)
        ]
        message: dict[str, Any] = {"role": "assistant", "content": text or (None if calls else "")}
        if self.is_own(turn):
            message.update(_reasoning(turn))
        if calls:
            message["tool_calls"] = calls
        return [message] if text or calls else []

    def _encode_results(self, turn: Turn) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = []
        shown: list[dict[str, Any]] = []
        for piece, text, media in self._each_result(turn):
            content: Any = text
            if media and self.info.media_in_results:
                content = [{"type": "text", "text": text}, *media]
            else:
                shown += media
            messages.append({"role": "tool", "tool_call_id": self.call_id(piece.call_id), "content": content})
        if shown:
            messages.append({"role": "user", "content": [{"type": "text", "text": ATTACHED}, *shown]})
        return messages

    def call_id(self, id: str) -> str:
        """A call's id as this provider takes it; the same for the call and its result."""
        if self._mistral and not MISTRAL_ID.match(id):
            return hashlib.sha256(id.encode()).hexdigest()[:9]
        if self._openai and len(id) > MAX_ID_LENGTH:
            return f"call_{hashlib.sha256(id.encode()).hexdigest()[:32]}"
        return id


def _reasoning(turn: Turn) -> dict[str, Any]:
    """The model's reasoning, in the field that it came in."""
    fields: dict[str, str] = {}
    details: list[Any] = []
    for piece in turn.pieces:
        if not isinstance(piece, ReasoningPiece):
            continue
        own = (piece.metadata or {}).get("openai")
        if not isinstance(own, dict):
            continue
        if isinstance(own.get("field"), str):
            fields[own["field"]] = fields.get(own["field"], "") + piece.text
        if isinstance(own.get("reasoning_details"), list):
            details += own["reasoning_details"]
    return {**fields, "reasoning_details": details} if details else {**fields}


def _tools(tools: Sequence[ToolSpec]) -> bytes:
    return encode(
        [
            {
                "type": "function",
                "function": {
                    "name": wire_name(tool.name),
                    "description": tool.description,
                    "parameters": schema_of(tool),
                },
            }
            for tool in tools
        ]
    )


def _tool_choice(choice: str) -> Any:
    if choice in ("auto", "none", "required"):
        return choice
    return {"type": "function", "function": {"name": wire_name(choice)}}
