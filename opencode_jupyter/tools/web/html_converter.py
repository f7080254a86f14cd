"""HTML as Markdown or text, made in a process of its own that is killed when its time is up."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import math
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import anyio.to_thread

from ...core.errors import ToolError
from ...core.threads import run_in_thread

OUTPUT = 8 << 20
"""Bytes of a converted page: lists in lists may grow beyond the page's own size."""
_FOLDER = Path(__file__).parent
PROGRAM = (
    "import sys, os; sys.path += sys.argv[1].split(os.pathsep); "
    f"from {_FOLDER.name}._html_converter_process import main; main()"
)
"""Its folder as a package of its own: the whole package would take a second to import."""
MARKDOWN_SECONDS = 10.0
"""Seconds after which a page becomes text, not Markdown."""
TEXT_INSTEAD = "the page can't be converted to Markdown: this is its text"
_KEPT = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "WINDIR")
"""Variables a Python process may need to start; it is given no other."""


@dataclass(frozen=True, slots=True)
class Converted:
    """A converted page.

    Attributes:
        text: its Markdown or text.
        note: what the reader should know about it, or an empty text.
    """

    text: str
    note: str = ""


async def convert(body: bytes, form: Literal["markdown", "text"], codec: str, seconds: float) -> Converted:
    """Convert a page; cancelling ends the process that does it.

    A page that ends the process as Markdown, or takes too long, is converted to text.

    Args:
        body: the page's bytes.
        form: into what.
        codec: Python's name of its encoding.
        seconds: processor time it may take.

    Raises:
        ToolError: the page ended the process that converted it.
    """
    if form == "markdown":
        with anyio.move_on_after(MARKDOWN_SECONDS), contextlib.suppress(ToolError):
            return await _run(body, form, codec, min(seconds, MARKDOWN_SECONDS))
        plain = await _run(body, "lines", codec, seconds)
        return Converted(plain.text, plain.note or TEXT_INSTEAD)
    return await _run(body, form, codec, seconds)


async def _run(body: bytes, form: str, codec: str, seconds: float) -> Converted:
    process = await anyio.to_thread.run_sync(_start, form, codec, math.ceil(seconds) + 1)
    try:
        output, errors = await run_in_thread(process.communicate, body)
    finally:
        if process.poll() is None:
            process.kill()
    if process.returncode != 0:
        last = errors.decode("utf-8", "replace").strip().rpartition("\n")[2][:200] or f"exit code {process.returncode}"
        raise ToolError(f'The page can\'t be converted to text ({last}). Ask for format "html" to get it as it is.')
    head, _, text = output.partition(b"\n")
    return Converted(text.decode("utf-8", "replace"), json.loads(head)["note"])


@functools.cache
def module_folders() -> str:
    """The folders of the program and of html-to-markdown."""
    spec = importlib.util.find_spec("html_to_markdown")
    library = [str(Path(spec.origin).parent.parent)] if spec and spec.origin else []
    return os.pathsep.join([str(_FOLDER.parent), *library])


def _start(form: str, codec: str, seconds: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", "-S", "-X", "utf8", "-c", PROGRAM, module_folders(), form, codec]
    return subprocess.Popen(
        [*command, str(seconds), str(OUTPUT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={name: os.environ[name] for name in _KEPT if name in os.environ},
        start_new_session=True,
    )
