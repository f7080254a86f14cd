"""Checks of a path before a tool touches it: its kind, whether it is in the project, what rules say to reading it."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
import sysconfig
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from ..core.context import ToolContext
from ..core.errors import ToolError
from ..core.paths import check_file_name, follow_links
from ..core.permission import Rule
from ..core.permission.decision import Action
from ..core.permission.rules import fits_path
from ..core.permission.sensitive_files import is_key_file
from ..core.wildcard import compiled, match

SUGGESTIONS = 3
SUGGESTION_NAMES = 5_000
"""Names of a folder that are looked at for suggestions."""


def resolve_file(ctx: ToolContext, path: str) -> Path:
    """The absolute path a ``filePath`` argument means.

    Raises:
        ToolError: it can't be the name of a file.
    """
    check_file_name(path)
    return ctx.resolve(path)


def missing_argument(name: str, what: str) -> ToolError:
    """The error for an argument that is empty.

    Args:
        name: the argument, as on the wire.
        what: what a person has to give, such as ``the file to read``.
    """
    return ToolError(f"{name} is required", for_person=f"{name} is empty. Give {what}.")


def find_program(name: str) -> str | None:
    """The absolute path of a program: the one beside this Python, else the one on the PATH; None if there is none."""
    folders = dict.fromkeys((sysconfig.get_path("scripts"), str(Path(sys.executable).parent)))
    path = shutil.which(name, path=os.pathsep.join(folders)) or shutil.which(name)
    return os.path.abspath(path) if path else None


def folder_error(path: Path) -> ToolError:
    """The error for a folder where a file is needed."""
    return ToolError(
        f"Path is a directory, not a file: {path}",
        for_person=f"{path} is a folder, not a file. Give the path of a file.",
    )


def real_path(path: Path) -> Path:
    """`path` with its links followed."""
    return Path(follow_links(path))


def file_status(path: Path) -> os.stat_result | None:
    """The file's status, or None if there is no such file.

    Raises:
        ToolError: it can't be looked at.
    """
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ToolError(explain_error(error, path)) from error


def rule_patterns(ctx: ToolContext, path: Path) -> list[str]:
    """The patterns that rules are matched with: the path from the worktree, and that of the file a link leads to."""
    relative = ctx.workspace.relative(path)
    actual = ctx.workspace.relative(path, follow=True)
    return [relative] if actual == relative else [relative, actual]


def check_regular(path: Path, status: os.stat_result) -> None:
    """Go on only with a regular file: reading a pipe or a device might never end.

    Raises:
        ToolError: it is something else.
    """
    mode = status.st_mode
    if stat.S_ISREG(mode):
        if real_path(path).match("/proc/*/environ"):
            raise ToolError(f"Not read: {path} holds a process's environment, which may hold secrets.")
        return
    device = "a device"
    if stat.S_ISDIR(mode):
        raise folder_error(path)
    kinds = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: device, stat.S_IFBLK: device}
    raise ToolError(f"Not a regular file: {path} is {kinds.get(stat.S_IFMT(mode), 'something else')}.")


def open_regular(path: Path, actual: Path) -> int:
    """A descriptor to read a regular file with; never blocks, and follows no link that was put there meanwhile.

    Args:
        path: the file as it was named, for errors.
        actual: where it led when permission was asked for (`real_path`).

    Raises:
        ToolError: it can't be read.
    """
    flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(actual, flags | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise ToolError(explain_error(error, path)) from error
    try:
        check_regular(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def not_found_error(path: Path, message: str = "") -> ToolError:
    """The error for a missing file or folder, with up to three names beside it that look like it.

    Args:
        path: what is missing.
        message: the first line; "File not found" and the path if left out.
    """
    message = message or f"File not found: {path}"
    missing = path.name.lower()
    try:
        with os.scandir(path.parent) as entries:
            names = sorted(entry.name for entry, _ in zip(entries, range(SUGGESTION_NAMES), strict=False))
    except OSError:
        names = []
    if path.name in names and path.is_symlink():
        return ToolError(f"File not found: {path} is a symbolic link to {os.readlink(path)}, which does not exist.")
    lowered = {name.lower(): name for name in names}
    near = [name for name in names if missing and (missing in name.lower() or name.lower() in missing)]
    # OpenCode looks no further; a person also mistypes
    from difflib import get_close_matches  # here: only errors need it

    mistyped = [lowered[name] for name in get_close_matches(missing, lowered, SUGGESTIONS, 0.7)]
    for_person = _suggesting(message, path.parent, [*near, *(name for name in mistyped if name not in near)])
    return ToolError(_suggesting(message, path.parent, near), for_person=for_person)


class FolderNotFoundError(ToolError, FileNotFoundError):
    """The folder to look in is missing."""


def folder_missing_error(path: Path) -> FolderNotFoundError:
    """The error for a missing folder, with names beside it that look like it."""
    error = not_found_error(path, f"No such file or directory: '{path}'")
    return FolderNotFoundError(str(error), for_person=error.for_person)


def _suggesting(message: str, folder: Path, names: Sequence[str]) -> str:
    if not names:
        return message
    near = "\n".join(str(folder / name) for name in names[:SUGGESTIONS])
    return f"{message}\n\nDid you mean one of these?\n{near}"


def explain_error(error: OSError, path: Path) -> str:
    """The reason why a file can't be read, and what to do."""
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"No permission to read {path}. Change its (or its folder's) permissions, or run as a user who may."
    if error.errno == errno.ENAMETOOLONG:
        return f"The file name is too long: {path}"
    if error.errno == errno.ELOOP:
        return f"Can't read {path}: its symbolic links go in a circle."
    if error.errno == errno.EISDIR:
        return f"Path is a directory, not a file: {path}"
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return f"File not found: {path}"
    return f"Can't read {path}: {error.strerror or error}"


