"""A patch that comes as a command: ``apply_patch '...'`` or a heredoc in ``bash -lc`` (docs/opencode/tools.md 9.9)."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from .direct import verify
from .errors import PatchError
from .grammar import Hunk, parse
from .plan import Plan

NAMES = ("apply_patch", "applypatch")

_HEREDOC = re.compile(r"apply_patch\s*<<(['\"])(\w+)\1\s*\n(.*?)\n\2", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PatchCommand:
    """A command that applies a patch."""

    patch: str
    hunks: list[Hunk]


@dataclass(frozen=True, slots=True)
class BadPatchCommand:
    """A command that is to apply a patch, which is none."""

    error: PatchError


class ImplicitInvocationError(PatchError):
    """A patch without the command that applies it."""

    def __init__(self) -> None:
        super().__init__("This is a patch, not a command. Call apply_patch with it.")


def maybe_parse(argv: Sequence[str]) -> PatchCommand | BadPatchCommand | None:
    """What a command line means if it applies a patch; None if it does something else.

    Args:
        argv: ``apply_patch PATCH``, or ``bash -lc SCRIPT`` with ``apply_patch <<'WORD'`` in the script.
    """
    patch: str | None = None
    if len(argv) == 2 and argv[0] in NAMES:
        patch = argv[1]
    elif len(argv) == 3 and argv[0] == "bash" and argv[1] == "-lc":
        found = _HEREDOC.search(argv[2])
        patch = found[3] if found is not None else None
    if patch is None:
        return None
    try:
        return PatchCommand(patch, parse(patch))
    except PatchError as error:
        return BadPatchCommand(error)


def maybe_verify(argv: Sequence[str], directory: str | os.PathLike[str] = ".") -> Plan | None:
    """What a command line would do to the files if it applies a patch; None if it does something else.

    Raises:
        ImplicitInvocationError: the one argument is itself a patch.
        PatchError: the patch is none, or does not fit the files.
        ToolError: a file can't be read.
    """
    if len(argv) == 1:
        try:
            parse(argv[0])
        except PatchError:
            return None
        raise ImplicitInvocationError
    found = maybe_parse(argv)
    if isinstance(found, BadPatchCommand):
        raise found.error
    return None if found is None else verify(found.hunks, directory)
