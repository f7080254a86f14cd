"""Instructions for models: AGENTS.md and its kin, the user's own, and what the config's ``instructions`` name.

OpenCode (docs/opencode/tools.md 16) reads: of AGENTS.md, CLAUDE.md and CONTEXT.md the first kind that is found from
the folder up to the worktree, every one of that kind; one global file; then the config's entries. Here the global one
comes first and the nearest last, so that the last one is the most specific.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.config.files import upwards
from ...core.errors import ToolError
from ...text.encoding import decode
from ...tools.folder_instructions import LIMIT, instruction_names
from ...tools.search_fallback import glob_regex

if TYPE_CHECKING:
    from ...core.host import ToolHost
    from ...tools.web.public_addresses import Address
    from ...tools.web.url import Target

log = logging.getLogger(__name__)

MAX_BYTES = 4 * LIMIT
"""Bytes of all instructions together; what comes after is named and not given."""
GLOB_SECONDS = 2.0
"""Seconds after which patterns are tried again; single files are looked at every time."""
CHECK_SECONDS = 0.5
"""Seconds between two looks in the midst of a run."""
PROSE = frozenset({".md", ".mdc", ".mdx", ".markdown", ".txt", ".rst", ".adoc"})
"""Suffixes that a project's config can name outside of the project: no key has such a name."""
_SAMPLE = 8_192

Stamp = tuple[int, int, int, int]
"""A file's state: mode, modification time (ns), size, inode."""


@dataclass(frozen=True, slots=True)
class InstructionFile:
    """A file to be read.

    Attributes:
        path: absolute.
        named: a person wrote its name down, so it is a mistake if it is missing.
        within: it must lie in the project, links followed.
        careful: the project's config names it: outside of the project only prose is read.
    """

    path: Path
    named: bool = False
    must_be_inside: bool = False
    named_by_project: bool = False


