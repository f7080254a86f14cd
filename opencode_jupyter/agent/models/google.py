"""Google's generateContent: requests and answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..events import FinishReason, Usage
from ..model import ModelInfo, Request, ToolSpec
from ..turns import CallPiece, MediaPiece, ReasoningPiece, TextPiece, Turn
from .api_keys import Key
from .event_assembler import EventAssembler
from .provider_adapter import (
    ATTACHED,
    BlockedPromptError,
    MalformedCallError,
    ProviderAdapter,
    ResponseParser,
    ToolsCache,
    TurnCache,
    encode,
    join_array,
    join_members,
    schema_of,
    token_count,
    wire_name,
)
from .settings import ModelSettings, Provider

# ---------------------------------------------------------------------- answers

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

    def __init__(self, assembler: EventAssembler) -> None:
        super().__init__(assembler)
        self._signature: str | None = None

    def feed(self, value: Mapping[str, Any]) -> None:
        """One event of a stream."""
        used = value.get("usageMetadata")
        if isinstance(used, Mapping):
            self._read_usage(used)
        blocked = (value.get("promptFeedback") or {}).get("blockReason")
        if blocked:
            raise BlockedPromptError(str(blocked))
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
            self._end_reasoning()
            if self.reason == "error" and not self.assembler.has_content:
                raise MalformedCallError(str(candidate.get("finishMessage") or reason))
            self.assembler.end_all()

    # ------------------------------------------------------------------ inside

    def _part(self, part: Mapping[str, Any]) -> None:
        signature = part.get("thoughtSignature")
        call = part.get("functionCall")
        if isinstance(call, Mapping):
            self._end_reasoning()
            opened = self.assembler.start_call(str(call.get("id") or ""), str(call.get("name") or ""))
            if signature:
                opened.metadata = {"google": {"thoughtSignature": signature}}
            self.assembler.add_arguments(opened, json.dumps(call.get("args") or {}, ensure_ascii=False))
            self.assembler.end_call(opened)
            return
        text = part.get("text")
        if not isinstance(text, str):
            return
        if part.get("thought"):
            self._signature = signature or self._signature
            self.assembler.add_reasoning(text)
        elif text:
            self._end_reasoning()
            self.assembler.add_text(text)

    def _end_reasoning(self) -> None:
        metadata = {"google": {"thoughtSignature": self._signature}} if self._signature else None
        self.assembler.end_reasoning(metadata)
        self._signature = None

    def _read_usage(self, used: Mapping[str, Any]) -> None:
        read = token_count(used.get("cachedContentTokenCount"))
        total = used.get("totalTokenCount")
        self.usage = Usage(
            input=max(
                0, token_count(used.get("promptTokenCount")) + token_count(used.get("toolUsePromptTokenCount")) - read
            ),
            output=token_count(used.get("candidatesTokenCount")),
            reasoning=token_count(used.get("thoughtsTokenCount")),
            cache_read=read,
            total=int(total) if isinstance(total, int) else None,
        )


# ---------------------------------------------------------------------- requests

REQUEST_OPTIONS = frozenset({"safetySettings", "cachedContent", "labels", "toolConfig"})
"""Options that stand in the request itself; the others belong to its ``generationConfig``."""
NO_SIGNATURE = "skip_thought_signature_validator"
"""What Google's documentation gives for calls that another model made: Gemini 3 refuses a call without a signature."""


