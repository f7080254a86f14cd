"""The type of the fixture `open_workspace`."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from opencode_jupyter import Workspace


class OpenWorkspace(Protocol):
    """Opens a workspace, which the end of the test closes.

    Args:
        config: its configuration; nothing asks if it is left out.
        directory: its folder; the fixture `project` if left out.
        files: names and texts of files to write there first.
        data_dir: the folder ``data`` beside the project if left out.
        options: other arguments of `Workspace`.
    """

    async def __call__(
        self,
        config: dict[str, Any] | None = None,
        *,
        directory: str | PathLike[str] | None = None,
        files: Mapping[str, str] | None = None,
        data_dir: str | PathLike[str] | None = None,
        **options: Any,
    ) -> Workspace: ...
