"""Anthropic's messages: requests and answers."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ModelError
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
    snake_keys,
    token_count,
    wire_name,
)
from .settings import ModelSettings, Provider

# ---------------------------------------------------------------------- answers

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

    def __init__(self, assembler: EventAssembler) -> None:
        super().__init__(assembler)
        self._calls: dict[int, OpenCall] = {}
        self._inputs: dict[int, Any] = {}
        self._reasoning_blocks: dict[int, dict[str, Any]] = {}
        self._counts: dict[str, Any] = {}

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
            self._read_usage((value.get("message") or {}).get("usage"))
        elif kind == "message_delta":
            self._read_usage(value.get("usage"))
            self._read_reason((value.get("delta") or {}).get("stop_reason"))
        elif kind == "message_stop":
            self.finished = self.closed = True
            self.assembler.end_all()

    def feed_complete(self, value: Mapping[str, Any]) -> None:
        """An answer that is no stream."""
        for at, block in enumerate(value.get("content") or ()):
            self._start(at, block)
            self._stop(at)
        self._read_usage(value.get("usage"))
        self._read_reason(value.get("stop_reason"))
        self.finished = self.closed = True

    # ------------------------------------------------------------------ blocks

    def _start(self, index: int, block: Mapping[str, Any]) -> None:
        kind = block.get("type")
        if kind == "text":
            self.assembler.end_text()  # each block is a part of its own
            self.assembler.add_text(block.get("text") or "")
        elif kind == "thinking":
            self._reasoning_blocks[index] = {"signature": block.get("signature") or ""}
            self.assembler.add_reasoning(block.get("thinking") or "", begin=True)
        elif kind == "redacted_thinking":
            self._reasoning_blocks[index] = {"redactedData": block.get("data") or ""}
            self.assembler.add_reasoning("", begin=True)
        elif kind == "tool_use":
            call = self.assembler.start_call(str(block.get("id") or ""), str(block.get("name") or ""))
            self._calls[index] = call
            self._inputs[index] = block.get("input")

    def _delta(self, index: int, delta: Mapping[str, Any]) -> None:
        kind = delta.get("type")
        if kind == "text_delta":
            self.assembler.add_text(delta.get("text") or "")
        elif kind == "input_json_delta":
            if index in self._calls:
                self.assembler.add_arguments(self._calls[index], delta.get("partial_json") or "")
        elif kind == "thinking_delta":
            self.assembler.add_reasoning(delta.get("thinking") or "")
        elif kind == "signature_delta" and index in self._reasoning_blocks:
            reasoning = self._reasoning_blocks[index]
            reasoning["signature"] = reasoning.get("signature", "") + delta.get("signature", "")

    def _stop(self, index: int) -> None:
        if index in self._calls:
            call = self._calls.pop(index)
            arguments = self._inputs.pop(index)
            if arguments and not call.arguments:
                self.assembler.add_arguments(call, json.dumps(arguments, ensure_ascii=False))  # all in one piece
            self.assembler.end_call(call)
        elif index in self._reasoning_blocks:
            metadata = {key: value for key, value in self._reasoning_blocks.pop(index).items() if value}
            self.assembler.end_reasoning({"anthropic": metadata} if metadata else None)
        else:
            self.assembler.end_text()

    # ------------------------------------------------------------------ the end

    def _read_reason(self, reason: Any) -> None:
        if reason:
            self.reason = REASONS.get(str(reason), "other")

    def _read_usage(self, used: Any) -> None:
        """Take over counts; the later ones are sums, not additions."""
        if not isinstance(used, Mapping):
            return
        self._counts.update({key: value for key, value in used.items() if value is not None})
        details = self._counts.get("output_tokens_details")
        thought = token_count(details.get("thinking_tokens")) if isinstance(details, Mapping) else 0
        self.usage = Usage(
            input=token_count(self._counts.get("input_tokens")),
            output=max(0, token_count(self._counts.get("output_tokens")) - thought),
            reasoning=thought,
            cache_read=token_count(self._counts.get("cache_read_input_tokens")),
            cache_write=token_count(self._counts.get("cache_creation_input_tokens")),
        )


# ---------------------------------------------------------------------- requests

VERSION = "2023-06-01"
BETA = "interleaved-thinking-2025-05-14,fine-grained-tool-streaming-2025-05-14"
"""Thoughts between calls, and arguments that stream as they are written; as OpenCode asks for them."""
DEFAULT_OUTPUT = 32_000
"""Tokens of an answer by default: the API requires a number. OpenCode's."""
OUTPUT_LIMITS = (("claude-3-5-", 8192), ("claude-3-7-", 64_000), ("claude-3-", 4096), ("claude-2", 4096))
"""Models that take less (Anthropic's table of models)."""
CACHE_MARK = b',"cache_control":{"type":"ephemeral"}}'
"""On a block, it makes the provider cache the request up to there."""
_BAD_ID = re.compile(r"[^a-zA-Z0-9_-]")


