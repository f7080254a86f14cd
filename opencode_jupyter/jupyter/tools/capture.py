"""The output of code that a tool runs in the user's namespace: it goes to the tool's card, never into a cell.

Prints and displays are separated by a context variable, not by replacing ``sys.stdout``: threads and
earlier tasks keep their own output, and those that the code starts inherit the variable.
Their output after the call has ended goes to the cell that made the call. File descriptors 1 and 2 have
no contexts; in a kernel they are redirected into a pipe while the code runs, for child processes and C code.
They are restored while it awaits, since other cells run then.
"""

from __future__ import annotations

import base64
import binascii
import builtins
import codecs
import contextlib
import contextvars
import functools
import getpass
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ...core.result import Attachment
from ...core.result_values import render_displayed
from ...core.value_tables import Rendering
from ..cards.display import CAPTURE
from .traceback_text import plain

QUEUED = 8 * 1024 * 1024
"""Characters that wait to be read; code that prints faster is blocked."""

MIMES = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}
"""Pictures that are attached, best first, and their file suffixes. SVG is text, and may contain script."""
MAX_PICTURES = 20
"""Pictures of one run that are attached."""
LARGEST = 5 * 1024 * 1024
"""Bytes of one of them."""
SOURCE_CHARS = 20_000
"""Characters of a source (HTML, Markdown) shown where there is no plain text."""
_EMPTY = "<IPython.core.display."
"""Start of the uninformative plain text of ``display(HTML(...))``."""

RENDERING = "application/x-opencode-rendering"
"""MIME type of the number under which a capture keeps the rendering of a bundle's object."""


class NoInputError(RuntimeError):
    """The code asked for input."""

    def __init__(self, what: str = "input()", instead: str = "Put the value into the code.") -> None:
        super().__init__(f"{what} is not available to code that a tool runs: nobody can answer its prompt. {instead}")