Kind = Literal["file", "directory"]


async def assert_external(ctx: ToolContext, path: Path | None, kind: Kind = "file", bypass: bool = False) -> None:
    """Go on only if `path` is inside the project or a rule or a person allows its folder.

    Args:
        ctx: the call.
        path: absolute; it need not exist. None is inside.
        kind: ``directory`` asks for what is in it, ``file`` for what is beside it.
        bypass: do not ask (the user attached the file).

    Raises:
        PermissionDeniedError: and the other errors of `ToolContext.ask`.
    """
    if path is None or bypass:
        return
    locations = outside_locations(ctx, path)
    if not locations:
        return
    folders = list(dict.fromkeys(location if kind == "directory" else location.parent for location in locations))
    globs = [(folder / "*").as_posix() for folder in folders]
    metadata = {"filepath": str(path), "parentDir": str(folders[0])}
    if locations[0] != path:
        metadata["target"] = str(locations[0])
    await ctx.ask("external_directory", globs, globs, metadata)


def outside_locations(ctx: ToolContext, path: Path) -> list[Path]:
    """The paths of `path` outside the project, as written and with links followed; empty if it is inside."""
    if ctx.workspace.contains(path):
        return []
    tops = [ctx.directory]
    if ctx.worktree != Path(ctx.worktree.anchor):
        tops.append(ctx.worktree)
    actual = Path(follow_links(path))
    locations = []
    if not any(path.is_relative_to(top) for top in tops):
        locations.append(path)
    if not any(actual.is_relative_to(follow_links(top)) for top in tops):
        locations.append(actual)
    return list(dict.fromkeys(locations))


async def request_secret_reads(ctx: ToolContext, paths: Sequence[str], metadata: dict[str, Any]) -> None:
    """Go on only if the rules about ``read``, or a person, allow another tool to show the files at `paths`.

    Raises:
        PermissionDeniedError: and the other errors of `ToolContext.ask`.
    """
    action = read_actions(ctx)
    names = [ctx.workspace.relative(path) for path in paths if action(path) != "allow"]
    if names:
        await ctx.ask("read", names, names, metadata)


def denied_reads(ctx: ToolContext) -> Callable[[str], bool] | None:
    """Make a function that tells the files whose reading a rule denies; None where no rule denies a reading."""
    rules = chain(_rules(ctx), ctx.workspace.permissions.approved)
    if not any(rule.action == "deny" and match("read", rule.permission) for rule in rules):
        return None
    action = read_actions(ctx)
    return lambda path: action(path) == "deny"


def read_actions(ctx: ToolContext) -> Callable[[str], Action]:
    """Make a function that gives the action of the ``read`` rules for a file that another tool shows.

    A rule for everything counts only for keys and for files that another rule denies or asks for.
    """
    rules = _rules(ctx)
    strict = [rule.pattern for rule in rules if rule.action != "allow" and match("read", rule.permission)]
    anywhere = [compiled(pattern) for pattern in strict if pattern.startswith("*") and pattern != "*"]
    others = [pattern for pattern in strict if not pattern.startswith("*")]
    absolute = [pattern for pattern in others if os.path.isabs(pattern)]
    permissions, relative = ctx.workspace.permissions, ctx.workspace.relative

    def action(path: str) -> Action:  # called for each file of a search
        is_named = is_key_file(path) or any(matches(path) for matches in anywhere)
        is_named = is_named or any(match(relative(path), other) for other in others)
        locations = {path, follow_links(path)} if absolute and not is_named else ()
        if not is_named and not any(fits_path(location, other) for location in locations for other in absolute):
            return "allow"
        return permissions.check("read", [relative(path)], rules)[0].action

    return action


def _rules(ctx: ToolContext) -> Sequence[Rule]:
    """The rules of the call; none in a call that is not the workspace's."""
    call = ctx.workspace.calls.get(ctx.call_id)
    return call.ruleset if call is not None else []