class Instructions:
    """The instructions of one workspace, read again when they change.

    Attributes:
        problems: what was not read and why, one sentence each, for the user.
    """

    def __init__(self, workspace: ToolHost) -> None:
        self._workspace = workspace
        self._pages = InstructionPages(self.from_project)
        self._cache: dict[Path, tuple[Stamp | None, str, str]] = {}
        self._glob_cache: tuple[object, float, list[InstructionFile]] = (None, 0.0, [])
        self._read_at: float | None = None
        self._texts: list[str] = []
        self.problems: list[str] = []

    async def texts(self, *, at_once: bool = True) -> list[str]:
        """Each file's or page's text, under a line with its source.

        Args:
            at_once: look whether files have changed; else only if that was not done in the last `CHECK_SECONDS` (a
                request takes longer than that to be answered, but a script's steps need not wait for a slow disk).
        """
        if not at_once and self._read_at is not None and time.monotonic() - self._read_at < CHECK_SECONDS:
            return self._texts
        self._read_at, self._texts = time.monotonic(), await self._read_all()
        return self._texts

    async def _read_all(self) -> list[str]:
        sources = self._instruction_files()
        sources += await self._configured()
        paths = dict.fromkeys(source.path for source in sources)
        by_path = {source.path: source for source in reversed(sources)}
        problems: list[str] = []
        read: list[tuple[str, str]] = []
        for path in paths:
            text, problem = self._read(by_path[path])
            if problem:
                problems.append(problem)
            if text:
                read.append((str(path), text))
        for path in [path for path in self._cache if path not in paths]:
            del self._cache[path]
        pages, failed = await self._pages.texts(self._urls())
        problems += failed
        texts: list[str] = []
        left = MAX_BYTES
        for name, text in [*read, *pages]:
            left -= len(text.encode("utf-8", "replace"))
            if left < 0:
                problems.append(f"{name} was omitted: the instructions are larger than {MAX_BYTES // 1024} kB together")
                texts.append(
                    f"Instructions from: {name}\n(omitted here because of their length; read them if you need them)"
                )
            else:
                texts.append(f"Instructions from: {name}\n{text}")
        if problems != self.problems:
            for problem in problems:
                if problem not in self.problems:
                    log.warning("instructions: %s", problem)
            self.problems = problems
        return texts

    # ------------------------------------------------------------------ which files

    def _instruction_files(self) -> list[InstructionFile]:
        """The global file, then the project's, the nearest last."""
        workspace = self._workspace
        home = workspace.config.home
        own = os.environ.get("OPENCODE_CONFIG_DIR")
        everywhere = [Path(os.path.abspath(own)) / "AGENTS.md"] if own else []
        everywhere.append(workspace.config.directories[0] / "AGENTS.md")
        if "CLAUDE.md" in instruction_names():
            everywhere.append(home / ".claude" / "CLAUDE.md")
        sources = [InstructionFile(path) for path in everywhere if path.is_file()][:1]
        if workspace.flags.project_config:
            folders = list(upwards(workspace.directory, self._project_root()))
            for name in instruction_names():
                paths = [folder / name for folder in reversed(folders) if (folder / name).is_file()]
                if paths:
                    sources += [InstructionFile(path, must_be_inside=True) for path in paths]
                    break
        return sources

    def _project_root(self) -> Path:
        workspace = self._workspace
        versioned = str(workspace.worktree) != workspace.worktree.anchor
        return workspace.worktree if versioned else workspace.directory

    def _entries(self) -> list[str]:
        entries = self._workspace.config.get("instructions", default=[]) or []
        return [entry.strip() for entry in entries if isinstance(entry, str) and entry.strip()]

    def _urls(self) -> list[str]:
        return [entry for entry in self._entries() if entry.startswith(("http://", "https://"))]

    async def _configured(self) -> list[InstructionFile]:
        """The files of the config's entries, in their order."""
        config, since, sources = self._glob_cache
        state = (self._workspace.config, self._workspace.directory)
        if config is None or config != state or time.monotonic() - since > GLOB_SECONDS:
            entries = [entry for entry in self._entries() if not entry.startswith(("http://", "https://"))]
            several = any(map(is_pattern, entries))
            sources = (
                await asyncio.to_thread(self._files_of_entries, entries) if several else self._files_of_entries(entries)
            )
            self._glob_cache = (state, time.monotonic(), sources)
        return list(sources)

    def _files_of_entries(self, entries: list[str]) -> list[InstructionFile]:
        out: list[InstructionFile] = []
        for entry in entries:
            of_project = self.from_project(entry)
            text = str(self._workspace.config.home) + entry[1:] if entry == "~" or entry.startswith("~/") else entry
            folders = [self._workspace.directory]
            if not os.path.isabs(text):
                folders = list(upwards(self._workspace.directory, self._project_root()))
            paths = [path for folder in reversed(folders) for path in self._files_of_entry(text, folder)]
            if not paths and not is_pattern(text):
                paths = [Path(os.path.normpath(folders[0] / text))]
            out += [InstructionFile(path, named=not is_pattern(text), named_by_project=of_project) for path in paths]
        return out

    @staticmethod
    def _files_of_entry(text: str, folder: Path) -> list[Path]:
        if is_pattern(text):
            return glob_files(text, folder)
        path = Path(os.path.normpath(folder / text))
        return [path] if path.exists() else []

    def from_project(self, entry: str) -> bool:
        """True if only files of the project name an entry: the user's own config is trusted, a cloned one is not."""
        config = self._workspace.config
        for source, content in config.sources:
            entries = content.get("instructions")
            names_it = isinstance(entries, list) and any(isinstance(e, str) and e.strip() == entry for e in entries)
            if names_it and source not in config.project_sources:
                return False
        return True

    # ------------------------------------------------------------------ reading

    def _read(self, source: InstructionFile) -> tuple[str, str]:
        """A file's text, and what is wrong with it; each may be empty."""
        path = source.path
        try:
            status = os.stat(path)
            now: Stamp | None = (status.st_mode, status.st_mtime_ns, status.st_size, status.st_ino)
        except OSError:
            now = None
        cached = self._cache.get(path)
        if cached is None or cached[0] != now or now is None:
            text, problem = self._read_now(source, now)
            cached = self._cache[path] = (now, text, problem)
        return cached[1], cached[2]

    def _read_now(self, source: InstructionFile, now: Stamp | None) -> tuple[str, str]:
        path = source.path
        if now is None:
            return "", f"{path} does not exist; the config's instructions name it" if source.named else ""
        refused = self._refusal(source)
        if refused:
            return f"(not included: {refused})", f"{path} was not read: {refused}"
        if not stat.S_ISREG(now[0]):  # a pipe would never end
            return "", f"{path} was not read: it is no plain file"
        try:
            with path.open("rb") as file:
                data = file.read(LIMIT)
        except OSError as error:
            why = error.strerror or str(error)
            return f"(not included: {why})", f"{path} was not read: {why}"
        if b"\0" in data[:_SAMPLE]:
            return "(not included: it is not a text file)", f"{path} was not read: it is no text"
        text = decode(data if now[2] <= LIMIT else whole_characters(data)).shown.strip()
        if now[2] > LIMIT:
            text += f"\n(cut here: the file has {now[2]:,} bytes; read the rest if you need it)"
            return text, f"{path} was cut: only its first {LIMIT // 1024} kB are included"
        return text, ""

    def _refusal(self, source: InstructionFile) -> str:
        workspace = self._workspace
        inside = workspace.contains(source.path)
        if source.must_be_inside and not inside:
            return "it leads outside of the project"
        if source.named_by_project and not inside and source.path.resolve().suffix.lower() not in PROSE:
            return (
                "the project's config names a file outside the project that is not a text file; name it in "
                f"{workspace.config.directories[0] / 'opencode.json'} if that is meant"
            )
        if source.named_by_project:
            pattern = workspace.relative(source.path)
            rules = [*workspace.agent(None).model_permission, *workspace.rules]
            rule = workspace.permissions.check("read", [pattern], rules)[0]
            if rule.action == "deny":
                return f"a rule denies reading it (read {rule.pattern})"
        return ""


