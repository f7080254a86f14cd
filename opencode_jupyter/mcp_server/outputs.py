"""Saved outputs of this client's calls as resources. Nothing else can be read by its address."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mcp import MCPError, types

if TYPE_CHECKING:
    from ..core.result import ToolResult

KEPT = 1000
"""Saved outputs remembered, the last ones."""
LARGEST = 5 * 1024 * 1024
"""Bytes of the largest one given whole; of a larger one the read tool gives the part that is asked for."""
MIME = "text/plain"


class Outputs:
    """The whole outputs behind cut ones, by address."""

    def __init__(self) -> None:
        self._paths: dict[str, tuple[Path, str]] = {}

    def link(self, result: ToolResult) -> types.ResourceLink | None:
        """A link to a result's whole output, which can be read from now on; None if the result is whole."""
        path = result.output_path
        if not result.truncated or not isinstance(path, str):
            return None
        file = Path(path)
        try:
            size, address = file.stat().st_size, file.as_uri()
        except (OSError, ValueError):
            return None
        title = f"Whole output: {result.title}" if result.title else "Whole output"
        self._paths[address] = (file, title)
        while len(self._paths) > KEPT:
            del self._paths[next(iter(self._paths))]
        return types.ResourceLink(uri=address, name=file.name, title=title, mime_type=MIME, size=size)

    def list(self) -> list[types.Resource]:
        """Those that are still there, the newest first."""
        found = []
        for address, (file, title) in reversed(self._paths.items()):
            try:
                size = file.stat().st_size
            except OSError:
                continue
            found.append(types.Resource(uri=address, name=file.name, title=title, mime_type=MIME, size=size))
        return found

    def read(self, address: str) -> types.ReadResourceResult:
        """The text behind an address that `link` gave.

        Raises:
            MCPError: no output of this client is there, or it is too large.
        """
        known = self._paths.get(address)
        if known is None:
            raise _refused(f"No such resource: {address}. Only saved outputs of this connection's calls can be read.")
        file, _ = known
        try:
            size = file.stat().st_size
            if size > LARGEST:
                raise _refused(
                    f"{file} has {size} bytes, more than the {LARGEST} that are given at once; use the read tool with "
                    "offset and limit, or grep"
                )
            text = file.read_text("utf-8", "replace")
        except OSError as error:
            raise _refused(f"{file} can't be read any more: {error.strerror}") from error
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=address, mime_type=MIME, text=text)])


def _refused(message: str) -> MCPError:
    return MCPError(code=types.INVALID_PARAMS, message=message)
