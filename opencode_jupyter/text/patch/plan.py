"""Plan a patch: apply every hunk to a picture of the files; nothing is written.

Hunks see what earlier ones have done: a file that was added can be updated, one that was moved away is gone. What
comes out is one `FileChange` for people, and for the disk one `Result` for each file that ends as something else.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ...core import atomic
from ...core.atomic import Write, write_all
from ...core.errors import ToolError
from ...core.paths import check_file_name, follow_links
from ..encoding import DecodedText, decode, encode
from .chunks import apply_chunks
from .grammar import AddFile, DeleteFile, Hunk, PatchError, PatchFileError, UpdateFile, parse

Kind = Literal["add", "update", "move", "delete"]
Read = Callable[[Path], bytes | None]
"""A file's content, None if there is none; raises `ToolError` for what is no readable file."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """A change of one file.

    Attributes:
        type: ``add``, ``update``, ``move`` (perhaps with an update) or ``delete``.
        path: absolute; of a move where the file was.
        before: its text, without a byte order mark; empty if it was not there.
        after: its text then; empty if it is deleted.
        move_path: absolute; where it is moved to.
        replaced: the text of the file that a move overwrites.
    """

    type: Kind
    path: Path
    before: str
    after: str
    move_path: Path | None = None
    replaced: str | None = None

    @property
    def target(self) -> Path:
        """The final path of the file."""
        return self.move_path or self.path


@dataclass(slots=True)
class Result:
    """A file on the disk, and what it is to become.

    Attributes:
        path: absolute, links followed (but not those that are themselves replaced or removed).
        named: as the patch names it.
        before: its content now; None if there is none.
        after: its content then; None if it goes.
        mode: permission bits it is to have, if they are not its own.
        link: where it leads, if it is a symbolic link that is replaced or removed.
    """

    path: Path
    named: Path
    before: bytes | None
    after: bytes | None
    mode: int | None = None
    link: str | None = None

    @property
    def changed(self) -> bool:
        """True if anything is to be done."""
        return self.link is not None or self.before != self.after or (self.mode is not None and self.after is not None)


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a patch does."""

    changes: list[FileChange]
    results: list[Result]


def plan(
    hunks: Sequence[Hunk],
    resolve: Callable[[str], Path],
    read: Read,
    *,
    final_newline: bool = True,
    step: Callable[[], None] = lambda: None,
) -> Plan:
    """Apply `hunks` to a picture of the files.

    Args:
        hunks: in order.
        resolve: a path of the patch as an absolute one.
        read: gives a file's content.
        final_newline: end added files with a newline.
        step: called before each hunk; may raise to end the work.

    Raises:
        PatchError: the patch can't be applied.
    """
    picture = _Picture(read)
    for hunk in hunks:
        step()
        path = resolve(hunk.path)
        match hunk:
            case AddFile():
                picture.add(path, hunk.contents, final_newline)
            case DeleteFile():
                picture.delete(path)
            case UpdateFile():
                picture.update(path, hunk, None if hunk.move_path is None else resolve(hunk.move_path))
    return Plan(picture.changes, [result for result in picture.files.values() if result.changed])


def _missing(path: Path, verb: str) -> str:
    return f"{path} does not exist, but the patch {verb} it. Correct the path in the patch."


