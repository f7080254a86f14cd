"""A session as spans, after OpenTelemetry's semantic conventions for generative AI.

``invoke_agent`` for each request of the user's, in it ``chat`` for each answer of the model's and ``execute_tool`` for
each call; what a task's child session did is inside the call that began it. Times are those of the parts. Message
content is only included on request.

The conventions: https://opentelemetry.io/docs/specs/semconv/gen-ai/ (names checked with
opentelemetry-semantic-conventions 0.66b2).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import ToolError
from ...core.sessions import Session
from ..events import Usage
from .exporting import complete_session, write_text
from .session_data import EXTRA, read

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

    from ...core.host import ToolHost


Data = dict[str, Any]
Attribute = str | bool | int | float | list[str]

PROVIDERS = {
    "google": "gcp.gemini",
    "google-vertex": "gcp.vertex_ai",
    "amazon-bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
"""Providers whose name in the conventions is another one."""


@dataclass(slots=True)
class Span:
    """One span.

    Attributes:
        id: 16 hexadecimal digits, made from the id of its message or part: the same at every export.
        trace: 32 hexadecimal digits.
        parent: the span it is in; "" for the outermost.
        name: such as ``chat gpt-5``.
        start: Unix milliseconds.
        end: Unix milliseconds.
        client: it is a request to another service (a model).
        attributes: what is known of it.
        error: why it failed; "" if it did not.
    """

    id: str
    trace: str
    parent: str
    name: str
    start: int
    end: int
    client: bool = False
    attributes: dict[str, Attribute] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True)
class SessionTree:
    """A session, its messages, and the sessions it began, by id."""

    info: Data
    messages: Sequence[Data]
    children: Mapping[str, SessionTree] = field(default_factory=dict)


def spans_of(tree: SessionTree, *, content: bool = False) -> list[Span]:
    """The spans of a session and of those that it began, outer ones first.

    `content` includes texts, arguments and outputs, which may be personal, and large.
    """
    return _Tracer(_hex_id(tree.info["id"], 32), content).session(tree, "")


class _Tracer:
    def __init__(self, trace: str, content: bool) -> None:
        self._trace = trace
        self._content = content

    def session(self, tree: SessionTree, parent: str) -> list[Span]:
        out: list[Span] = []
        turn: list[Data] = []
        for message in tree.messages:
            if message["info"].get("role") == "user" and turn:
                out += self._turn(turn, tree, parent)
                turn = []
            turn.append(message)
        return out + (self._turn(turn, tree, parent) if turn else [])

    def _turn(self, messages: list[Data], tree: SessionTree, parent: str) -> list[Span]:
        """One request of the user's and the answers to it."""
        first = messages[0]["info"]
        answers = [message for message in messages if message["info"].get("role") != "user"]
        agent = str((answers or messages)[0]["info"].get("agent") or "")
        request_span = Span(
            _hex_id(first["id"], 16),
            self._trace,
            parent,
            f"invoke_agent {agent}".strip(),
            first["time"]["created"],
            first["time"]["created"],
            attributes={
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": agent,
                "gen_ai.conversation.id": tree.info["id"],
            },
        )
        if answers:
            last = answers[-1]["info"]
            request_span.attributes["gen_ai.provider.name"] = _provider(last)
            request_span.attributes["gen_ai.request.model"] = str(last.get("modelID") or "")
        if self._content:
            request_span.attributes["gen_ai.input.messages"] = _json(
                [_message_content(m) for m in messages if m not in answers]
            )
            request_span.attributes["gen_ai.output.messages"] = _json([_message_content(m) for m in answers[-1:]])
        inner: list[Span] = []
        for message in answers:
            inner.append(self._chat(message, tree, request_span.id))
            request_span.error = request_span.error or inner[-1].error
            inner += self._calls(message, tree, request_span.id)
        _add_usage(request_span, [message["info"] for message in answers])
        request_span.end = max([request_span.start, *(span.end for span in inner)])
        return [request_span, *inner]

    def _chat(self, message: Data, tree: SessionTree, parent: str) -> Span:
        info = message["info"]
        model = str(info.get("modelID") or "")
        start = info["time"]["created"]
        span = Span(
            _hex_id(info["id"], 16),
            self._trace,
            parent,
            f"chat {model}".strip(),
            start,
            max(start, _end_of_answer(message)),
            client=True,
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": _provider(info),
                "gen_ai.request.model": model,
                "gen_ai.response.id": info["id"],
                "gen_ai.conversation.id": tree.info["id"],
            },
        )
        if info.get("finish"):
            span.attributes["gen_ai.response.finish_reasons"] = [str(info["finish"])]
        if info.get("error"):
            span.error = str((info["error"].get("data") or {}).get("message") or info["error"].get("name"))
            span.attributes["error.type"] = str(info["error"].get("name") or "_OTHER")
        _add_usage(span, [info])
        if info.get("cost"):
            span.attributes["opencode.cost"] = float(info["cost"])
        if self._content:
            span.attributes["gen_ai.output.messages"] = _json([_message_content(message)])
        return span

    def _calls(self, message: Data, tree: SessionTree, parent: str) -> list[Span]:
        out: list[Span] = []
        part_ids = {part["id"] for part in message["parts"]}
        for part in message["parts"]:
            if part["type"] != "tool":
                continue
            caller = str((part.get(EXTRA) or {}).get("parentID") or "")
            span = self._call(part, message["info"], tree, _hex_id(caller, 16) if caller in part_ids else parent)
            out.append(span)
            child_id = (part["state"].get("metadata") or {}).get("sessionId")
            child = tree.children.get(child_id) if isinstance(child_id, str) else None
            if child is not None:
                out += self.session(child, span.id)
        return out

    def _call(self, part: Data, info: Data, tree: SessionTree, parent: str) -> Span:
        state = part["state"]
        times = state.get("time") or {}
        start = times.get("start") or info["time"]["created"]
        span = Span(
            _hex_id(part["id"], 16),
            self._trace,
            parent,
            f"execute_tool {part['tool']}",
            start,
            max(start, times.get("end") or start),
            attributes={
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": part["tool"],
                "gen_ai.tool.call.id": part["callID"],
                "gen_ai.tool.type": "function",
                "gen_ai.conversation.id": tree.info["id"],
            },
        )
        if state["status"] == "error":
            span.error = str(state.get("error") or "error") if self._content else "error"
            span.attributes["error.type"] = "tool_error"
        waited = (part.get(EXTRA) or {}).get("waited")
        if waited:
            span.attributes["opencode.waited"] = float(waited)
        if self._content:
            span.attributes["gen_ai.tool.call.arguments"] = _json(state.get("input"))
            if state["status"] == "completed":
                span.attributes["gen_ai.tool.call.result"] = str(state.get("output") or "")
        return span


