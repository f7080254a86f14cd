"""skill: load the instructions of a skill. See docs/opencode/core.md 18 (the output as release 1.18 has it).

The configuration's ``skills.urls`` name places of more skills: ``URL/index.json`` is ``{"skills": [{"name", "files":
[...]}]}``; the files stand below ``URL/NAME/``. A file that was downloaded once is kept. A name or path that leads
anywhere else, and an answer from another origin, is refused.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from pydantic import Field, create_model

from ..core import atomic
from ..core.card_spec import CardSpec
from ..core.context import InitContext, ToolContext
from ..core.errors import ToolError
from ..core.host import ToolHost
from ..core.result import ToolResult
from ..core.schema import Arguments
from ..core.skills import FILE, Skill, Skills, available
from ..core.suggestions import near_names, suggestion
from ..core.threads import run_in_thread
from ..core.tool import Definition, Manifest, Tool
from ..text.encoding import printable
from ..text.replace import WHITE
from .builtin import description_file
from .ripgrep import Search

if TYPE_CHECKING:
    from ..core.host import ToolHost
    from .web.public_addresses import Address
    from .web.url import Target

FILES = 10
"""Files of a skill's folder that are listed."""
EXAMPLES = 3
"""Names in the parameter's description."""


class Parameters(Arguments):
    """Which skill."""

    name: str = Field(description="The name of the skill from available_skills")


async def run(args: Parameters, ctx: ToolContext) -> ToolResult:
    """Load a skill's instructions."""
    workspace = ctx.workspace
    skills = await find(workspace)
    chosen = next((entry for entry in skills if entry.name == args.name), None)
    if chosen is None:
        agent = workspace.agents.get(ctx.agent)
        available_skills = available(skills, agent.permission) if agent is not None else skills
        names = ", ".join(entry.name for entry in available_skills) or "none"
        raise ToolError(
            f'Skill "{args.name}" not found. Available skills: {names}',
            for_person=f"There is no skill {args.name}."
            + (suggestion(near_names(args.name, [entry.name for entry in available_skills])) or f" Skills: {names}."),
        )
    await ctx.ask("skill", [args.name], [args.name], {})
    ctx.proceed()

    content = await run_in_thread(chosen.content)
    files = "\n".join(f"<file>{path}</file>" for path in await _files(chosen.directory))
    output = "\n".join(
        (
            f'<skill_content name="{escape(chosen.name)}">',
            f"# Skill: {chosen.name}",
            "",
            content.strip(WHITE),
            "",
            f"Base directory for this skill: {chosen.directory}",
            "Relative paths in this skill (e.g., scripts/, reference/) are relative to this base directory.",
            "Note: file list is sampled.",
            "",
            "<skill_files>",
            files,
            "</skill_files>",
            "</skill_content>",
        )
    )
    metadata = {"name": chosen.name, "dir": str(chosen.directory)}
    return ToolResult(f"Loaded skill: {chosen.name}", printable(output), metadata)


async def find(workspace: ToolHost) -> list[Skill]:
    """Every skill there is, downloaded ones among them."""
    skills = workspace.service(Skills)
    urls = workspace.config.get("skills", "urls", default=())
    skills.downloaded = await workspace.service(SkillDownloads).folders(urls) if urls else ()
    return await skills.discover()


async def _files(folder: Path) -> list[str]:
    """Some of a skill's files, as ripgrep lists them: hidden ones too, ignored ones not, no link followed."""
    search = Search(["--files", "--null", "--hidden", "--glob=!.git", "--", "./"], folder)
    if search.engine == "ripgrep":
        search = Search(["--files", "--null", "--hidden", "--sort=path", "--glob=!.git", "--", "./"], folder)
    files: list[str] = []
    async for names in search.names():
        paths = (os.fsdecode(name).removeprefix("./") for name in names)
        files += [str(folder / path) for path in paths if FILE not in path]
        if len(files) >= FILES:
            break
    return files[:FILES]


# ---------------------------------------------------------------------- what a model receives


async def init(ctx: InitContext) -> Definition:
    """The tool as an agent sees it: with the skills that its rules do not deny."""
    text = description_file(__file__, "skill")
    if ctx.workspace is None:
        return Definition(text, Parameters, run)
    skills = await find(ctx.workspace)
    if ctx.agent is not None:
        skills = available(skills, ctx.agent.permission)
    if not skills:
        first = text.partition("\n")[0]
        return Definition(f"{first} No skills are currently available.", Parameters, run)
    lines = "\n".join(
        f"  <skill>\n    <name>{escape(entry.name, quote=False)}</name>\n"
        f"    <description>{escape(entry.description, quote=False)}</description>\n"
        f"    <location>{entry.location.as_uri()}</location>\n  </skill>"
        for entry in skills
    )
    examples = ", ".join(f"'{entry.name}'" for entry in skills[:EXAMPLES])
    return Definition(f"{text}\n\n<available_skills>\n{lines}\n</available_skills>", _parameters(examples), run)


@lru_cache(maxsize=64)
def _parameters(examples: str) -> type[Parameters]:
    """The parameters, with some names in the description."""
    described = Field(description=f"The name of the skill from available_skills (e.g., {examples}, ...)")
    return create_model("Parameters", __base__=Parameters, name=(str, described))


def names(workspace: ToolHost, parameter: str) -> Iterable[str]:
    """Completions of a parameter: the skills that are on this machine."""
    return [entry.name for entry in workspace.service(Skills).all()] if parameter == "name" else ()


def _instructions(output: str) -> list[int] | None:
    """The lines of the skill itself."""
    end = output.rfind("\n\nBase directory for this skill")
    return [1, output.count("\n", 0, end) + 1] if end > 0 and output.startswith("<skill_content") else None


skill = Tool(
    "skill",
    init,
    manifest=Manifest(
        builtin=True,
        group="agent",
        effect="reads",
        card=CardSpec(body="skill", lines=_instructions, question="Load this skill?"),
        keeps_output=True,
    ),
    completions=names,
    source=__name__,
)
skill.__doc__ = run.__doc__


# ---------------------------------------------------------------------- skills from the web


log = logging.getLogger(__name__)

SECONDS = 30.0
"""What one URL's index and files may take together; a later look fetches what is missing."""
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
                cached = self._found.get(url)
                if cached is None or time.monotonic() > cached[1]:
                    cached = self._found[url] = await self._ask(url)
                out += cached[0]
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
    entries = index.get("skills") if isinstance(index, dict) else None
    if not isinstance(entries, list):
        raise ToolError('index.json is not of the form {"skills": [{"name": ..., "files": [...]}]}')
    for entry in entries[:MOST_SKILLS]:
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
        from .web.public_addresses import is_metadata

        if is_metadata(address):
            raise ToolError(f"{target.host} is a cloud metadata service")

    async def ask_redirect(self, before: Target, after: Target) -> None:
        if (before.scheme, before.authority) != (after.scheme, after.authority):
            raise ToolError(f"{before.url} redirects to another origin: {after.url}")


async def _get(url: str) -> bytes:
    from .web.page_fetch import Clock, fetch
    from .web.url import parse

    page = await fetch(parse(url), {"Accept": "*/*"}, Clock(SECONDS), _SameOrigin(), lambda done, total: None)
    return page.body
