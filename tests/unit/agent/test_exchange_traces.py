"""Sessions as events and as spans."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format  # type: ignore[import-untyped]
from hypothesis import given, settings
from opentelemetry.proto.trace.v1 import trace_pb2
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as names
from opentelemetry.semconv.attributes.error_attributes import ERROR_TYPE

from opencode_jupyter import ToolError, Workspace
from opencode_jupyter.agent.exchange import (
    events_of,
    export,
    export_jsonl,
    export_otlp,
    import_,
    send,
    session_spans,
)
from opencode_jupyter.agent.exchange.spans import Span
from tests.support.session_files import RECORDED, recorded, sessions

pytestmark = pytest.mark.anyio
MAIN = "ses_dfd98db4affekMfNpMLLXje2Ns"


def replayed(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The session that events make, applied one by one."""
    info: dict[str, Any] = {}
    messages: dict[str, dict[str, Any]] = {}
    for event in events:
        properties = event["properties"]
        if event["type"].startswith("session."):
            info = properties["info"]
        elif event["type"] == "message.updated":
            messages.setdefault(properties["info"]["id"], {"info": {}, "parts": {}})["info"] = properties["info"]
        else:
            assert event["type"] == "message.part.updated"
            messages[properties["part"]["messageID"]]["parts"][properties["part"]["id"]] = properties["part"]
    return {
        "info": info,
        "messages": [{"info": m["info"], "parts": list(m["parts"].values())} for m in messages.values()],
    }


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
def test_events_make_the_session_again(file: Path) -> None:
    data = json.loads(file.read_text())
    events = events_of(data)
    assert replayed(events) == data
    times = [event["time"] for event in events]
    assert times == sorted(times)


@settings(max_examples=60, deadline=None)
@given(sessions())
def test_events_of_any_session_make_it_again(data: dict[str, Any]) -> None:
    events = events_of(data)
    assert replayed(events) == data
    assert [event["time"] for event in events] == sorted(event["time"] for event in events)


def test_calls_interleave_as_they_did() -> None:
    events = events_of(recorded("session_export_1.18.33"))
    parts = [event["properties"]["part"] for event in events if "part" in event["properties"]]
    states = [(p["tool"], p["state"]["status"]) for p in parts if p["type"] == "tool"]
    grep, glob = states.index(("grep", "running")), states.index(("glob", "running"))
    assert grep < glob < states.index(("grep", "completed")), "glob had begun before grep was over"
    assert ("edit", "error") in states


async def test_events_go_to_a_file_line_by_line(workspace: Workspace, tmp_path: Path) -> None:
    session = await import_(workspace, recorded("picture_task_files"))
    path = await export_jsonl(workspace, session, tmp_path / "events.jsonl")
    lines = path.read_text().splitlines()
    assert replayed([json.loads(line) for line in lines]) == await export(workspace, session)


async def traced(workspace: Workspace, **options: Any) -> list[Span]:
    """The spans of a session with a task, whose child is there, too."""
    for name in ("picture_task_files", "child_of_task"):
        await import_(workspace, recorded(name))
    return await session_spans(workspace, MAIN, **options)


