"""list: the files of a directory as a tree. See docs/opencode/tools.md 13.2."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from ..core.call_state import ToolPart
from ..core.card_spec import CardSpec
from ..core.context import ToolContext
from ..core.errors import ToolError
from ..core.result import ToolResult
from ..core.schema import Arguments, ForPerson
from ..text.encoding import printable
from . import _path_checks
from ._path_checks import assert_external
from .builtin import builtin
from .ripgrep import Search, resolve_folder, without_checkpoints

LIMIT = 100
"""Files shown."""
IGNORED = (
    "node_modules/",
    "__pycache__/",
    ".git/",
    "dist/",
    "build/",
    "target/",
    "vendor/",
    "bin/",
    "obj/",
    ".idea/",
    ".vscode/",
    ".zig-cache/",
    "zig-out",
    ".coverage",
    "coverage/",
    "tmp/",
    "temp/",
    ".cache/",
    "cache/",
    "logs/",
    ".venv/",
    "venv/",
    "env/",
)
"""Names left out at the top of the listing; a ``*`` is put after each."""


class Parameters(Arguments):
    """Which directory."""

    path: Annotated[str | None, ForPerson("The folder to list; the project's folder if left out")] = Field(
        None, description="The absolute path to the directory to list (must be absolute, not relative)"
    )
    ignore: Sequence[str] | None = Field(None, description="List of glob patterns to ignore")


def _label(arguments: dict[str, Any], part: ToolPart) -> str:
    """The folder; OpenCode's title says nothing of the project's own."""
    path = arguments.get("path")
    return str(getattr(part.state, "title", None) or (path if isinstance(path, str) else "") or ".")


@builtin(
    "list",
    Parameters,
    group="files",
    effect="reads",
    card=CardSpec(path="folder", label=_label),
)
async def list_files(args: Parameters, ctx: ToolContext) -> ToolResult:
    """List a directory as a tree."""
    folder = resolve_folder(ctx.directory, args.path)
    await assert_external(ctx, folder, "directory")
    await ctx.ask("list", [str(folder)], ["*"], {"path": str(folder)}, path=folder)
    if not folder.is_dir():
        raise _path_checks.folder_missing_error(folder)
    ctx.proceed()

    globs = [f"--glob=!{name}*" for name in IGNORED] + [
        f"--glob=!{pattern}" for pattern in args.ignore or () if pattern
    ]
    globs += without_checkpoints(args.path)
    # .git comes last: of two globs that fit, ripgrep goes by the later
    arguments = ["--files", "--null", "--hidden", "--sort=path", *globs, "--glob=!.git", "--", "./"]
    search = Search(arguments, folder)
    names_found: set[bytes] = set()
    async for names in search.names():
        names_found.update(name.removeprefix(b"./") for name in names[: LIMIT - len(names_found)])
        if len(names_found) >= LIMIT:
            break
    if search.code not in (0, 1, None) and not names_found:
        raise ToolError(f"The folder can't be listed: {search.errors or f'exit code {search.code}'}")
    files = sorted(printable(os.fsdecode(name)) for name in names_found)
    metadata: dict[str, Any] = {"count": len(files), "truncated": len(files) >= LIMIT}
    metadata |= search.engine_note
    rows = [{"path": str(folder / name), "name": Path(name).name} for name in files]
    return ToolResult(printable(ctx.workspace.relative(folder)), tree(str(folder), files), metadata, records=rows)


def tree(top: str, files: Sequence[str]) -> str:
    """Files as a tree under `top`: two spaces a level, folders before files, both sorted.

    Args:
        top: the folder's path, as the first line shows it.
        files: their paths in it, with slashes.
    """
    folders: dict[str, Any] = {}
    for file in files:
        *parents, name = file.split("/")
        folder = folders
        for parent in parents:
            folder = folder.setdefault(parent + "/", {})
        folder[name] = None
    lines = [printable(top) + "/"]
    _render(folders, 1, lines)
    return "\n".join(lines) + "\n"


def _render(folders: dict[str, Any], depth: int, lines: Any) -> None:
    for name in sorted((n for n in folders if folders[n] is not None), key=_units):
        lines.append("  " * depth + name)
        _render(folders[name], depth + 1, lines)
    lines.extend("  " * depth + name for name in sorted((n for n in folders if folders[n] is None), key=_units))


def _units(name: str) -> bytes:
    """JavaScript's order: by UTF-16 code units, a folder without its slash."""
    return name.removesuffix("/").encode("utf-16-be", "surrogatepass")


list = list_files
"""The tool under its module's name, by which it is found. Nothing here uses the built-in `list`."""
