"""The error of a `python` call whose code raised."""

from __future__ import annotations

from ...core.errors import ToolError
from ...text.encoding import printable


class CodeError(ToolError):
    """Code that the python tool ran ended with an exception. Its text is what was printed, and the traceback.

    Attributes:
        exception: what the code raised, without its frames.
    """

    def __init__(self, message: str, exception: BaseException | None = None) -> None:
        super().__init__(printable(message))
        self.exception = exception

    @property
    def headline(self) -> str:
        """The line of the message that names the exception; "" if the code raised none, or it is not in the message."""
        lines = () if self.exception is None else str(self).splitlines()
        kind = type(self.exception).__name__
        return next((line for line in reversed(lines) if line.partition(":")[0] == kind), "")
