"""A repository of our own beside a project: it records trees of the project's files, and knows nothing of commits.

The project's own repository is only read (which files it tracks, what it ignores), never written: other folder, other
index, no hooks. Bytes are kept as they are: no line ends are changed and no filter runs, whatever ``.gitattributes``
say.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ...core.file_tracker import FileTracker
from ...core.paths import make_private_folder
from .git import Git, GitError, locked

NEW_BYTES = 2 << 20
"""A larger file is left out, unless the project's own repository tracks it; as OpenCode's later releases have it."""
MOST_BYTES = 64 << 20
"""A larger file is left out in any case, or stays recorded as it was before it grew."""
KEPT_SINCE = "7.days.ago"
"""Trees that are older are forgotten; OpenCode keeps them as long."""
CLEAN_EVERY = 24 * 3600.0
SLOW_SECONDS = 0.15
"""Seconds of looking for changes after which git's memory of times and sizes is renewed, if nothing had changed."""
PATHS_AT_ONCE = 200
"""Paths up to which git is asked for each one."""
READY = "opencode-jupyter-1"
"""The file that marks a shadow as set up, in this version."""
CLEANED = "opencode-jupyter-cleaned"

_SETTINGS = {
    "core.autocrlf": "false",
    "core.eol": "lf",
    "core.safecrlf": "false",
    "core.quotepath": "false",
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.logAllRefUpdates": "false",
    "core.sparseCheckout": "false",
    "feature.manyFiles": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
_ATTRIBUTES = "* -text -eol -crlf -ident -filter -working-tree-encoding\n"
_NEVER = ("__pycache__/", ".ipynb_checkpoints/", "node_modules/", ".venv/")
"""Left out unless the project's repository tracks what is in them or its ``.gitignore`` includes it."""


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A file in a tree."""

    mode: int
    """As git has it: 0o100644, 0o100755 or 0o120000 (a symbolic link)."""
    blob: str


TreeEntries = dict[str, TreeEntry | None]
"""Paths relative to the worktree, each with its file; None for no file."""


@dataclass(slots=True)
class ShadowState:
    """The state of a worktree that is kept from one run to the next."""

    index: tuple[int, int, int] | None = None
    tree: str = ""
    set_up: bool = False
    tracked: frozenset[str] = frozenset()
    """Files that the project's repository tracks though they are ignored."""
    large_tracked: dict[str, bool] | None = None
    """Large files, and whether the project's repository tracks them."""
    refreshed: float = 0.0


class Shadow:
    """The shadow of one worktree. Its methods block; all but `lock` are for who holds it.

    Files that are restored count in `file_times` as changed by us.
    """

    def __init__(self, program: str, data_dir: Path, worktree: Path, file_times: FileTracker) -> None:
        self.file_times = file_times
        self.program = program
        self.worktree = worktree
        self.data_dir = data_dir
        self.folder = data_dir / "snapshot" / project_id(worktree)
        self._memory = ShadowState()
        self._git: Git | None = None

    @contextmanager
    def lock(self, git: Git) -> Iterator[Shadow]:
        """Work here alone, with `git` as the runner.

        Raises:
            GitError: somebody else is, for too long; or it can't be set up.
            OSError: the data folder can't be written.
        """
        make_private_folder(self.folder)
        with locked(self.folder.with_name(self.folder.name + ".lock"), git.check) as descriptor:
            self._git = git
            git.inherited = () if descriptor is None else (descriptor,)
            try:
                if descriptor is not None:
                    self._unlock()  # the owner of git's lock has ended, or it would still hold ours
                self._set_up()
                yield self
            finally:
                self._git = None
                if descriptor is not None:
                    self._unlock()

    def _unlock(self) -> None:
        (self.folder / "index.lock").unlink(missing_ok=True)

    def _run(self, *arguments: str, input: bytes | None = None, ok: tuple[int, ...] = (0,)) -> bytes:
        assert self._git is not None
        return self._git.run(*arguments, input=input, ok=ok)

    # ------------------------------------------------------------------ setting up

    def _set_up(self) -> None:
        if self._memory.set_up and (self.folder / READY).exists():
            return
        self._memory = ShadowState()
        if not (self.folder / READY).exists():
            self._run("init", "--quiet", "--template=")
            for name, value in _SETTINGS.items():
                self._run("config", name, value)
            info = self.folder / "info"
            info.mkdir(exist_ok=True)
            (info / "attributes").write_text(_ATTRIBUTES)
            (self.folder / READY).write_bytes(os.fsencode(os.path.realpath(self.worktree)))
            (self.folder / CLEANED).touch()
        self._ignore()
        self._memory.set_up = True

    def _ignore(self) -> None:
        """Ignore what the project's own repository ignores."""
        assert self._git is not None
        own = Git(self.program, None, self.worktree, 10.0)
        lines = [*_NEVER]
        inside = os.path.relpath(os.path.realpath(self.data_dir), os.path.realpath(self.worktree))
        if inside != os.curdir and not inside.startswith(os.pardir):
            lines.append("/" + inside.replace(os.sep, "/") + "/")
        try:
            exclude_path = os.fsdecode(own.run("rev-parse", "--git-path", "info/exclude").rstrip(b"\n"))
            exclude = self.worktree / exclude_path
            if exclude.is_file():
                lines.append(exclude.read_text("utf-8", "surrogateescape"))
            output = own.run("-c", "core.fsmonitor=false", "ls-files", "-z", "-c", "-i", "--exclude-standard")
            self._memory.tracked = frozenset(os.fsdecode(output).split("\0")) - {""}
            everywhere = own.run("config", "--type=path", "--get", "core.excludesFile", ok=(0, 1)).rstrip(b"\n")
        except (GitError, OSError):  # a damaged repository, or another owner's: then its ``.gitignore`` alone counts
            everywhere = b""
        if not everywhere:
            home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
            everywhere = os.fsencode(os.path.join(home, "git", "ignore"))
        (self.folder / "info" / "exclude").write_text("\n".join(lines) + "\n", "utf-8", "surrogateescape")
        if self._run("config", "--get", "core.excludesFile", ok=(0, 1)).rstrip(b"\n") != everywhere:
            self._run("config", "core.excludesFile", os.fsdecode(everywhere))

    # ------------------------------------------------------------------ recording

    def track(self) -> str:
        """Record the files as they are now; the tree's hash."""
        for attempt in (1, 2, 3):
            began = time.monotonic()
            changed = self._changed()
            if not changed:
                break
            linked = {path for path in changed if _is_behind_link(self.worktree, path)}
            try:
                self._update("--force-remove", paths=linked)
                self._update("--add", "--remove", "--replace", paths=[path for path in changed if path not in linked])
                break
            except GitError:  # something changed while it was read
                if attempt == 3:
                    raise
                self._check()
                self._unlock()
        memory = self._memory
        if not changed and (now := time.monotonic()) - began > SLOW_SECONDS and now - memory.refreshed > 60:
            memory.refreshed = now  # files that were touched and not changed are read again and again
            self._run("update-index", "-q", "--refresh", ok=(0, 1))
        state = _state(self.folder / "index")
        if state is None or state != memory.index or not memory.tree:
            memory.tree = self._run("write-tree").decode().strip()
            memory.index = _state(self.folder / "index")  # write-tree notes the trees in the index
        return memory.tree

    def _update(self, *options: str, paths: Collection[str]) -> None:
        if paths:
            names = b"".join(os.fsencode(path) + b"\0" for path in paths)
            self._run("update-index", *options, "-z", "--stdin", input=names)

    def _changed(self) -> list[str]:
        """The paths to be recorded anew."""
        output = os.fsdecode(self._run("ls-files", "-t", "-z", "-m", "-d", "-o", "--exclude-standard"))
        paths: dict[str, str] = {}
        for item in output.split("\0"):
            if item and not item.endswith("/"):  # a repository in a folder is left alone
                paths.setdefault(item[2:], item[0])  # a deleted file is named twice: R first
        if not self._memory.tree:
            indexed = self._indexed(self._memory.tracked)
            paths |= {path: "?" for path in self._memory.tracked if path not in indexed}
        large: list[tuple[str, int]] = []
        out = []
        for path, tag in paths.items():
            size = self._size(path)
            if tag == "R" or (size is not None and size <= (NEW_BYTES if tag == "?" else MOST_BYTES)):
                out.append(path)
            elif size is not None and tag == "?" and size <= MOST_BYTES:
                large.append((path, size))
        return out + self._tracked([path for path, _ in large])

    def _size(self, path: str) -> int | None:
        """Bytes of a file that can be recorded; None for one that can't."""
        full = os.path.join(self.worktree, path)
        try:
            status = os.lstat(full)
        except OSError:
            return None
        if stat.S_ISLNK(status.st_mode):
            return 0
        return status.st_size if stat.S_ISREG(status.st_mode) and os.access(full, os.R_OK) else None

    def _indexed(self, paths: Collection[str]) -> set[str]:
        if not paths:
            return set()
        return set(os.fsdecode(self._run("ls-files", "-z", "-c")).split("\0"))

    def _tracked(self, paths: list[str]) -> list[str]:
        """Those of these files that the project's own repository tracks."""
        tracked = self._memory.large_tracked = {} if self._memory.large_tracked is None else self._memory.large_tracked
        new = [path for path in paths if path not in tracked]
        for some in chunks(new):
            tracked_paths: set[str] = set()
            try:
                own = Git(self.program, None, self.worktree, 10.0)
                output = own.run("-c", "core.fsmonitor=false", "ls-files", "-z", "-c", "--", *some)
                tracked_paths = set(os.fsdecode(output).split("\0"))
            except GitError:
                pass
            tracked |= {path: path in tracked_paths for path in some}
        return [path for path in paths if tracked[path]]

    # ------------------------------------------------------------------ reading

    def has_tree(self, tree: str) -> bool:
        """Return whether a tree is (still) there."""
        try:
            return self._run("cat-file", "-t", tree).strip() == b"tree"
        except GitError:
            self._check()
            return False

    def _check(self) -> None:
        assert self._git is not None
        self._git.check()

    def compare(self, before: str, after: str) -> dict[str, tuple[TreeEntry | None, TreeEntry | None]]:
        """The files that differ between two trees, with what they are in each."""
        if before == after:
            return {}
        raw = os.fsdecode(self._run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", before, after))
        items = iter(raw.split("\0"))
        differing: dict[str, tuple[TreeEntry | None, TreeEntry | None]] = {}
        for head in items:
            if not head:
                break
            old_mode, new_mode, old, new, _ = head[1:].split(" ")
            differing[next(items)] = (_entry(old_mode, old), _entry(new_mode, new))
        return differing

    def entries(self, tree: str, paths: Collection[str]) -> TreeEntries:
        """The entries of these paths (relative to the worktree) in a tree."""
        entries: TreeEntries = dict.fromkeys(paths)
        groups = [[]] if len(paths) > PATHS_AT_ONCE else list(chunks(list(paths)))
        for some in groups:
            for item in os.fsdecode(
                self._run("ls-tree", "-r", "-z", "--full-tree", tree, *(["--", *some] * bool(some)))
            ).split("\0"):
                head, _, path = item.partition("\t")
                if path in entries:
                    mode, _, blob = head.split(" ")
                    entries[path] = _entry(mode, blob)
        return entries

    def blobs(self, hashes: Iterable[str]) -> dict[str, bytes]:
        """The contents of blobs.

        Raises:
            GitError: one no longer exists.
        """
        unique_hashes = list(dict.fromkeys(hashes))
        if not unique_hashes:
            return {}
        out = memoryview(
            self._run("cat-file", "--batch", input="".join(name + "\n" for name in unique_hashes).encode())
        )
        contents: dict[str, bytes] = {}
        at = 0
        for name in unique_hashes:
            end = at + bytes(out[at : at + 200]).index(b"\n")
            head = bytes(out[at:end]).split()
            if len(head) != 3:
                raise GitError(f"the content {name} is no longer stored")
            size = int(head[2])
            contents[name] = bytes(out[end + 1 : end + 1 + size])
            at = end + 1 + size + 1
        return contents

    def diff_text(self, before: str, after: str) -> str:
        """The difference of two trees, as git writes it."""
        if before == after:
            return ""
        options = ("-r", "-p", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv")
        return self._run("diff-tree", *options, before, after).decode("utf-8", "replace")

    def count_lines(self, before: str, after: str, path: str) -> tuple[int, int]:
        """How many lines a file gained and lost between two trees; 0 and 0 for one that is no text."""
        raw = self._run("diff-tree", "-r", "-z", "--numstat", "--no-renames", before, after, "--", path)
        added, removed, _ = raw.split(b"\t", 2) if raw else (b"-", b"-", b"")
        return (int(added), int(removed)) if added.isdigit() and removed.isdigit() else (0, 0)

    # ------------------------------------------------------------------ keeping it small

    @property
    def cleaned(self) -> float:
        """When it was cleaned last (Unix time)."""
        try:
            return (self.folder / CLEANED).stat().st_mtime
        except OSError:
            return 0.0

    def clean(self) -> None:
        """Forget what is old."""
        if time.time() - self.cleaned > CLEAN_EVERY:  # else another process has just done it
            (self.folder / CLEANED).touch()
            self._run("gc", "--quiet", f"--prune={KEPT_SINCE}")
            remove_abandoned(self.folder.parent)


def project_id(worktree: Path) -> str:
    """The name of a worktree's shadow: of its place, since two clones of a repository hold different files."""
    return hashlib.sha256(os.fsencode(os.path.realpath(worktree))).hexdigest()[:40]


def remove_abandoned(folder: Path) -> None:
    """Remove the shadows of worktrees that no longer exist and were not used for a week."""
    for shadow in folder.iterdir():
        with contextlib.suppress(OSError):
            worktree = os.fsdecode((shadow / READY).read_bytes())
            unused = time.time() - (shadow / "index").stat().st_mtime
            if worktree and not os.path.exists(worktree) and unused > 7 * 24 * 3600:
                shutil.rmtree(shadow, ignore_errors=True)
                shadow.with_name(shadow.name + ".lock").unlink(missing_ok=True)


def chunks(paths: list[str]) -> Iterator[list[str]]:
    """Paths in groups that a command line takes."""
    return (paths[at : at + PATHS_AT_ONCE] for at in range(0, len(paths), PATHS_AT_ONCE))


def _is_behind_link(worktree: Path, path: str) -> bool:
    """Return whether a folder of a recorded path is a symbolic link now: git refuses to follow it."""
    folder = os.path.dirname(path)
    while folder:
        if os.path.islink(os.path.join(worktree, folder)):
            return True
        folder = os.path.dirname(folder)
    return False


def _entry(mode: str, blob: str) -> TreeEntry | None:
    number = int(mode, 8)
    return TreeEntry(number, blob) if stat.S_ISREG(number) or stat.S_ISLNK(number) else None


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