def _end_of_answer(message: Data) -> int:
    """When the model's answer was complete: the end of its last text, or the start of its last call."""
    moments: list[int] = []
    for part in message["parts"]:
        if part["type"] == "tool":
            moments.append(((part["state"].get("time") or {}).get("start")) or 0)
        else:
            moments.append((part.get("time") or {}).get("end") or 0)
    return max(moments, default=0) or message["info"]["time"].get("completed") or 0


def _add_usage(span: Span, infos: list[Data]) -> None:
    """Tokens, as the conventions count them: what a cache held is part of the input, reasoning of the output."""
    usage = sum((Usage.from_wire(info.get("tokens")) for info in infos), Usage())
    span.attributes["gen_ai.usage.input_tokens"] = usage.input + usage.cache_read + usage.cache_write
    span.attributes["gen_ai.usage.output_tokens"] = usage.output + usage.reasoning
    if usage.cache_read:
        span.attributes["gen_ai.usage.cache_read.input_tokens"] = usage.cache_read
    if usage.cache_write:
        span.attributes["gen_ai.usage.cache_creation.input_tokens"] = usage.cache_write


def _message_content(message: Data) -> Data:
    """A message in the conventions' form."""
    parts: list[Data] = []
    for part in message["parts"]:
        if part["type"] in ("text", "reasoning"):
            parts.append({"type": part["type"], "content": part.get("text") or ""})
        elif part["type"] == "tool":
            call = {"type": "tool_call", "id": part["callID"], "name": part["tool"]}
            parts.append({**call, "arguments": part["state"].get("input")})
        elif part["type"] == "file":
            parts.append({"type": "uri", "mime_type": part.get("mime"), "uri": part.get("filename") or "file"})
    info = message["info"]
    finish = {"finish_reason": info["finish"]} if info.get("finish") else {}
    return {"role": info.get("role"), "parts": parts, **finish}


def _provider(info: Data) -> str:
    name = str(info.get("providerID") or "")
    return PROVIDERS.get(name, name)


def _hex_id(id: str, count: int) -> str:
    return hashlib.sha256(id.encode()).hexdigest()[:count]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


SCOPE = "opencode_jupyter"
MAX_DEPTH = 10
"""Levels of child sessions that are followed."""


async def session_spans(workspace: ToolHost, session: str | Session, *, content: bool = False) -> list[Span]:
    """The spans of a session and of those that it began (`spans.spans_of`).

    Raises:
        UnknownSessionError: there is no such session.
    """
    tree = await _read_tree(workspace, session if isinstance(session, str) else session.id, MAX_DEPTH)
    return await asyncio.to_thread(lambda: spans_of(tree, content=content))


