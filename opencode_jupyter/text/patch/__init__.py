"""Patches in the file-oriented language of Codex's and OpenCode's apply_patch."""

from .chunks import apply_chunks, seek
from .grammar import (
    AddFile,
    Chunk,
    DeleteFile,
    Hunk,
    Line,
    PatchError,
    PatchFileError,
    PatchFormatError,
    PatchMismatchError,
    UpdateFile,
    parse,
)
from .plan import FileChange, Plan, Result, apply, plan

__all__ = [
    "AddFile",
    "Chunk",
    "DeleteFile",
    "FileChange",
    "Hunk",
    "Line",
    "PatchError",
    "PatchFileError",
    "PatchFormatError",
    "PatchMismatchError",
    "Plan",
    "Result",
    "UpdateFile",
    "apply",
    "apply_chunks",
    "parse",
    "plan",
    "seek",
]