def whole_characters(data: bytes) -> bytes:
    """The data without the beginning of a character at its end."""
    for cut in range(1, min(4, len(data)) + 1):
        byte = data[-cut]
        if byte & 0xC0 != 0x80:
            width = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            return data[:-cut] if width > cut else data
    return data


# ---------------------------------------------------------------------- patterns


MOST_FILES = 100
"""Files that one pattern can name."""
MOST_ENTRIES = 50_000
"""Entries of folders that one pattern looks at."""
SKIPPED_FOLDERS = frozenset(
    {".git", ".hg", ".svn", "node_modules", ".venv", "venv", "__pycache__", ".tox", ".mypy_cache"}
)
"""Folders that are not entered, unless the pattern names them."""
_MAGIC = re.compile(r"[*?\[{]")


def is_pattern(text: str) -> bool:
    """Return whether a path has wildcards."""
    return _MAGIC.search(text) is not None


def glob_files(pattern: str, folder: Path) -> list[Path]:
    """The files of a pattern, sorted.

    Args:
        pattern: with ``*`` and ``?`` within a name, ``**`` over folders, ``[abc]`` and ``{a,b}``. A relative one starts
            in `folder`.
        folder: where it starts.
    """
    parts = os.path.join(folder, pattern).replace(os.sep, "/").split("/")
    first = next((i for i, part in enumerate(parts) if is_pattern(part)), len(parts) - 1)
    top = Path("/".join(parts[:first]) or "/")
    rest = parts[first:]
    expression = _compiled("/".join(rest))
    depth = None if "**" in rest else len(rest)
    paths = (path for path in _walk(top, depth, set(rest)) if expression.fullmatch(path.relative_to(top).as_posix()))
    return sorted(path for _, path in zip(range(MOST_FILES), paths, strict=False))