class Capture:
    """The output of one run of code. Made and opened on the main thread; `take` may be called from any.

    Args:
        shell: IPython's shell.
        descriptors: redirect file descriptors 1 and 2 here too.

    Attributes:
        attachments: pictures that were displayed.
        tables: tables that were displayed (`core.result.TABLES`).
        described: the output's texts about these pictures and tables, for a model.
        closed: the run has ended: later output goes to the cell that made the call.
    """

    def __init__(self, shell: Any, *, descriptors: bool) -> None:
        self._shell = shell
        self._patches: list[_Patch] = []
        self._threads: weakref.WeakKeyDictionary[threading.Thread, contextvars.Context] = weakref.WeakKeyDictionary()
        self._pieces: deque[str] = deque()
        self._queued = 0
        self._taken = 0
        self._pid = os.getpid()
        self._at_start = True
        self._pipe = _Pipe(self._from_descriptor) if descriptors else None
        self._finished = False
        self.attachments: list[Attachment] = []
        self.tables: list[dict[str, Any]] = []
        self.described: list[str] = []
        self._renderings: dict[str | None, Rendering] = {}
        self.closed = False

    # ------------------------------------------------------------------ on the main thread

    def open(self) -> None:
        """Begin to capture."""
        if self._pipe is not None:
            self._pipe.open(sys.stdout)
        for stream in (sys.stdout, sys.stderr):
            self._patch(stream, "write", self._write_to)
        self._patch(self._shell.display_formatter, "format", self._format_to)
        self._patch(self._shell.display_pub, "publish", self._publish_to)
        self._patch(self._shell.display_pub, "clear_output", self._replacement(lambda *_, **__: None))
        self._patch(self._shell, "_showtraceback", self._traceback_to)
        self._patch(self._shell, "ask_exit", self._replacement(_leave))
        self._patch(builtins, "input", self._replacement(_no_input))
        self._patch(getpass, "getpass", self._replacement(_no_input))
        self._patch(sys, "breakpointhook", self._replacement(_no_debugger))
        self._patch(self._shell.payload_manager, "write_payload", self._payload_to)
        self._patch(threading.Thread, "start", self._start_thread)
        self._patch(threading, "excepthook", self._thread_failed)

    def close(self) -> None:
        """Restore everything; later output is not captured."""
        self.closed = True
        for patch in reversed(self._patches):
            patch.undo()
        self._patches.clear()
        if self._pipe is not None:
            self._pipe.close()

    @contextlib.contextmanager
    def context(self) -> Iterator[None]:
        """Capture output inside, on this thread and in tasks that begin inside."""
        token = CAPTURE.set(self)
        try:
            yield
        finally:
            CAPTURE.reset(token)

    @contextlib.contextmanager
    def descriptors(self) -> Iterator[None]:
        """Capture output of C code and of child processes that begin inside."""
        if self._pipe is not None:
            self._pipe.redirect()
        try:
            yield
        finally:
            if self._pipe is not None:
                self._pipe.restore()

    def write(self, text: str) -> int:
        """Add text, from any thread."""
        if os.getpid() != self._pid:  # a forked child: its memory is not ours, its file descriptor is
            os.write(1, text.encode("utf-8", "replace"))
            return len(text)
        if text:
            while self._queued - self._taken > QUEUED and not self.closed:
                time.sleep(0.01)
            self._pieces.append(text)
            self._queued += len(text)
            self._at_start = text.endswith("\n")
        return len(text)

    def write_line(self, text: str) -> None:
        """Add text on lines of its own."""
        start = "" if self._at_start else "\n"
        self.write(start + text.removesuffix("\n") + "\n")

    def show(self, data: dict[str, Any]) -> None:
        """Add a MIME bundle: its text and its pictures."""
        rendering = self._renderings.pop(data.get(RENDERING), None)
        if rendering is not None:
            self._show_rendering(rendering)
            return
        picture, note = picture_of(data, len(self.attachments))
        if picture is not None:
            self.attachments.append(picture)
        text = "\n".join(filter(None, [bundle_text(data, picture is not None), note]))
        if text:
            self.write_line(text)

    def _show_rendering(self, rendering: Rendering) -> None:
        """Add a table or a picture; the output describes it for a model, since a card draws it."""
        for picture in rendering.attachments[: max(0, MAX_PICTURES - len(self.attachments))]:
            end = (picture.filename or "").rpartition(".")[2] or "png"
            self.attachments.append(replace(picture, filename=f"figure-{len(self.attachments) + 1}.{end}"))
        self.tables += rendering.tables[: max(0, MAX_PICTURES - len(self.tables))]
        self.described.append(rendering.text)
        self.write_line(rendering.text)

    # ------------------------------------------------------------------ on the engine's thread

    def take(self) -> str:
        """The text since the last time."""
        pieces = []
        while self._pieces:
            pieces.append(self._pieces.popleft())
        text = "".join(pieces)
        self._taken += len(text)
        return text

    @property
    def is_drained(self) -> bool:
        """Whether the descriptors' pipe has ended."""
        return self._pipe is None or self._pipe.ended.is_set()

    def _from_descriptor(self, text: str) -> bool:
        while self._queued - self._taken > QUEUED and not self.closed:
            time.sleep(0.005)  # the pipe fills up, and who writes waits
        if self._finished:
            return False
        self._pieces.append(text)
        self._queued += len(text)
        return True

    def finish(self) -> None:
        """From now on, output through the descriptors is the calling cell's too."""
        self.closed = self._finished = True

    # ------------------------------------------------------------------ replacements

    def _patch(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        with contextlib.suppress(AttributeError, TypeError):  # an object of the user's that refuses attributes
            self._patches.append(_Patch(owner, name, make(getattr(owner, name))))

    def _is_active(self) -> bool:
        return CAPTURE.get() is self and not self.closed

    def _write_to(self, original: Callable[[str], Any]) -> Callable[[str], Any]:
        def write(text: str) -> Any:
            return self.write(text) if isinstance(text, str) and self._is_active() else original(text)

        return write

    def _format_to(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Render frames and figures as results of own tools are; a bundle names the rendering by a number."""

        def format(value: Any, *args: Any, **kwargs: Any) -> Any:
            data, metadata = original(value, *args, **kwargs)
            rendering = None
            if self._is_active() and data:
                with contextlib.suppress(Exception):  # an object of the user's that fails; its own form stands
                    rendering = render_displayed(value)
            if rendering is None:
                return data, metadata
            number = str(len(self.described) + len(self._renderings))
            self._renderings[number] = rendering
            return {**data, RENDERING: number}, metadata

        return format

    def _publish_to(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def publish(data: Any, *args: Any, **kwargs: Any) -> Any:
            if not self._is_active():
                return original(data, *args, **kwargs)
            self.show(data)
            return None

        return publish

    def _traceback_to(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """A traceback that IPython shows while the code runs: of ``%run``, or of a value that can't be shown."""

        def show(kind: Any, error: Any, lines: Any, *rest: Any) -> Any:
            if not self._is_active():
                return original(kind, error, lines, *rest)
            self.write_line(plain(lines))
            return None

        return show

    def _replacement(self, other: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(original)
            def replaced_in_cell(*args: Any, **kwargs: Any) -> Any:
                return other(*args, **kwargs) if self._is_active() else original(*args, **kwargs)

            return replaced_in_cell

        return make

    def _payload_to(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Payloads for the calling cell's page: the pager (``name?``), a text for the next cell (``%load``)."""

        def write(data: Any, *args: Any, **kwargs: Any) -> Any:
            if not self._is_active() or not isinstance(data, dict):
                return original(data, *args, **kwargs)
            shown = data.get("data") if data.get("source") == "page" else {"text/plain": data.get("text")}
            words = bundle_text(shown) if isinstance(shown, dict) else ""
            if words:
                self.write_line(plain([words]))
            return None

        return write

    def _thread_failed(self, original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Report a thread's exception in its own context, which has been left by then."""

        def report(args: Any) -> None:
            context = self._threads.get(args.thread) if args.thread is not None else None
            original(args) if context is None else context.run(original, args)

        return report

    def _start_thread(self, original: Callable[[threading.Thread], None]) -> Callable[[threading.Thread], None]:
        @functools.wraps(original)
        def start(thread: threading.Thread) -> None:
            if self._is_active():  # before Python 3.14 a thread does not inherit context variables
                self._threads[thread] = context = contextvars.copy_context()
                thread.run = functools.partial(context.run, thread.run)  # type: ignore[method-assign]
            original(thread)

        return start


def current() -> Capture | None:
    """The capture of this context, if it has not ended."""
    capture = CAPTURE.get()
    return capture if capture is not None and not capture.closed else None


def _no_input(*_: Any, **__: Any) -> str:
    raise NoInputError


def _no_debugger(*_: Any, **__: Any) -> None:
    raise NoInputError("breakpoint()", "Print what you want to see.")


def _leave(*_: Any, **__: Any) -> None:
    raise SystemExit(0)


class _Patch:
    """An attribute in the place of another, until `undo`."""

    def __init__(self, owner: Any, name: str, replacement: Any) -> None:
        self._owner, self._name, self._replacement = owner, name, replacement
        self._had = name in vars(owner)
        self._before = vars(owner).get(name)
        setattr(owner, name, replacement)

    def undo(self) -> None:
        if vars(self._owner).get(self._name) is not self._replacement:
            return  # replaced again; that one calls ours, which calls the original
        if self._had:
            setattr(self._owner, self._name, self._before)
        else:
            delattr(self._owner, self._name)


class _Pipe:
    """A pipe with a reader thread between `open` and `close`, to which file descriptors 1 and 2 may lead."""

    def __init__(self, give: Callable[[str], bool]) -> None:
        self._give = give
        self._before: list[int] = []
        self._write_end: int | None = None
        self.ended = threading.Event()

    def open(self, late: Any) -> None:
        """Begin to read; text that `give` refuses is written to `late`, as the calling cell's."""
        read_end, self._write_end = os.pipe()
        context = contextvars.copy_context()
        reader = threading.Thread(
            target=context.run, args=(self._read, read_end, late.write), name="opencode-capture", daemon=True
        )
        reader.start()

    def redirect(self) -> None:
        """Redirect the descriptors here."""
        if self._write_end is None:
            return
        _flush_c()
        self._before = [os.dup(1), os.dup(2)]
        os.dup2(self._write_end, 1)
        os.dup2(self._write_end, 2)

    def restore(self) -> None:
        """Restore the descriptors. A signal may end this early; calling it again does the rest."""
        if not self._before:
            return
        _flush_c()
        while self._before:
            os.dup2(self._before[-1], len(self._before))
            os.close(self._before.pop())

    def _read(self, read_end: int, late: Callable[[str], Any]) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        with contextlib.suppress(OSError, ValueError):
            while data := os.read(read_end, 65536):
                text = decoder.decode(data)
                if text and not self._give(text):
                    late(text)
        os.close(read_end)
        self.ended.set()

    def close(self) -> None:
        """Restore the descriptors. The reader ends when the last child that still writes has ended."""
        self.restore()
        if self._write_end is not None:
            os.close(self._write_end)
            self._write_end = None


def _flush_c() -> None:
    """Have C's ``stdout`` written out, which it would keep for later: to whatever cell runs then."""
    flush = _c_flush()
    if flush is not None:
        flush()


@functools.cache
def _c_flush() -> Callable[[], Any] | None:
    try:
        import ctypes

        library = ctypes.CDLL(None)
        stream = ctypes.c_void_p.in_dll(library, "__stdoutp" if sys.platform == "darwin" else "stdout")
    except (ImportError, OSError, TypeError, ValueError):
        return None
    return lambda: library.fflush(stream)


# ---------------------------------------------------------------------- MIME bundles


def picture_of(data: dict[str, Any], before: int) -> tuple[Attachment | None, str]:
    """The picture of a bundle in the best form it has, and why it is left out; None and "" if it has none.

    Args:
        data: MIME type -> content; pictures as bytes or base64 text.
        before: pictures that the run has attached already.
    """
    for mime, suffix in MIMES.items():
        content = _bytes(data.get(mime))
        if content is None:
            continue
        if before >= MAX_PICTURES:
            return None, f"[a picture omitted: {MAX_PICTURES} are attached already]"
        if len(content) > LARGEST:
            return None, f"[a picture of {len(content) / 1e6:.1f} MB omitted: the limit is 5 MB]"
        return Attachment.from_bytes(content, mime, f"figure-{before + 1}.{suffix}"), ""
    return None, ""


def bundle_text(data: dict[str, Any], pictured: bool = False) -> str:
    """A bundle's text: its plain text, or the source of its Markdown, LaTeX or HTML where that says nothing.

    Args:
        data: MIME type -> content.
        pictured: its picture is attached, so nothing is missing if there is no text.
    """
    plain = data.get("text/plain")
    text = plain if isinstance(plain, str) else ""
    if text and not text.startswith(_EMPTY):
        return text
    for mime in ("text/markdown", "text/latex", "text/html"):
        source = data.get(mime)
        if isinstance(source, str) and source:
            return source if len(source) <= SOURCE_CHARS else source[:SOURCE_CHARS] + "…"
    return "" if pictured else text


def _bytes(content: Any) -> bytes | None:
    if isinstance(content, (bytes, bytearray)):
        return bytes(content)
    if isinstance(content, str):
        try:
            return base64.b64decode(content)
        except (binascii.Error, ValueError):
            return None
    return None
