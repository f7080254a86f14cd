"""What can be wrong with a patch.

PatchError
├── PatchFormatError      it is no patch, or a part of it can't be understood
├── PatchMismatchError    the file does not have the lines it should change
└── PatchFileError        a file can't be changed so (missing, a directory, ...)
"""

from __future__ import annotations

from ...core.errors import ToolError


class PatchError(ToolError):
    """A patch that can't be applied. Nothing is changed.

    Attributes:
        plain: OpenCode puts no ``Error:`` before this one.
    """

    plain = False


class PatchFormatError(PatchError):
    """The text is no patch."""


class PatchMismatchError(PatchError):
    """A file does not have the lines that the patch expects."""


class PatchFileError(PatchError):
    """A file that the patch names can't be changed as it says."""

    def __init__(self, message: str, *, plain: bool = False, for_person: str = "") -> None:
        super().__init__(message, for_person=for_person)
        self.plain = plain