def _walk(top: Path, depth: int | None, named: set[str]) -> Iterator[Path]:
    """The files below a folder, at most `depth` names away; links to folders are not followed."""
    left = MOST_ENTRIES
    folders = [(top, 1)]
    while folders:
        folder, level = folders.pop(0)
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            left -= 1
            if left < 0:
                return
            if entry.is_dir(follow_symlinks=False):
                if (depth is None or level < depth) and (entry.name not in SKIPPED_FOLDERS or entry.name in named):
                    folders.append((Path(entry.path), level + 1))
            elif depth is None or level == depth:
                yield Path(entry.path)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return glob_regex("/" + pattern)
    except re.error:  # such as [z-a]
        return re.compile(re.escape(pattern))


# ---------------------------------------------------------------------- pages


PAGE_SECONDS = 5.0
"""Seconds a page has (OpenCode's limit)."""
FRESH_SECONDS = 600.0
"""Seconds after which a page is fetched again."""
RETRY_SECONDS = 60.0
"""Seconds after which a page that could not be fetched is tried again."""


class InstructionPages:
    """The pages of one workspace.

    `from_project` is true for an address that only files of the project name.
    """

    def __init__(self, from_project: Callable[[str], bool]) -> None:
        self._from_project = from_project
        self._pages: dict[str, tuple[float, str, str]] = {}

    async def texts(self, urls: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
        """The fetched pages with their addresses, and a sentence about each page that failed."""
        if not urls:
            return [], []
        urls = list(dict.fromkeys(urls))
        now = time.monotonic()
        due = [url for url in urls if url not in self._pages or now >= self._pages[url][0]]
        for url, (text, problem) in zip(due, await asyncio.gather(*map(self._fetch, due)), strict=True):
            before = self._pages[url][1] if url in self._pages else ""
            next_try = time.monotonic() + (RETRY_SECONDS if problem else FRESH_SECONDS)
            self._pages[url] = (next_try, text or before, problem)  # an old copy is better than none
        texts = [(url.partition("?")[0], self._pages[url][1]) for url in urls if self._pages[url][1]]
        return texts, [self._pages[url][2] for url in urls if self._pages[url][2]]

    async def _fetch(self, url: str) -> tuple[str, str]:
        # loaded with the first page: most projects name none
        from ...tools.web import content_type
        from ...tools.web.http_client import ACCEPTED
        from ...tools.web.page_fetch import Clock, fetch
        from ...tools.web.url import parse, shown

        name = shown(url.partition("?")[0])  # what follows may be a key
        try:
            target = parse(url)
            headers = {"User-Agent": "opencode", "Accept": "text/markdown, text/plain, */*;q=0.5"}
            guard = _Guard(own=not self._from_project(url))
            page = await fetch(
                target, {**headers, "Accept-Encoding": ACCEPTED}, Clock(PAGE_SECONDS), guard, lambda count, total: None
            )
            text = content_type.decode(page.body, content_type.codec(page.body, page.content_type, markup=False))
            if content_type.kind(page.body, page.content_type).attachment or content_type.is_binary(text):
                return "", f"{name} was not read: it is no text"
        except ToolError as error:
            return "", f"{name} could not be fetched: {str(error).replace(url, name)}"
        except (OSError, ValueError) as error:
            return "", f"{name} could not be fetched: {type(error).__name__}"
        size = len(text.encode("utf-8", "replace"))
        if size > LIMIT:
            text = text.encode("utf-8", "replace")[:LIMIT].decode("utf-8", "ignore")
            return f"{text}\n(cut here: the page has {size:,} bytes)", ""
        return text.strip(), ""


class _Guard:
    """Allows public addresses, and private ones that the user's own configuration names."""

    def __init__(self, own: bool) -> None:
        self._own = own

    def check(self, target: Target, address: Address) -> None:
        """Let an address pass, or raise `ToolError`."""
        from ...tools.web.public_addresses import is_metadata, not_public

        why = not_public(address)
        if why is not None and (not self._own or is_metadata(address)):
            raise ToolError(f"{target.host} is {why}; a project's config can only name public addresses")

    async def ask_redirect(self, before: Target, after: Target) -> None:
        """Redirects are followed; where they lead is checked like the first address."""
