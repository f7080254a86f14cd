"""Sessions in and out: OpenCode's export format both ways, JSON lines of events, OpenTelemetry spans."""

from __future__ import annotations

from .exporting import export, export_file
from .importing import Imported, import_, take_in
from .jsonl import events_of, export_jsonl
from .session_schema import SessionFileError
from .spans import export_otlp, send, session_spans

__all__ = [
    "Imported",
    "SessionFileError",
    "events_of",
    "export",
    "export_file",
    "export_jsonl",
    "export_otlp",
    "import_",
    "send",
    "session_spans",
    "take_in",
]
