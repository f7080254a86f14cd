"""Where the paths of a shell command lead: out of the project, to start-up files, to files that rules keep secret."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from glob import iglob
from itertools import islice
from pathlib import Path

from ...core.errors import ToolError
from ...core.paths import follow_links
from ...core.permission.sensitive_files import is_startup_file
from . import catalog, startup_files
from .shell_requests import ShellRequests, add
from .word_expansion import Word

_MOST = 16
"""Folders that relative paths may start in before that counts as not known."""
FOLDERS = 200
"""Folders and unknown paths that are listed."""
ENTRIES = 500
"""Names that a wildcard or a copied folder is followed to."""
WALKED = 50
"""Folders below one that a program reads as a whole that are looked at."""
_SKIPPED = frozenset({".git", "node_modules", ".venv", "venv", "__pycache__", "site-packages"})
_ROOT = re.compile(r"[\"']?(?:~|\$\{?(\w+)\}?[\"']?/|\$\{[^}]*\}[\"']?/|[$`][^\s]*[)`][\"']?/)")
"""The beginning of a path whose first folder is only known at run time: ``$x/``, ``~user``, ``$(command)/``."""
_PIECES = re.compile(r"[=:,@|<]")
_SUFFIX = re.compile(r" (?:-\w*[Siz]|--(?:suf|in-p)[\w-]*)[ =]?(\S+)")
"""Options that give backups another name: ``cp -bS rc x .env`` makes ``.envrc``."""
_ATTACHED = re.compile(r"[./~]\S+")
_TEXT_OPTION = re.compile(
    r"--(?:grep|author|committer|message|format|pretty|regexp|expression|include|exclude|since|until)="
)
_TEXT_OPTIONS = frozenset({"-d", "-t", "-s", "-F", "-k", "-IFS"})
"""Options whose value is often a bare slash."""


class Paths:
    """Notes the folders outside the project that a command's paths reach, and the start-up files it may write.

    Args:
        requests: where they are noted.
        cwd: where the command runs.
        contains: whether a path is inside the project.
        home: where ``cd`` without an argument goes; None if that is not known.
        protected: folders that count as start-up files: where the product keeps its data.

    Attributes:
        moved: whether there was a ``cd``.
        replaced: whether a program of the line may have put links in place of files.
        written: names of the files that the line writes, or may, without their folders.
        assigned: variables that the line sets to texts which were looked at.
    """

    def __init__(
        self,
        requests: ShellRequests,
        cwd: Path,
        contains: Callable[[Path], bool],
        home: str | None,
        protected: Sequence[str] = (),
    ) -> None:
        self.moved = False
        self.replaced = False
        self.written: set[str] = set()
        self.assigned: set[str] = set()
        self._requests = requests
        self._contains = contains
        self._home = home
        self._protected = [follow_links(folder) for folder in protected]
        self._real = follow_links(cwd) + os.sep if contains(cwd) else None
        self._starts: list[str] | None = [str(cwd)]
        """Where relative paths may start by now; None when only running it can tell."""
        self._last = [str(cwd)]
        self._real_folders: dict[str, str] = {}

    # ------------------------------------------------------------------ a command's words

    def look(self, name: str, arguments: list[Word], *, text: bool = False, lists: bool = False) -> list[str]:
        """Note the paths among a command's words; returns the start-up files among them.

        Args:
            name: the program.
            arguments: its words.
            text: what it prints is read as names of files by something else.
            lists: the same, and it may be a program that lists files.
        """
        reads = name == "du" and any(word.shown.startswith("--f") for word in arguments)  # --files0-from
        if name in catalog.NO_PATHS and not text and not reads:
            return []
        if name == "dd":
            arguments = [Word(w.source, w.text and w.text.removeprefix("of=").removeprefix("if=")) for w in arguments]
        writes = not catalog.only_reads(name, arguments)
        startup: list[str] = []
        for word, before in zip(self._operands(name, arguments), ["", *(w.shown for w in arguments)], strict=False):
            if (word.text == "/" and before in _TEXT_OPTIONS) or (name == "chmod" and word.source.startswith("+")):
                continue
            startup += self._word(name, word, split=text)
            if self.replaced and name in catalog.READERS and word.shown[:1] not in ("", "-") and not self.exists(word):
                self.unknown(word.source)
            if writes and name in catalog.COPIERS and word is not arguments[-1]:
                startup += self._copied_startup_files(word)
        if name in catalog.MOVERS:
            self._moves(arguments)
        recurses, options = catalog.RECURSIVE.get(name), " ".join(["", *(word.shown for word in arguments)])
        if writes:
            backups = (w.shown + match[1] for match in _SUFFIX.finditer(options) for w in arguments)
            startup += filter(is_startup_file, backups)
        listed = catalog.LISTING.get(name) if lists else None
        if any(pattern is not None and re.search(pattern, options) for pattern in (recurses, listed)):
            self._note_read_files(name, arguments, options)
        if name in catalog.EXTRACTORS:
            startup += self._unpacked_startup_files(arguments)
        return startup if writes else []

    def _word(self, name: str, word: Word, *, split: bool) -> list[str]:
        if (name in catalog.PATH_COMMANDS or name in catalog.WRITERS) and not word.shown.startswith("-"):
            if name in catalog.WRITERS or name in ("cp", "mv"):
                self.write(word.shown)
            return self.note_path(word)
        if word.text is None:
            root = _ROOT.match(word.source)
            if ".." in re.split(r"[/=\"':]", word.source) or (root and (root[1] or "") not in self.assigned):
                self.unknown(word.source)
            return []
        candidates = _candidates(word.text, split=split)
        return [file for path in candidates for file in self.note_path(Word(word.source, path, word.glob), sure=False)]

    def _operands(self, name: str, arguments: list[Word]) -> list[Word]:
        """The words that may be paths: not the first of a program that looks for a text."""
        if name not in catalog.PATTERN_FIRST:
            return arguments
        out, explicit = list(arguments), False
        for index, word in enumerate(arguments):
            if re.fullmatch(r"--(?:regexp|expression|file|from-file).*|-\w*f.*|-\w*e.+", word.shown):
                break
            if index and arguments[index - 1].shown == "-e":
                out[index], explicit = Word("", ""), True
            elif not word.shown.startswith("-"):
                valued = index > 0 and arguments[index - 1].shown.startswith(("--", "-L")) and self.exists(word)
                out[index] = word if explicit or valued else Word("", "")
                break
        return out

    def _moves(self, arguments: list[Word]) -> None:
        """After ``cd``: paths may start there too (or still where they did, if it fails or runs in a subshell)."""
        self.moved = True
        targets = [word for word in arguments if not word.source.startswith("-")]
        if not arguments and self._home is not None:
            targets = [Word("~", self._home)]
            self.note_path(targets[0])
        for word in targets:
            if word.text is None or word.glob or self._starts is None or len(self._starts) >= _MOST:
                self._starts = None
                return
            self._last = [os.path.normpath(os.path.join(start, word.text)) for start in self._starts]
            add(self._starts, self._last)

    @contextmanager
    def after_move(self, succeeded: bool) -> Iterator[None]:
        """Within it, paths start where the last ``cd`` led, if that has `succeeded`."""
        starts = self._starts
        if succeeded and starts is not None:
            self._starts = self._last
        count = len(self._starts or [])
        yield
        if self._starts is None or starts is None:
            self._starts = None
        else:
            self._starts = [*starts, *(start for start in self._starts[count:] if start not in starts)]

    # ------------------------------------------------------------------ one path

    def note_path(self, word: Word, *, sure: bool = True) -> list[str]:
        """A path the command touches: note its folder if it is outside the project; returns the start-up file it is.

        Args:
            word: the path.
            sure: it is one; else it may be some other text, which counts if there is such a place.
        """
        text = word.text
        if len(self._requests.directories) + len(self._requests.unknown) >= FOLDERS:
            add(self._requests.unknown, ["..."])  # more than a person would read
            return []
        prefix = _before_wildcard(text) if text is not None and word.glob else text
        absolute = text is not None and os.path.isabs(text)
        if prefix is None or "\0" in prefix or (self._starts is None and not absolute and sure):
            self.unknown(word.source)
            return []
        if not text or not prefix:
            return []
        startup: list[str] = []
        if prefix.startswith("~/") and not sure and self._home is not None:
            absolute, prefix = True, self._home + prefix[1:]
        for start in [""] if absolute else self._starts or []:
            startup += self._note_location(os.path.join(start, prefix), word.glob, sure)
            if word.glob:
                matches = iglob(os.path.join(start, text))
                for path in islice(matches, ENTRIES):
                    startup += self._note_location(path, False, sure)
        return startup

    def _note_location(self, path: str, folder: bool, sure: bool) -> list[str]:
        written = os.path.normpath(path)
        try:
            actual, physical = self._resolve(written), follow_links(path) if ".." in path.split("/") else None
        except ToolError:
            self.unknown(path)
            return []
        if physical not in (None, actual):  # the shell's cd and the system read link/.. in other ways
            startup = self._note_location(written, folder, sure)
            return startup + self._note_location(physical, folder, sure)
        inside = self._real is not None and (actual + os.sep).startswith(self._real) and actual == written
        if not inside and not self._contains(Path(written)):
            likely = sure or ".." in path.split("/") or self._is_plausible(written, actual)
            if not likely or (not sure and catalog.HARMLESS_TARGETS.fullmatch(written)):
                return []
            target = written if self._contains(Path(actual)) else actual
            is_folder = folder or os.path.isdir(target)
            add(self._requests.directories, [target if is_folder else os.path.dirname(target)])
        elif self.replaced and not folder and not is_startup_file(actual) and sure:
            self.unknown(path)
        if not folder and len(self._requests.reads) < ENTRIES and os.path.isfile(actual):
            add(self._requests.reads, [written, actual])
        if any((actual + os.sep).startswith(start + os.sep) for start in self._protected):
            return [path]
        return [path] if any(is_startup_file(name, folder=not folder) for name in (path, actual)) else []

    def _resolve(self, path: str) -> str:
        """The path with its links followed; a folder is looked up once."""
        folder, name = os.path.split(path)
        if folder not in self._real_folders:
            self._real_folders[folder] = follow_links(folder)
        joined = os.path.join(self._real_folders[folder], name)
        return follow_links(joined) if os.path.islink(joined) else joined

    def _is_plausible(self, path: str, actual: str) -> bool:
        """Return whether a text that leads out of the project is likely a path."""
        folder = os.path.dirname(actual)
        at_home = self._home is not None and path.startswith(self._home + os.sep)
        return at_home or os.path.lexists(actual) or (folder != "/" and os.path.isdir(folder))

    def unknown(self, source: str) -> None:
        """A path that only running the line can tell."""
        add(self._requests.unknown, [source])
        add(self._requests.reasons, [f"where {source} points is only known at run time"])

    # ------------------------------------------------------------------ what comes with a path

    def _copied_startup_files(self, word: Word) -> list[str]:
        """The start-up files inside a folder that is copied or moved as a whole."""
        for start in self._starts or []:
            top = os.path.join(start, word.shown)
            walked = (os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names)
            found = [name for name in islice(walked, ENTRIES) if is_startup_file(os.path.relpath(name, top))]
            if found:
                return found[:1]
        return []

    def _note_read_files(self, name: str, arguments: list[Word], options: str) -> None:
        """What a program reads of the folders among its words: files, and links that it follows out of the project."""
        shown = [word.shown for word in arguments]
        named = (
            _chosen(shown) if name == "find" else [word[10:].lower() for word in shown if word.startswith("--include=")]
        )
        follows = re.search(catalog.FOLLOWING.get(name, "$^"), options) is not None
        hidden = name not in ("rg", "ag", "ack", "fd", "ls") or re.search(r" -\w*[uH.aA]| --(?:hid|unr|al)", options)
        deep = name != "ls" or " -R" in options
        operands = [os.path.join(start, path) for start in self._starts or [] for path in shown]
        everywhere = self._starts or [] if name in catalog.PATTERN_FIRST or name in catalog.LISTING else []
        stack = [path for path in operands if os.path.isdir(path)] or list(everywhere)
        for _ in range(WALKED):
            if not stack:
                break
            for entry in _entries(stack.pop()):
                if entry.name in _SKIPPED or (entry.name.startswith(".") and not hidden):
                    continue
                if follows and entry.is_symlink():
                    self.note_path(Word(entry.path, entry.path))
                elif entry.is_dir(follow_symlinks=False):
                    stack += [entry.path] if deep else []
                elif not named or any(fnmatchcase(entry.name.lower(), pattern) for pattern in named):
                    self._requests.reads.append(entry.path)

    def _unpacked_startup_files(self, arguments: list[Word]) -> list[str]:
        """The start-up files that an archive or a patch among the words brings."""
        return [
            name
            for word in arguments
            for piece in _candidates(word.shown)
            for start in self._starts or []
            for name in startup_files.in_archive(os.path.join(start, piece))
        ]

    def exists(self, word: Word) -> bool:
        """Return whether a word names a file that is there."""
        return "\0" not in word.shown and any(
            os.path.exists(os.path.join(start, word.shown)) for start in self._starts or []
        )

    def is_program(self, text: str) -> bool:
        """Return whether a word names a program, in a folder of ``PATH`` or by its path."""
        starts = self._starts or [] if os.sep in text else [""]
        return "\0" not in text and any(shutil.which(os.path.join(start, text)) for start in starts)

    def option_like(self, word: Word) -> bool:
        """Return whether a wildcard may become a word that a program takes for an option."""
        if not word.glob or word.text is None:
            return False
        if word.text[0] == "-" or (word.text[0] in "*?[" and (self.written or self._starts is None)):
            return True
        if word.text[0] not in "*?[":
            return False
        return any(
            entry.name.startswith("-") and fnmatchcase(entry.name, word.text.partition("/")[0])
            for start in self._starts or []
            for entry in _entries(start)
        )

    def is_bare_repository(self, folder: str | None) -> bool:
        """Return whether git started in a folder that a word names would take its settings from there."""
        if folder is None or self._starts is None:
            return True
        for start in self._starts:
            current = os.path.normpath(os.path.join(start, folder))
            while not os.path.lexists(os.path.join(current, ".git")):
                if os.path.exists(os.path.join(current, "HEAD")) and os.path.isdir(os.path.join(current, "objects")):
                    return True
                if current == os.path.dirname(current):
                    break
                current = os.path.dirname(current)
        return False

    # ------------------------------------------------------------------ what the line writes

    def write(self, path: str) -> None:
        """A file that the line writes, or may."""
        self.written.add(os.path.basename(path.rstrip("/")))

    def wrote(self, word: Word) -> bool:
        """Return whether a word may name a file that the line has written before."""
        return bool(self.written) and os.path.basename(word.shown) in self.written


def _chosen(words: list[str]) -> list[str]:
    """The patterns of which a file's name has to match one, among the words of a find; none if it need not."""
    chosen = [
        value.lower()
        for before, option, value in zip(["", *words], words, [*words[1:], ""], strict=False)
        if option in ("-name", "-iname") and before not in ("!", "-not")
    ]
    return chosen if sum(word in ("-o", "-or", ",") for word in words) < len(chosen) else []