class _Picture:
    """The files as they are once the hunks so far are applied."""

    def __init__(self, read: Read) -> None:
        self.files: dict[Path, Result] = {}
        self.changes: list[FileChange] = []
        self._read = read
        self._latest: dict[Path, int] = {}
        """For each file the change that it ended with, as an index: further updates are joined to it."""
        self._folders: set[Path] = set()
        self._real: dict[Path, Path] = {}

    # ------------------------------------------------------------------ the hunks

    def add(self, path: Path, contents: str, final_newline: bool) -> None:
        file = self._open(path)
        self._check_place(file.path, path)
        before = decode(file.after or b"").text
        if final_newline and contents and not contents.endswith("\n"):
            contents += "\n"
        file.after = encode(contents)
        self._note(FileChange("add", path, before, decode(file.after).text), file.path)

    def delete(self, path: Path) -> None:
        if os.path.isdir(path) and self._entry(path) not in self.files:
            raise PatchFileError(
                f"EISDIR: illegal operation on a directory, read '{path}'",
                for_person=f"{path} is a folder. A patch deletes files only.",
            )
        file = self._open(path)
        if file.after is None:
            raise PatchFileError(
                f"ENOENT: no such file or directory, open '{path}'", for_person=_missing(path, "deletes")
            )
        before = decode(file.after).text
        self._remove(path, file)
        self._note(FileChange("delete", path, before, ""), None)

    def update(self, path: Path, hunk: UpdateFile, target: Path | None) -> None:
        old = self._to_update(path)
        source = self._open(path)
        new = DecodedText(apply_chunks(old.text, hunk.chunks, str(path)), old.bom)
        content = encode(new.text, bom=new.bom)
        if target is None or self._entry(target) == self._entry(path):
            source.after = content
            self._join(FileChange("update", path, old.text, new.text), source.path)
            return
        destination = self._open(target)
        if destination is source and self._entry(path) == source.path:
            raise PatchFileError(f"{target} is a link to {path}: moving one to the other would leave nothing.")
        self._check_place(destination.path, target)
        mode = self._mode(source)
        self._remove(path, source)
        if destination is not source:
            destination.mode = mode
        replaced = None if destination is source or destination.after is None else decode(destination.after).text
        destination.after = content
        self._note(FileChange("move", path, old.text, new.text, target, replaced), destination.path)

    def _to_update(self, path: Path) -> DecodedText:
        message = f"Failed to read file to update: {path}"
        if os.path.isdir(path) and self._entry(path) not in self.files:
            raise PatchFileError(message, plain=True, for_person=f"{path} is a folder, so the patch cannot change it.")
        try:
            file = self._open(path)
        except ToolError as error:
            raise PatchFileError(f"{message} ({error})", plain=True, for_person=error.for_person) from error
        if file.after is None:
            raise PatchFileError(message, plain=True, for_person=_missing(path, "changes"))
        return decode(file.after)

    # ------------------------------------------------------------------ changes as people see them

    def _note(self, change: FileChange, key: Path | None) -> None:
        if key is not None:
            self._latest[key] = len(self.changes)
        self.changes.append(change)

    def _join(self, change: FileChange, key: Path) -> None:
        index = self._latest.get(key)
        if index is None:
            self._note(change, key)
        else:
            self.changes[index] = replace(self.changes[index], after=change.after)

    # ------------------------------------------------------------------ files

    def _entry(self, path: Path) -> Path:
        """The path with the links of its folder followed, but not that at its end."""
        parent = self._real.get(path.parent)
        if parent is None:
            parent = self._real[path.parent] = Path(follow_links(path.parent))
        return parent / path.name

    def _open(self, path: Path) -> Result:
        entry = self._entry(path)
        if entry in self.files:
            return self.files[entry]
        real = Path(follow_links(path)) if os.path.islink(entry) else entry
        if real not in self.files:
            content = self._read(path)
            self.files[real] = Result(real, path, content, content)
        return self.files[real]

    def _remove(self, path: Path, file: Result) -> None:
        entry = self._entry(path)
        if entry == file.path:
            file.after = file.mode = None
            self._latest.pop(file.path, None)
        else:  # a link goes; the file it leads to stays
            self.files[entry] = Result(entry, path, None, None, link=os.readlink(entry))

    def _mode(self, file: Result) -> int | None:
        if file.mode is not None:
            return file.mode
        try:
            return stat.S_IMODE(file.path.stat().st_mode)
        except OSError:  # it is only going to be
            return None

    def _check_place(self, target: Path, named: Path) -> None:
        """A file can be put there: each part of its path is a folder, or nothing that can become one."""
        if target in self._folders:
            raise PatchFileError(f"Path is a directory, not a file: {named}")
        new = []
        for folder in target.parents:
            if folder in self._folders:
                break
            known = self.files.get(folder)
            if known is not None and known.after is not None:
                raise PatchFileError(f"Can't write {named}: {folder} is a file, not a folder.")
            new.append(folder)
            if known is None and os.path.lexists(folder):
                if not os.path.isdir(folder):
                    raise PatchFileError(f"Can't write {named}: {folder} is a file, not a folder.")
                break
        self._folders.update(new)


# ---------------------------------------------------------------------- for code: nobody is asked


def apply(patch_text: str, directory: str | os.PathLike[str] = ".", *, final_newline: bool = False) -> list[FileChange]:
    """Apply a patch to the files in a folder: all of it or nothing (docs/opencode/tools.md 9.9).

    Args:
        patch_text: the patch.
        directory: where relative paths start; ``~`` is the home folder.
        final_newline: end added files with a newline, as the tool does; OpenCode's function of this name does not.

    Returns:
        What was done, in the order of the patch.

    Raises:
        PatchError: it is no patch, or does not fit the files.
        ToolError: a file can't be read or written, or a path can't be the name of a file.
    """
    hunks = parse(patch_text)
    if not hunks:
        raise PatchError("No files were modified.")
    base = Path(os.path.abspath(directory))

    def resolve(path: str) -> Path:
        check_file_name(path)
        return Path(os.path.normpath(os.path.join(base, os.path.expanduser(path))))

    planned = plan(hunks, resolve, _read, final_newline=final_newline)
    write_all([Write(result.path, result.after, result.before, result.mode) for result in planned.results])
    return planned.changes


def _read(path: Path) -> bytes | None:
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise ToolError(f"Path is a directory, not a file: {path}")
        if not stat.S_ISREG(status.st_mode):
            raise ToolError(f"Not a regular file: {path}")
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ToolError(atomic.explain(error, str(path)).replace("write", "read", 1)) from error