async def export_otlp(
    workspace: ToolHost, session: str | Session, path: str | os.PathLike[str], *, content: bool = False
) -> Path:
    """Write a session's spans as OTLP JSON, which OpenTelemetry's collectors read from files. Needs no extra.

    An existing file is replaced as a whole. `content` is as in `spans_of`.

    Raises:
        UnknownSessionError: there is no such session.
        ToolError: the file can't be written.
    """
    spans = await session_spans(workspace, session, content=content)
    return await asyncio.to_thread(lambda: write_text(path, json.dumps(otlp(spans)) + "\n"))


async def send(
    workspace: ToolHost, session: str | Session, exporter: SpanExporter | None = None, *, content: bool = False
) -> int:
    """Give a session's spans to an exporter.

    Without `exporter`, OTLP over HTTP is used, as the ``OTEL_EXPORTER_OTLP_*`` variables say. `content` is as in
    `spans_of`.

    Returns:
        How many spans were sent.

    Raises:
        UnknownSessionError: there is no such session.
        ToolError: OpenTelemetry is not installed, or the exporter could not send them.
    """
    spans = await session_spans(workspace, session, content=content)
    return await asyncio.to_thread(_send, spans, exporter)


def otlp(spans: list[Span]) -> dict[str, Any]:
    """Spans in OTLP's JSON form (opentelemetry-proto, ``TracesData``)."""
    resource = {"attributes": _pairs({"service.name": SCOPE})}
    return {
        "resourceSpans": [
            {"resource": resource, "scopeSpans": [{"scope": {"name": SCOPE}, "spans": [_span(span) for span in spans]}]}
        ]
    }


def _span(span: Span) -> dict[str, Any]:
    wire: dict[str, Any] = {
        "traceId": span.trace,
        "spanId": span.id,
        "name": span.name,
        "kind": 3 if span.client else 1,  # SPAN_KIND_CLIENT, SPAN_KIND_INTERNAL
        "startTimeUnixNano": str(span.start * 1_000_000),
        "endTimeUnixNano": str(span.end * 1_000_000),
        "attributes": _pairs(span.attributes),
        "status": {"code": 2, "message": span.error} if span.error else {},
    }
    return {**wire, "parentSpanId": span.parent} if span.parent else wire


def _pairs(attributes: Any) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": str(value)}


def _send(spans: list[Span], exporter: Any) -> int:
    try:
        from opentelemetry import trace as api
        from opentelemetry.sdk import resources, trace
        from opentelemetry.sdk.trace.export import SpanExportResult
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        if exporter is None:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

            exporter = OTLPSpanExporter()
    except ImportError as error:
        need = "pip install 'opencode-jupyter[otel]'"
        raise ToolError(f"Sending spans needs OpenTelemetry ({error}): {need}. A file needs nothing.") from None
    resource = resources.Resource.create({"service.name": SCOPE})
    scope = InstrumentationScope(SCOPE)

    def context(span: Span, id: str) -> Any:
        flags = api.TraceFlags(api.TraceFlags.SAMPLED)
        return api.SpanContext(int(span.trace, 16), int(id, 16), is_remote=False, trace_flags=flags)

    readable = [
        trace.ReadableSpan(
            span.name,
            context=context(span, span.id),
            parent=context(span, span.parent) if span.parent else None,
            resource=resource,
            attributes=span.attributes,
            kind=api.SpanKind.CLIENT if span.client else api.SpanKind.INTERNAL,
            status=api.Status(api.StatusCode.ERROR, span.error) if span.error else api.Status(),
            start_time=span.start * 1_000_000,
            end_time=span.end * 1_000_000,
            instrumentation_scope=scope,
        )
        for span in spans
    ]
    if exporter.export(readable) is not SpanExportResult.SUCCESS:
        raise ToolError(
            f"{type(exporter).__name__} could not send the {len(readable)} spans; see its log for the reason."
        )
    return len(readable)


async def _read_tree(workspace: ToolHost, id: str, depth: int) -> SessionTree:
    info, messages = workspace.masked(await read(workspace, id))
    extras = {part["id"]: part[EXTRA] for message in messages for part in message["parts"] if EXTRA in part}
    whole = complete_session(info, messages)  # so that every key exists
    for message in whole["messages"]:
        for part in message["parts"]:
            if part["id"] in extras:
                part[EXTRA] = extras[part["id"]]
    children = {}
    if depth and workspace.store is not None:
        for child in await workspace.store.children(id):
            children[child["id"]] = await _read_tree(workspace, child["id"], depth - 1)
    return SessionTree(whole["info"], whole["messages"], children)