async def test_spans_are_nested_and_in_time(workspace: Workspace) -> None:
    spans = await traced(workspace)
    again = await traced(workspace)
    assert spans == again, "the same ids at every export"
    by_id = {span.id: span for span in spans}
    assert len(by_id) == len(spans) and len({span.trace for span in spans}) == 1
    below: dict[str, list[str]] = {}
    for span in spans:
        below.setdefault(by_id[span.parent].name if span.parent else "", []).append(span.name)
        assert span.end >= span.start
        if span.parent:
            assert by_id[span.parent].start <= span.start
            assert span.end <= by_id[span.parent].end
    assert below == {
        "": ["invoke_agent build"],
        "invoke_agent build": [
            "chat m",
            "execute_tool read",
            "execute_tool todowrite",
            "chat m",
            "execute_tool task",
            "chat m",
            "execute_tool write",
            "execute_tool edit",
            "chat m",
        ],
        "execute_tool task": ["invoke_agent explore"],
        "invoke_agent explore": ["chat m", "execute_tool read", "chat m"],
    }
    chat = next(span for span in spans if span.name == "chat m")
    assert chat.client
    assert chat.attributes["gen_ai.usage.input_tokens"] == 100, "90 and 10 out of a cache"
    assert chat.attributes["gen_ai.usage.output_tokens"] == 20, "15 and 5 of reasoning"
    assert chat.attributes["gen_ai.response.finish_reasons"] == ["tool-calls"]
    assert spans[0].attributes["gen_ai.usage.input_tokens"] == 400


async def test_content_is_told_only_when_asked_for(workspace: Workspace, tmp_path: Path) -> None:
    for name in ("session_export_1.18.33", "picture_task_files"):
        session = await import_(workspace, recorded(name))
        quiet = await export_otlp(workspace, session, tmp_path / "quiet.json")
        loud = await export_otlp(workspace, session, tmp_path / "loud.json", content=True)
        for word in ("shapes.py", "Could not find oldString", "I will look", "tidy up"):
            assert word not in quiet.read_text()
    assert "tidy up" in loud.read_text()
    assert "3.14159" in loud.read_text()


async def test_failures_are_told(workspace: Workspace) -> None:
    calls = await session_spans(workspace, await import_(workspace, recorded("session_export_1.18.33")))
    stopped = await session_spans(workspace, await import_(workspace, recorded("compacted_stopped_reverted")))
    assert [span.name for span in calls if span.error] == ["execute_tool edit", "execute_tool read"]
    failed = [span for span in stopped if "error.type" in span.attributes]
    assert [(span.name, span.attributes["error.type"]) for span in failed] == [("chat m", "MessageAbortedError")]


async def test_attribute_names_are_those_of_the_conventions(workspace: Workspace) -> None:
    known = {value for value in vars(names).values() if isinstance(value, str)} | {ERROR_TYPE}
    operations = {operation.value for operation in names.GenAiOperationNameValues}
    spans = await traced(workspace, content=True)
    used = {key for span in spans for key in span.attributes}
    assert {key for key in used if not key.startswith("opencode.")} <= known
    assert {span.attributes["gen_ai.operation.name"] for span in spans} == operations & {
        "chat",
        "execute_tool",
        "invoke_agent",
    }


async def test_spans_go_to_an_exporter(workspace: Workspace) -> None:
    exporter = InMemorySpanExporter()
    spans = await traced(workspace)
    assert await send(workspace, MAIN, exporter) == len(spans)
    sent = exporter.get_finished_spans()
    assert [(span.name, f"{span.context.span_id:016x}") for span in sent] == [(span.name, span.id) for span in spans]
    assert [f"{span.parent.span_id:016x}" if span.parent else "" for span in sent] == [span.parent for span in spans]
    assert sent[0].start_time == spans[0].start * 1_000_000
    assert sent[1].kind.name == "CLIENT"
    exporter.shutdown()
    with pytest.raises(ToolError, match="could not send"):
        await send(workspace, MAIN, exporter)


async def test_the_file_is_otlp(workspace: Workspace, tmp_path: Path) -> None:
    spans = await traced(workspace, content=True)
    path = await export_otlp(workspace, MAIN, tmp_path / "spans.json", content=True)
    # The JSON form writes ids in hexadecimal, which protobuf's own reader takes for base64: only the shape is checked.
    read = json_format.Parse(path.read_text(), trace_pb2.TracesData())
    (scope,) = read.resource_spans[0].scope_spans
    assert [span.name for span in scope.spans] == [span.name for span in spans]
    assert [span.end_time_unix_nano for span in scope.spans] == [span.end * 1_000_000 for span in spans]
