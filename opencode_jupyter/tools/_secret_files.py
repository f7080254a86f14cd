"""Files that rules about ``read`` keep from a model, whichever tool would show them: ``.env``, keys, passwords."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from ..core.context import ToolContext
from ..core.paths import follow_links
from ..core.permission.decision import Action
from ..core.permission.rules import fits_path
from ..core.permission.sensitive_files import is_key_file
from ..core.wildcard import compiled, match


async def request_secret_reads(ctx: ToolContext, paths: Sequence[str], metadata: dict[str, Any]) -> None:
    """Go on only if the rules about ``read``, or a person, allow the files among `paths` that they speak of.

    Raises:
        PermissionDeniedError: and the other errors of `ToolContext.ask`.
    """
    action = read_actions(ctx)
    names = [ctx.workspace.relative(path) for path in paths if action(path) != "allow"]
    if names:
        await ctx.ask("read", names, names, metadata)


def denied_reads(ctx: ToolContext) -> Callable[[str], bool] | None:
    """Make a function that tells the files whose reading a rule denies; None where no rule denies a reading."""
    call = ctx.workspace.calls.get(ctx.call_id)
    rules = call.ruleset if call is not None else []
    if not any(rule.action == "deny" and match("read", rule.permission) for rule in rules):
        return None
    action = read_actions(ctx)
    return lambda path: action(path) == "deny"


def read_actions(ctx: ToolContext) -> Callable[[str], Action]:
    """Make a function that gives the action of the ``read`` rules for a file that another tool shows.

    A rule for everything counts only for keys and for files that another rule denies or asks for.
    """
    call = ctx.workspace.calls.get(ctx.call_id)
    rules = call.ruleset if call is not None else []
    strict = [rule.pattern for rule in rules if rule.action != "allow" and match("read", rule.permission)]
    anywhere = [compiled(pattern) for pattern in strict if pattern.startswith("*") and pattern != "*"]
    others = [pattern for pattern in strict if not pattern.startswith("*")]
    absolute = [pattern for pattern in others if os.path.isabs(pattern)]
    permissions, relative = ctx.workspace.permissions, ctx.workspace.relative

    def action(path: str) -> Action:  # called for each file of a search
        is_named = is_key_file(path) or any(matches(path) for matches in anywhere)
        is_named = is_named or any(match(relative(path), other) for other in others)
        locations = {path, follow_links(path)} if absolute and not is_named else ()
        if not is_named and not any(fits_path(location, other) for location in locations for other in absolute):
            return "allow"
        return permissions.check("read", [relative(path)], rules)[0].action

    return action
