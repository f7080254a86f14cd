"""The asks a shell command makes before it runs (docs/opencode/tools.md 2.4, docs/opencode/agents.md 6.3)."""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from typing import Any

from ..core.context import ToolContext
from ..core.errors import ToolError
from ..core.permission import Rule
from ..core.permission.rules import NOT_ANALYSED, STRICT
from ..core.threads import run_in_thread
from ..runtime.sandbox.service import Sandbox
from . import _shell
from ._secrets import ask_for_secrets
from .shell.analysis import analyse
from .shell.findings import Judged, ShellAsks, exactly

SHORT = 400
"""Characters of a command that is analysed at once, in less time than a thread would take to take over."""


async def ask(ctx: ToolContext, command: str, cwd: Path) -> ShellAsks:
    """Go on only if the folders a command touches, and then its sub-commands, are allowed.

    Returns:
        What the command would do.

    Raises:
        PermissionDeniedError: and the other errors of `ToolContext.ask`.
    """
    if ctx.by == "model" and ctx.workspace.permissions.answerable:
        ctx.workspace.service(Sandbox).restrict_rules()
    reading = partial(
        analyse,
        command,
        cwd,
        ctx.workspace.contains,
        shell=os.path.basename(_shell.shell()),
        protected=[str(ctx.workspace.data_dir)],
    )
    asks = reading() if len(command) < SHORT else await run_in_thread(reading)
    _refuse_interactive(command, asks)
    patterns, _ = _named(ctx, asks)
    if not any(
        rule.action == "deny" for rule in _rules(ctx, patterns)
    ):  # what is refused anyway is not asked for first
        await _ask_for_folders(ctx, command, asks)
        await ask_for_secrets(ctx, asks.reads, {"command": command})
    while patterns:
        patterns, stricter = _named(ctx, asks)  # rules may have come while an answer was waited for
        always = list(dict.fromkeys([*asks.always, *(rule for reading in stricter for rule in reading.always)]))
        metadata: dict[str, Any] = {"command": command}
        if asks.reasons and (stricter or any(p.startswith(NOT_ANALYSED) for p in patterns)):
            metadata["reasons"] = asks.reasons
        decision = await ctx.ask("bash", patterns, always, metadata)
        if not decision.together:
            break
        # "always" for another command covered the patterns of this one, but perhaps not each of its readings
    return asks


_FULL_SCREEN = re.compile(r"(?:\S*/)?(n?vim?|view|vimdiff|rvim|watch)(?=\s|$)")
_SCRIPTED = re.compile(r"\s(?:-[a-zA-Z]*[esScVhg]|--(?:headless|version|help|cmd|chgexit)|\+.)")


def _refuse_interactive(command: str, asks: ShellAsks) -> None:
    """Refuse programs that would wait for keys for ever; most others end by themselves without a terminal.

    Raises:
        ToolError: the command starts one, and neither options nor input tell it what to do.
    """
    readings = [*asks.patterns, *(reading.pattern for reading in asks.judged if not reading.suspected)]
    for pattern in () if re.search(r"[|<]", command) else readings:
        program = _FULL_SCREEN.match(pattern)
        if program is not None and _SCRIPTED.search(pattern) is None:
            hint = (
                "repeat the command in a loop" if program[1] == "watch" else "use edit, write, sed or `vim -es -c ...`"
            )
            raise ToolError(
                f"{program[1]} needs a terminal, and commands run without one: it would wait for keys for ever. "
                f"Instead {hint}.",
                for_person=f"{program[1]} needs a terminal, and commands run without one. Open one in JupyterLab "
                f"(File, New, Terminal), or {hint}.",
            )


def _named(ctx: ToolContext, asks: ShellAsks) -> tuple[list[str], list[Judged]]:
    """What to ask for as the rules are now, and the readings among it."""
    stricter = _stricter(ctx, asks) if asks.patterns else []
    return list(dict.fromkeys([*asks.patterns, *(reading.pattern for reading in stricter)])), stricter


async def _ask_for_folders(ctx: ToolContext, command: str, asks: ShellAsks) -> None:
    if not asks.directories and not asks.unknown:
        return
    globs = [str(Path(folder) / "*") for folder in asks.directories]
    patterns = globs + [NOT_ANALYSED + path for path in asks.unknown]
    metadata: dict[str, Any] = {"command": command, "directories": asks.directories, "patterns": patterns}
    if asks.unknown:
        metadata["reasons"] = asks.reasons
    await ctx.ask("external_directory", patterns, globs, metadata)


def _rules(ctx: ToolContext, patterns: list[str]) -> list[Rule]:
    """The rule that decides each pattern now; none in a call that is not the workspace's."""
    call = ctx.workspace.calls.get(ctx.call_id)
    return ctx.workspace.permissions.check("bash", patterns, call.ruleset) if call is not None else []


def _stricter(ctx: ToolContext, asks: ShellAsks) -> list[Judged]:
    """The other readings of the command that the rules treat more strictly than what OpenCode asks for.

    So ``time rm x`` is asked as OpenCode asks it, but is refused where ``rm *`` is, and still asked where only
    ``time *`` is allowed. A rule that names a sub-command exactly has the last word on its readings.
    """
    call = ctx.workspace.calls.get(ctx.call_id)
    if call is None or not asks.judged:
        return asks.judged
    permissions, rules = ctx.workspace.permissions, call.ruleset
    plain = permissions.check("bash", asks.patterns, rules)
    exact = {
        pattern
        for pattern, rule in zip(asks.patterns, plain, strict=True)
        if rule.action == "allow" and rule.pattern == pattern
    }
    limit = max(STRICT[rule.action] for rule in plain)
    readings = permissions.check("bash", [reading.pattern for reading in asks.judged], rules)
    out = []
    for reading, rule in zip(asks.judged, readings, strict=True):
        if reading.suspected:
            against = rule.action != "allow" and (reading.is_program or rule.pattern != "*")
            if limit == 0 and against and reading.of not in exact:
                out.append(Judged(NOT_ANALYSED + reading.of, exactly(NOT_ANALYSED + reading.of), reading.of))
        elif STRICT[rule.action] > limit and not (reading.of in exact and rule.action == "ask"):
            out.append(reading)
    return out
