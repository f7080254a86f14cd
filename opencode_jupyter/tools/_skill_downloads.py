"""Skills from the web: what the URLs of the configuration's ``skills.urls`` offer (docs/opencode/core.md 18, point 4).

``URL/index.json`` is ``{"skills": [{"name", "files": [...]}]}``; the files stand below ``URL/NAME/``. A file that was
downloaded once is kept. A name or path that leads anywhere else, and an answer from another origin, is refused.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from ..core import atomic
from ..core.errors import ToolError
from ..core.skills import FILE

if TYPE_CHECKING:
    from ..core.host import ToolHost
    from .web.address import Address
    from .web.target import Target

log = logging.getLogger(__name__)

SECONDS = 30.0
"""What one URL's index and files may take together; a later look goes on with what is missing."""
RETRY = 600.0
"""Seconds until a URL that failed is tried again."""
MOST_SKILLS = 200
MOST_FILES = 100
"""Of one skill."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SEGMENT = re.compile(r"[^/\\:%?#\x00-\x1f\x7f]{1,200}")


class SkillDownloads:
    """The downloaded skills of one workspace."""

    def __init__(self, workspace: ToolHost) -> None:
        self._root = workspace.data_dir / "skills"
        self._lock = anyio.Lock()
        self._found: dict[str, tuple[list[Path], float]] = {}
        """For each URL its skills' folders, and when to ask it again (monotonic seconds)."""

    async def folders(self, urls: Sequence[str]) -> list[Path]:
        """The folders of the skills that the URLs offer; one that can't be had is logged and left out."""
        out: list[Path] = []
        async with self._lock:
            for url in urls:
                known = self._found.get(url)
                if known is None or time.monotonic() > known[1]:
                    known = self._found[url] = await self._ask(url)
                out += known[0]
        return out

    async def _ask(self, url: str) -> tuple[list[Path], float]:
        folder = self._root / hashlib.sha256(url.encode()).hexdigest()[:16]
        try:
            with anyio.fail_after(SECONDS):
                return await _download(url, folder), float("inf")
        except TimeoutError:
            log.warning("the skills of %s did not come within %g s", url, SECONDS)
        except ToolError as error:
            log.warning("the skills of %s cannot be downloaded: %s", url, error)
        folders = [path.parent for path in sorted(folder.glob(f"*/{FILE}"))]
        return folders, time.monotonic() + RETRY


async def _download(url: str, folder: Path) -> list[Path]:
    """Fetch what is not there yet; the folders of the skills that are whole."""
    base = url.rstrip("/") + "/"
    out: list[Path] = []
    for name, files in _entries(await _get(base + "index.json"), url):
        skill_folder = folder / name
        for file in sorted(files, key=lambda file: file == FILE):  # last: a skill is there when all of it is
            path = skill_folder / file
            if not path.exists():
                data = await _get(f"{base}{name}/{file}")
                await anyio.to_thread.run_sync(atomic.write, path, data)
        out.append(skill_folder)
    return out


def _entries(data: bytes, url: str) -> Iterator[tuple[str, list[str]]]:
    """The skills of an index that may be downloaded.

    Raises:
        ToolError: it is no index.
    """
    try:
        index: Any = json.loads(data)
    except (ValueError, RecursionError):
        index = None
    listed = index.get("skills") if isinstance(index, dict) else None
    if not isinstance(listed, list):
        raise ToolError('index.json is not of the form {"skills": [{"name": ..., "files": [...]}]}')
    for entry in listed[:MOST_SKILLS]:
        name = entry.get("name") if isinstance(entry, dict) else None
        files = entry.get("files") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not _NAME.fullmatch(name) or not isinstance(files, list):
            log.warning("%s has a skill that is ignored: its name is %r", url, name)
        elif len(files) > MOST_FILES or not all(isinstance(file, str) and _is_below(file) for file in files):
            log.warning("%s offers the skill %s with files that are none of its folder, or too many", url, name)
        elif FILE not in files:
            log.warning("%s offers the skill %s without a %s", url, name, FILE)
        else:
            yield name, files


def _is_below(file: str) -> bool:
    """Return whether a path stays in its folder, on every system and in every URL."""
    return all(_SEGMENT.fullmatch(part) and part not in (".", "..") for part in file.split("/"))


class _SameOrigin:
    """Lets a download go nowhere but where its URL says."""

    def check(self, target: Target, address: Address) -> None:
        from .web.address import is_metadata

        if is_metadata(address):
            raise ToolError(f"{target.host} is a cloud metadata service")

    async def ask_redirect(self, before: Target, after: Target) -> None:
        if (before.scheme, before.authority) != (after.scheme, after.authority):
            raise ToolError(f"{before.url} redirects to another origin: {after.url}")


async def _get(url: str) -> bytes:
    from .web.fetching import Clock, fetch
    from .web.target import parse

    page = await fetch(parse(url), {"Accept": "*/*"}, Clock(SECONDS), _SameOrigin(), lambda done, total: None)
    return page.body