class GoogleAdapter(ProviderAdapter):
    """generateContent."""

    parser = GoogleParser

    def __init__(self, provider: Provider, info: ModelInfo, settings: ModelSettings) -> None:
        super().__init__(provider, info, settings)
        self._turn = TurnCache(self._parts)
        self._tools = ToolsCache(_tools)
        self._signs = "gemini-3" in self.api_id or "gemini-4" in self.api_id

    def url(self) -> str:
        """The address of requests."""
        path = self.api_id if "/" in self.api_id else f"models/{self.api_id}"
        return f"{self.provider.url}/{path}:streamGenerateContent?alt=sse"

    def headers(self, key: Key | None) -> dict[str, str]:
        """The headers of a request, with the key."""
        return {"x-goog-api-key": key.value} if key else {}

    def body(self, request: Request) -> bytes:
        """A request."""
        options = self.options(request)
        head: dict[str, Any] = {name: options.pop(name) for name in list(options) if name in REQUEST_OPTIONS}
        config: dict[str, Any] = {}
        if self.settings.temperature and request.temperature is not None:
            config["temperature"] = request.temperature
        if self.settings.temperature and request.top_p is not None:
            config["topP"] = request.top_p
        most = request.max_output or self.settings.max_output
        if most:
            config["maxOutputTokens"] = most
        if self.info.reasons:
            config["thinkingConfig"] = {"includeThoughts": True}
        head["generationConfig"] = {**config, **options}
        system = [{"text": text} for text in request.system if text]
        if system:
            head["systemInstruction"] = {"parts": system}
        parts = {"contents": self._contents(request.turns)}
        if request.tools and self.settings.tools:
            head.setdefault("toolConfig", {"functionCallingConfig": _tool_choice(request.tool_choice)})
            parts["tools"] = self._tools(request.tools)
        return join_members(head, **parts)

    # ------------------------------------------------------------------ turns

    def _contents(self, turns: Sequence[Turn]) -> bytes:
        """The contents; those of one role in a row are put together."""
        groups: list[tuple[bytes, list[bytes]]] = []
        for turn in turns:
            role = b"model" if turn.role == "assistant" else b"user"
            inner = self._turn(turn)
            if inner and groups and groups[-1][0] == role:
                groups[-1][1].append(inner)
            elif inner:
                groups.append((role, [inner]))
        return join_array([b'{"role":"' + role + b'","parts":[' + b",".join(inner) + b"]}" for role, inner in groups])

    def _parts(self, turn: Turn) -> bytes:
        """A turn's parts, joined by commas."""
        return b",".join(encode(part) for part in self._encode(turn))

    def _encode_media(self, media: MediaPiece) -> dict[str, Any]:
        return {"inlineData": {"mimeType": media.mime, "data": media.data}}

    def _encode_user(self, turn: Turn) -> list[dict[str, Any]]:
        out: list[dict[str, Any]] = []
        for piece in turn.pieces:
            if isinstance(piece, TextPiece) and piece.text:
                out.append({"text": piece.text})
            elif isinstance(piece, MediaPiece):
                out.append(self._encode_media(piece) if self.accepts(piece) else {"text": self.omission_note(piece)})
        return out

    def _encode_assistant(self, turn: Turn) -> list[dict[str, Any]]:
        own = self.is_own(turn)
        out: list[dict[str, Any]] = []
        called = False
        for piece in turn.pieces:
            if isinstance(piece, TextPiece) and piece.text:
                out.append({"text": piece.text})
            elif isinstance(piece, ReasoningPiece) and own and piece.text:
                out.append({"text": piece.text, "thought": True, **_signature(piece.metadata)})
            elif isinstance(piece, CallPiece):
                call: dict[str, Any] = {
                    "functionCall": {"name": wire_name(piece.name), "args": piece.arguments},
                    **(_signature(piece.metadata) if own else {}),
                }
                if self._signs and not called and "thoughtSignature" not in call:
                    call["thoughtSignature"] = NO_SIGNATURE  # the first call of a turn must bear one
                called = True
                out.append(call)
        return out

    def _encode_results(self, turn: Turn) -> list[dict[str, Any]]:
        out: list[dict[str, Any]] = []
        attached: list[dict[str, Any]] = []
        for piece, text, media in self._each_result(turn):
            response = {"error": text} if piece.failed else {"output": text}
            out.append({"functionResponse": {"name": wire_name(piece.name), "response": response}})
            attached += media
        if attached:
            out += [{"text": ATTACHED}, *attached]
        return out


def _signature(metadata: dict[str, Any] | None) -> dict[str, Any]:
    own = (metadata or {}).get("google")
    signature = own.get("thoughtSignature") if isinstance(own, dict) else None
    return {"thoughtSignature": signature} if signature else {}


def _tools(tools: Sequence[ToolSpec]) -> bytes:
    declared = []
    for tool in tools:
        function: dict[str, Any] = {"name": wire_name(tool.name), "description": tool.description}
        schema = schema_of(tool)
        if schema.get("properties"):  # a tool without arguments has no schema, or the API refuses it
            function["parametersJsonSchema"] = schema
        declared.append(function)
    return encode([{"functionDeclarations": declared}])


def _tool_choice(choice: str) -> dict[str, Any]:
    if choice == "auto":
        return {"mode": "AUTO"}
    if choice == "none":
        return {"mode": "NONE"}
    return {"mode": "ANY"} if choice == "required" else {"mode": "ANY", "allowedFunctionNames": [wire_name(choice)]}
