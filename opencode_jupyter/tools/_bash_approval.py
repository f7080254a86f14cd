"""Permission requests of a bash command (docs/opencode/tools.md 2.4)."""

from __future__ import annotations

import logging
import re
from functools import partial
from pathlib import Path
from typing import Any

from ..core.context import ToolContext
from ..core.errors import ToolError
from ..core.permission import Rule
from ..core.permission.rules import NOT_ANALYSED, STRICT
from ..core.threads import run_in_thread
from ..sandbox.service import Sandbox
from ._path_checks import request_secret_reads
from .shell.analysis import analyse, unreadable
from .shell.shell_requests import Reading, ShellRequests, exact_rule

log = logging.getLogger(__name__)

SHORT = 400
"""Characters of a command that is analysed at once, in less time than a thread would take to take over."""


async def request_approval(ctx: ToolContext, command: str, cwd: Path, shell: str) -> ShellRequests:
    """Go on only if the folders a command touches, and then its sub-commands, are allowed.

    Args:
        ctx: the call.
        command: the whole command.
        cwd: the folder it runs in.
        shell: the name of the shell that runs it.

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
        shell=shell,
        protected=[str(ctx.workspace.data_dir)],
    )
    try:
        requests = reading() if len(command) < SHORT else await run_in_thread(reading)
    except Exception:  # a fault of ours must neither let the command run unasked nor keep it from running
        log.exception("a command could not be analysed")
        requests = unreadable(command, "its analysis failed")
    _refuse_interactive(command, requests)
    patterns, _ = _patterns_to_request(ctx, requests)
    if not any(
        rule.action == "deny" for rule in _deciding_rules(ctx, patterns)
    ):  # what is refused anyway is not asked for first
        await _ask_for_folders(ctx, command, requests)
        await request_secret_reads(ctx, requests.reads, {"command": command})
    while patterns:
        patterns, stricter = _patterns_to_request(ctx, requests)  # rules may have come while an answer was waited for
        always = list(dict.fromkeys([*requests.always, *(rule for reading in stricter for rule in reading.always)]))
        metadata: dict[str, Any] = {"command": command}
        if requests.reasons and (stricter or any(p.startswith(NOT_ANALYSED) for p in patterns)):
            metadata["reasons"] = requests.reasons
        decision = await ctx.ask("bash", patterns, always, metadata)
        if not decision.together:
            break
        # "always" for another command covered the patterns of this one, but perhaps not each of its readings
    return requests


_FULL_SCREEN = re.compile(r"(?:\S*/)?(n?vim?|view|vimdiff|rvim|watch)(?=\s|$)")
_SCRIPTED = re.compile(r"\s(?:-[a-zA-Z]*[esScVhg]|--(?:headless|version|help|cmd|chgexit)|\+.)")


def _refuse_interactive(command: str, requests: ShellRequests) -> None:
    """Refuse programs that would wait for keys for ever; most others end by themselves without a terminal.

    Raises:
        ToolError: the command starts one, and neither options nor input tell it what to do.
    """
    readings = [*requests.patterns, *(reading.pattern for reading in requests.readings if not reading.suspected)]
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


def _patterns_to_request(ctx: ToolContext, requests: ShellRequests) -> tuple[list[str], list[Reading]]:
    """What to ask for as the rules are now, and the readings among it."""
    stricter = _stricter_readings(ctx, requests) if requests.patterns else []
    return list(dict.fromkeys([*requests.patterns, *(reading.pattern for reading in stricter)])), stricter


async def _ask_for_folders(ctx: ToolContext, command: str, requests: ShellRequests) -> None:
    if not requests.directories and not requests.unknown:
        return
    globs = [str(Path(folder) / "*") for folder in requests.directories]
    patterns = globs + [NOT_ANALYSED + path for path in requests.unknown]
    metadata: dict[str, Any] = {"command": command, "directories": requests.directories, "patterns": patterns}
    if requests.unknown:
        metadata["reasons"] = requests.reasons
    await ctx.ask("external_directory", patterns, globs, metadata)


def _deciding_rules(ctx: ToolContext, patterns: list[str]) -> list[Rule]:
    """The rule that decides each pattern now; none in a call that is not the workspace's."""
    call = ctx.workspace.calls.get(ctx.call_id)
    return ctx.workspace.permissions.check("bash", patterns, call.ruleset) if call is not None else []


def _stricter_readings(ctx: ToolContext, requests: ShellRequests) -> list[Reading]:
    """The other readings of the command that the rules treat more strictly than what OpenCode asks for.

    So ``time rm x`` is asked as OpenCode asks it, but is refused where ``rm *`` is, and still asked where only
    ``time *`` is allowed. A rule that names a sub-command exactly has the last word on its readings.
    """
    call = ctx.workspace.calls.get(ctx.call_id)
    if call is None or not requests.readings:
        return requests.readings
    permissions, rules = ctx.workspace.permissions, call.ruleset
    plain = permissions.check("bash", requests.patterns, rules)
    exact = {
        pattern
        for pattern, rule in zip(requests.patterns, plain, strict=True)
        if rule.action == "allow" and rule.pattern == pattern
    }
    limit = max(STRICT[rule.action] for rule in plain)
    readings = permissions.check("bash", [reading.pattern for reading in requests.readings], rules)
    out = []
    for reading, rule in zip(requests.readings, readings, strict=True):
        if reading.suspected:
            against = rule.action != "allow" and (reading.is_program or rule.pattern != "*")
            if limit == 0 and against and reading.of not in exact:
                out.append(Reading(NOT_ANALYSED + reading.of, exact_rule(NOT_ANALYSED + reading.of), reading.of))
        elif STRICT[rule.action] > limit and not (reading.of in exact and rule.action == "ask"):
            out.append(reading)
    return out