@dataclass(frozen=True, slots=True)
class EncodedTurn:
    """A turn's content, encoded.

    Attributes:
        role: ``user`` or ``assistant``.
        whole: the blocks, joined by commas.
        marked: the same with a cache mark on the last block that can bear one; the same as `whole` if none can.
    """

    role: str
    whole: bytes
    marked: bytes


class AnthropicAdapter(ProviderAdapter):
    """Messages."""

    parser = AnthropicParser

    def __init__(self, provider: Provider, info: ModelInfo, settings: ModelSettings) -> None:
        super().__init__(provider, info, settings)
        self._turn = TurnCache(self._blocks)
        self._tools = ToolsCache(_tools)

    def url(self) -> str:
        """The address of requests."""
        return f"{self.provider.url}/messages"

    def headers(self, key: Key | None) -> dict[str, str]:
        """The headers of a request, with the key."""
        headers = {"anthropic-version": VERSION, "anthropic-beta": BETA}
        if key is not None and key.source == "ANTHROPIC_AUTH_TOKEN":
            headers["authorization"] = f"Bearer {key.value}"
        elif key is not None:
            headers["x-api-key"] = key.value
        return headers

    def body(self, request: Request) -> bytes:
        """A request."""
        options = snake_keys(self.options(request))
        head: dict[str, Any] = {"model": self.api_id, "stream": True, "max_tokens": self._max_tokens(request)}
        thinking = options.get("thinking")
        thinks = isinstance(thinking, Mapping) and thinking.get("type") in ("enabled", "adaptive")
        if thinks and isinstance(thinking.get("budget_tokens"), int):
            whole = head["max_tokens"] + thinking["budget_tokens"]  # the limit counts thoughts too
            head["max_tokens"] = min(whole, self.info.output) if self.info.output else whole
        if self.settings.temperature and not thinks:
            if request.temperature is not None:
                head["temperature"] = request.temperature
            elif request.top_p is not None:  # newer models take one of the two
                head["top_p"] = request.top_p
        head.update(options)
        if thinks:
            _check_thinking_budget(thinking.get("budget_tokens"), head["max_tokens"], self.info.full)
        parts = {"messages": self._messages(request.turns)}
        system = [{"type": "text", "text": text} for text in request.system if text.strip()]
        for block in system[:2]:
            block["cache_control"] = {"type": "ephemeral"}  # type: ignore[assignment]
        if system:
            head["system"] = system
        if request.tools and self.settings.tools:
            parts["tools"] = self._tools(request.tools)
            head["tool_choice"] = _tool_choice(request.tool_choice, thinks)
        return join_members(head, **parts)

    def _max_tokens(self, request: Request) -> int:
        limit = next((limit for start, limit in OUTPUT_LIMITS if self.api_id.startswith(start)), self.info.output)
        requested = request.max_output or min(DEFAULT_OUTPUT, limit or DEFAULT_OUTPUT)
        return min(requested, limit) if limit else requested

    # ------------------------------------------------------------------ turns

    def _messages(self, turns: Sequence[Turn]) -> bytes:
        """The messages; those of one role in a row are put together, and the last two bear cache marks."""
        groups: list[tuple[str, list[EncodedTurn]]] = []
        for turn in turns:
            blocks = self._turn(turn)
            if not blocks.whole:
                continue
            if groups and groups[-1][0] == blocks.role:
                groups[-1][1].append(blocks)
            else:
                groups.append((blocks.role, [blocks]))
        messages = []
        for at, (role, content) in enumerate(groups):
            last = content[-1].marked if at >= len(groups) - 2 else content[-1].whole
            inner = b",".join([*(blocks_of_turn.whole for blocks_of_turn in content[:-1]), last])
            messages.append(b'{"role":"' + role.encode() + b'","content":[' + inner + b"]}")
        return join_array(messages)

    def _blocks(self, turn: Turn) -> EncodedTurn:
        encoded = [encode(block) for block in self._encode(turn) if block is not None]
        marked = list(encoded)
        if marked and not marked[-1].startswith((b'{"type":"thinking"', b'{"type":"redacted_thinking"')):
            marked[-1] = marked[-1][:-1] + CACHE_MARK
        role = "assistant" if turn.role == "assistant" else "user"
        return EncodedTurn(role, b",".join(encoded), b",".join(marked))

    def _encode_media(self, media: MediaPiece) -> dict[str, Any]:
        source = {"type": "base64", "media_type": media.mime, "data": media.data}
        if media.mime.startswith("image/"):
            return {"type": "image", "source": source}
        titled = {"title": media.filename} if media.filename else {}
        return {"type": "document", "source": source, **titled}

    def _encode_user(self, turn: Turn) -> list[dict[str, Any] | None]:
        out: list[dict[str, Any] | None] = []
        for piece in turn.pieces:
            if not isinstance(piece, MediaPiece):
                out.append(_text_block(piece))
            elif self.accepts(piece):
                out.append(self._encode_media(piece))
            else:
                out.append({"type": "text", "text": self.omission_note(piece)})
        return out

    def _encode_assistant(self, turn: Turn) -> list[dict[str, Any] | None]:
        out: list[dict[str, Any] | None] = []
        for piece in turn.pieces:
            if isinstance(piece, TextPiece):
                out.append(_text_block(piece))
            elif isinstance(piece, ReasoningPiece) and self.is_own(turn):
                out.append(_thinking_block(piece))
            elif isinstance(piece, CallPiece):
                name, call_id = wire_name(piece.name), wire_id(piece.id)
                out.append({"type": "tool_use", "id": call_id, "name": name, "input": piece.arguments})
        return out

    def _encode_results(self, turn: Turn) -> list[dict[str, Any] | None]:
        out: list[dict[str, Any] | None] = []
        attached: list[dict[str, Any] | None] = []
        for piece, text, media in self._each_result(turn):
            block: dict[str, Any] = {"type": "tool_result", "tool_use_id": wire_id(piece.call_id)}
            if media and self.info.media_in_results:
                block["content"] = [*([{"type": "text", "text": text}] if text.strip() else []), *media]
            elif text:
                block["content"] = text
            if piece.failed:
                block["is_error"] = True
            out.append(block)
            if media and not self.info.media_in_results:
                attached += media
        if attached:
            out += [{"type": "text", "text": ATTACHED}, *attached]
        return out


