"""Sessions as OpenTelemetry spans: to any exporter there is, or into a file of OTLP JSON."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import ToolError
from ...core.sessions import Session
from .exporting import write_text
from .fitting import fitted
from .reading import EXTRA, read
from .spans import Span, Told, spans_of

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

    from ...core.workspace import Workspace

SCOPE = "opencode_jupyter"
DEEPEST = 10
"""Levels of sessions begun by sessions that are followed."""


async def session_spans(workspace: Workspace, session: str | Session, *, content: bool = False) -> list[Span]:
    """The spans of a session and of those that it began (`spans.spans_of`).

    Raises:
        UnknownSessionError: there is no such session.
    """
    told = await _told(workspace, session if isinstance(session, str) else session.id, DEEPEST)
    return await asyncio.to_thread(lambda: spans_of(told, content=content))


async def export_otlp(
    workspace: Workspace, session: str | Session, path: str | os.PathLike[str], *, content: bool = False
) -> Path:
    """Write a session's spans as OTLP JSON, which OpenTelemetry's collectors read from files. Needs no extra.

    Args:
        workspace: whose session.
        session: the session, or its id.
        path: the file; one that is there is replaced as a whole.
        content: also what was said, called and answered.

    Raises:
        UnknownSessionError: there is no such session.
        ToolError: the file can't be written.
    """
    spans = await session_spans(workspace, session, content=content)
    return await asyncio.to_thread(lambda: write_text(path, json.dumps(otlp(spans)) + "\n"))


async def send(
    workspace: Workspace, session: str | Session, exporter: SpanExporter | None = None, *, content: bool = False
) -> int:
    """Give a session's spans to an exporter.

    Args:
        workspace: whose session.
        session: the session, or its id.
        exporter: any of OpenTelemetry's; left out: OTLP over HTTP, as the ``OTEL_EXPORTER_OTLP_*`` variables say.
        content: also what was said, called and answered.

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
            {"resource": resource, "scopeSpans": [{"scope": {"name": SCOPE}, "spans": [_span(one) for one in spans]}]}
        ]
    }


def _span(span: Span) -> dict[str, Any]:
    made: dict[str, Any] = {
        "traceId": span.trace,
        "spanId": span.id,
        "name": span.name,
        "kind": 3 if span.client else 1,  # SPAN_KIND_CLIENT, SPAN_KIND_INTERNAL
        "startTimeUnixNano": str(span.start * 1_000_000),
        "endTimeUnixNano": str(span.end * 1_000_000),
        "attributes": _pairs(span.attributes),
        "status": {"code": 2, "message": span.error} if span.error else {},
    }
    return {**made, "parentSpanId": span.parent} if span.parent else made


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
        return {"arrayValue": {"values": [_value(one) for one in value]}}
    return {"stringValue": str(value)}


def _send(spans: list[Span], exporter: Any) -> int:
    try:
        trace = importlib.import_module("opentelemetry.sdk.trace")
        export = importlib.import_module("opentelemetry.sdk.trace.export")
        api = importlib.import_module("opentelemetry.trace")
        resources = importlib.import_module("opentelemetry.sdk.resources")
        util = importlib.import_module("opentelemetry.sdk.util.instrumentation")
        if exporter is None:
            http = importlib.import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
            exporter = http.OTLPSpanExporter()
    except ImportError as error:
        need = "pip install 'opencode-jupyter[otel]'"
        raise ToolError(f"Sending spans needs OpenTelemetry ({error}): {need}. A file needs nothing.") from None
    resource = resources.Resource.create({"service.name": SCOPE})
    scope = util.InstrumentationScope(SCOPE)

    def context(span: Span, id: str) -> Any:
        flags = api.TraceFlags(api.TraceFlags.SAMPLED)
        return api.SpanContext(int(span.trace, 16), int(id, 16), is_remote=False, trace_flags=flags)

    made = [
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
    if exporter.export(made) is not export.SpanExportResult.SUCCESS:
        raise ToolError(f"{type(exporter).__name__} could not send the {len(made)} spans; see its log for the reason.")
    return len(made)


async def _told(workspace: Workspace, id: str, depth: int) -> Told:
    info, messages = workspace.masked(await read(workspace, id))
    extras = {part["id"]: part[EXTRA] for message in messages for part in message["parts"] if EXTRA in part}
    whole = fitted(info, messages)  # so that every key that is looked at is there
    for message in whole["messages"]:
        for part in message["parts"]:
            if part["id"] in extras:
                part[EXTRA] = extras[part["id"]]
    children = {}
    if depth and workspace.store is not None:
        for child in await workspace.store.children(id):
            children[child["id"]] = await _told(workspace, child["id"], depth - 1)
    return Told(whole["info"], whole["messages"], children)