def _candidates(text: str, *, split: bool = False) -> Iterator[str]:
    """The pieces of a word that may be paths: ``--file=x``, ``host:x``, ``-Cx``, ``@x``."""
    if split and any(map(str.isspace, text)):
        for piece in text.split():
            yield from _candidates(piece)
        return
    if _TEXT_OPTION.match(text):
        return
    if not text.startswith("-"):
        yield text
    elif not text.startswith("--"):
        yield from (text[at:] for at in (2, 3, 4) if text[at:] != "/")
        if attached := _ATTACHED.search(text):
            yield attached[0]
    if any(map(str.isspace, text)):
        return
    if match := re.match(r"[\w=-]*file://[^/]*(/.*)", text):
        yield match[1]
    for match in islice(_PIECES.finditer(text), 10):
        yield text[match.end() :]
        yield _PIECES.split(text[match.end() :], maxsplit=1)[0]


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(islice(entries, ENTRIES))
    except OSError:
        return []


def _before_wildcard(text: str) -> str | None:
    """The folder whose entries a wildcard is matched with; None if ``..`` comes after it."""
    parts = text.split("/")
    first = next((i for i, part in enumerate(parts) if any(c in part for c in "*?[")), len(parts))
    if ".." in parts[first:]:
        return None
    return "/".join(parts[:first]) or ("/" if text.startswith("/") else ".")
