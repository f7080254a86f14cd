"""skill: load the instructions of a skill. See docs/opencode/core.md 18 (the output as release 1.18 has it)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from html import escape
from pathlib import Path

from pydantic import Field, create_model

from ..core.card_spec import CardSpec
from ..core.context import InitContext, ToolContext
from ..core.errors import ToolError
from ..core.host import ToolHost
from ..core.result import ToolResult
from ..core.schema import Arguments
from ..core.skills import FILE, Skill, Skills, available
from ..core.suggestions import near_names, suggestion
from ..core.threads import run_in_thread
from ..core.tool import Definition, Tool
from ..text.encoding import printable
from ..text.replace import WHITE
from ._ripgrep import Search
from ._skill_downloads import SkillDownloads
from .builtin import description_file

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
        known = available(skills, agent.permission) if agent is not None else skills
        listed = ", ".join(entry.name for entry in known) or "none"
        raise ToolError(
            f'Skill "{args.name}" not found. Available skills: {listed}',
            for_person=f"There is no skill {args.name}."
            + (suggestion(near_names(args.name, [entry.name for entry in known])) or f" Skills: {listed}."),
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
    rest = b""
    async for chunk in search.chunks():
        *names, rest = (rest + chunk).split(b"\0")
        paths = (os.fsdecode(name).removeprefix("./") for name in names)
        files += [str(folder / path) for path in paths if FILE not in path]
        if len(files) >= FILES:
            break
    return files[:FILES]


# ---------------------------------------------------------------------- what a model is told


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
    listed = "\n".join(
        f"  <skill>\n    <name>{escape(entry.name, quote=False)}</name>\n"
        f"    <description>{escape(entry.description, quote=False)}</description>\n"
        f"    <location>{entry.location.as_uri()}</location>\n  </skill>"
        for entry in skills
    )
    examples = ", ".join(f"'{entry.name}'" for entry in skills[:EXAMPLES])
    return Definition(f"{text}\n\n<available_skills>\n{listed}\n</available_skills>", _parameters(examples), run)


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
    builtin=True,
    group="agent",
    effect="reads",
    card=CardSpec(body="skill", lines=_instructions, question="Load this skill?"),
    completions=names,
    source=__name__,
)
skill.__doc__ = run.__doc__
