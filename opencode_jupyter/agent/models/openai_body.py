"""Requests in the form of OpenAI's chat completions, which most providers and local servers speak."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from ..model import ModelInfo, Request, ToolSpec
from ..turns import CallPiece, MediaPiece, ReasoningPiece, TextPiece, Turn
from .encoding import PerTools, PerTurn, encode, join_array, join_members
from .keys import Key
from .openai_stream import OpenAIParser
from .provider_adapter import ATTACHED, ProviderAdapter, schema_of, snake, snake_keys, wire_name
from .settings import ModelSettings, Provider

FIXED_TEMPERATURE = re.compile(r"^(o\d|gpt-[5-9])(?!.*chat)")
"""OpenAI's reasoning models: they refuse a temperature."""
LONGEST_ID = 40
"""Characters of a call's id, for OpenAI."""
MISTRAL_ID = re.compile(r"^[a-zA-Z0-9]{9}$")
"""The only ids that Mistral takes."""
NO_FIELD = frozenset({"thinking", "reasoning", "provider", "plugins", "chatTemplateArgs", "chat_template_kwargs"})
"""Options whose inner names are the provider's own already."""


class OpenAIAdapter(ProviderAdapter):
    """Chat completions."""

    parser = OpenAIParser

    def __init__(self, provider: Provider, info: ModelInfo, settings: ModelSettings) -> None:
        super().__init__(provider, info, settings)
        self._turn = PerTurn(self._messages)
        self._tools = PerTools(_tools)
        self._openai = provider.id == "openai"
        self._mistral = provider.id == "mistral"

    def url(self) -> str:
        """Where requests go."""
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
        most = request.max_output or self.settings.most
        if most:
            head["max_completion_tokens" if self._openai else "max_tokens"] = most
        if self._openai and request.session:
            head["prompt_cache_key"] = request.session
        for name, value in options.items():
            head[snake(name)] = value if name in NO_FIELD else snake_keys(value)
        messages = [self._turn(turn) for turn in request.turns]
        system = "\n\n".join(paragraph for paragraph in request.system if paragraph)
        if system:
            messages.insert(0, encode({"role": "system", "content": system}))
        parts = {"messages": join_array([message for message in messages if message])}
        if request.tools and self.settings.tools:
            head["tool_choice"] = _choice(request.tool_choice)
            parts["tools"] = self._tools(request.tools)
        return join_members(head, **parts)

    # ------------------------------------------------------------------ turns

    def _messages(self, turn: Turn) -> bytes:
        """A turn's messages, joined by commas."""
        return b",".join(encode(message) for message in self._encode(turn))

    def _user(self, turn: Turn) -> list[dict[str, Any]]:
        content: list[dict[str, Any]] = []
        for piece in turn.pieces:
            if isinstance(piece, TextPiece) and piece.text:
                content.append({"type": "text", "text": piece.text})
            elif isinstance(piece, MediaPiece) and self.takes(piece):
                content.append(self._media(piece))
            elif isinstance(piece, MediaPiece):
                content.append({"type": "text", "text": self.left_out(piece)})
        if not content:
            return []
        texts = [entry["text"] for entry in content if entry["type"] == "text"]
        plain = len(texts) == len(content)  # a plain text is understood by every server
        return [{"role": "user", "content": "\n\n".join(texts) if plain else content}]

    def _media(self, media: MediaPiece) -> dict[str, Any]:
        url = f"data:{media.mime};base64,{media.data}"
        if media.mime.startswith("image/"):
            return {"type": "image_url", "image_url": {"url": url}}
        return {"type": "file", "file": {"filename": media.filename or "document.pdf", "file_data": url}}

    def _assistant(self, turn: Turn) -> list[dict[str, Any]]:
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

    def _results(self, turn: Turn) -> list[dict[str, Any]]:
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
        if self._openai and len(id) > LONGEST_ID:
            return f"call_{hashlib.sha256(id.encode()).hexdigest()[:32]}"
        return id


def _reasoning(turn: Turn) -> dict[str, Any]:
    """What the model thought, in the field that it came in."""
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


def _choice(choice: str) -> Any:
    if choice in ("auto", "none", "required"):
        return choice
    return {"type": "function", "function": {"name": wire_name(choice)}}


OpenAIWire = OpenAIAdapter
"""The former name, which saved notebooks import."""