def _check_thinking_budget(budget: Any, most: Any, model: str) -> None:
    """Refuse a budget for thoughts that leaves nothing of the answer's limit, which counts them too: the API would."""
    if isinstance(budget, int) and isinstance(most, int) and budget >= most:
        raise ModelError(
            f"thinking.budgetTokens is {budget:,}, and an answer of {model} may have {most:,} tokens, with thoughts. "
            "Set a smaller budget, or raise limit.output in the model's entry",
            "setup",
            provider=model.partition(":")[0],
        )


def wire_id(id: str) -> str:
    """A call's id in the characters that Anthropic takes; two ids never become one."""
    plain = _BAD_ID.sub("_", id)
    return id if plain == id and id else f"{plain[:40]}_{hashlib.sha256(id.encode()).hexdigest()[:8]}"


def _text_block(piece: Any) -> dict[str, Any] | None:
    """A block of text; None for blank text, which the API refuses."""
    if not isinstance(piece, TextPiece) or not piece.text.strip():
        return None
    return {"type": "text", "text": piece.text}


def _thinking_block(piece: ReasoningPiece) -> dict[str, Any] | None:
    """A thought with its signature; None without one: the API refuses it then."""
    own = (piece.metadata or {}).get("anthropic")
    if not isinstance(own, Mapping):
        return None
    if own.get("signature"):
        return {"type": "thinking", "thinking": piece.text, "signature": own["signature"]}
    if own.get("redactedData"):
        return {"type": "redacted_thinking", "data": own["redactedData"]}
    return None


def _tools(tools: Sequence[ToolSpec]) -> bytes:
    return encode(
        [
            {
                "name": wire_name(tool.name),
                "description": tool.description,
                "input_schema": schema_of(tool),
            }
            for tool in tools
        ]
    )


def _tool_choice(choice: str, thinks: bool) -> dict[str, Any]:
    if choice in ("auto", "none"):
        return {"type": choice}
    if thinks:
        return {"type": "auto"}  # no tool can be forced on a model that thinks
    return {"type": "any"} if choice == "required" else {"type": "tool", "name": wire_name(choice)}
