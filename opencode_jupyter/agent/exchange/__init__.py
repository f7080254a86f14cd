"""Sessions in and out: OpenCode's export format both ways, JSON lines of events, OpenTelemetry spans."""

from __future__ import annotations

from .checks import SessionFileError
from .exporting import export, export_file
from .importing import Imported, import_, take_in

__all__ = ["Imported", "SessionFileError", "export", "export_file", "import_", "take_in"]
