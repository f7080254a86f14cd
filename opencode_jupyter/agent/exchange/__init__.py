"""Sessions in and out: OpenCode's export format both ways, JSON lines of events, OpenTelemetry spans."""

from __future__ import annotations

from .exporting import events_of, export, export_file, export_jsonl
from .importing import ImportedSession, import_, import_session
from .session_schema import SessionFileError
from .spans import export_otlp, send, session_spans

__all__ = [
    "ImportedSession",
    "SessionFileError",
    "events_of",
    "export",
    "export_file",
    "export_jsonl",
    "export_otlp",
    "import_",
    "import_session",
    "send",
    "session_spans",
]
