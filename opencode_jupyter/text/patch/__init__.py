"""Patches in the file-oriented language of Codex's and OpenCode's apply_patch."""

from .command import BadPatchCommand, ImplicitInvocationError, PatchCommand, maybe_parse, maybe_verify
from .content import updated
from .direct import apply, verify
from .errors import PatchError, PatchFileError, PatchFormatError, PatchMismatchError
from .grammar import AddFile, Chunk, DeleteFile, Hunk, Line, UpdateFile, parse
from .plan import FileChange, Plan, Result, plan
from .seek import seek

__all__ = [
    "AddFile",
    "BadPatchCommand",
    "Chunk",
    "DeleteFile",
    "FileChange",
    "Hunk",
    "ImplicitInvocationError",
    "Line",
    "PatchCommand",
    "PatchError",
    "PatchFileError",
    "PatchFormatError",
    "PatchMismatchError",
    "Plan",
    "Result",
    "UpdateFile",
    "apply",
    "maybe_parse",
    "maybe_verify",
    "parse",
    "plan",
    "seek",
    "updated",
    "verify",
]
