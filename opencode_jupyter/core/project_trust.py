"""The trust that a project needs as a whole: its configuration, tool files, plugins, MCP servers, model providers."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from .errors import PermissionCorrectedError, PermissionRejectedError
from .trust import Subject

if TYPE_CHECKING:
    from .call import Call
    from .host import ToolHost


def untrusted(workspace: ToolHost) -> list[Subject]:
    """The project's subjects that nobody trusted yet: its configuration, tool files, plugins, MCP servers, providers.

    Blocks for as long as reading the files takes.
    """
    more = (subject for list_more in workspace.trust_subjects for subject in list_more())
    subjects = {(subject.kind, subject.name): subject for subject in more}
    project = workspace.config.trust_subject
    if project is not None and workspace.config.withheld:
        subjects = {(project.kind, project.name): project, **subjects}
    for source in workspace.registry.sources:
        list_untrusted = getattr(source, "untrusted", None)
        for subject in list_untrusted() if list_untrusted is not None else ():
            subjects[subject.kind, subject.name] = subject
    return list(subjects.values())


def trust_project(workspace: ToolHost, *, keep: bool = True) -> list[Subject]:
    """Trust all that `untrusted` lists, as it is now.

    Args:
        workspace: whose project.
        keep: in every workspace of this user; else only in this one, as long as it is open.

    Returns:
        What was trusted.
    """
    subjects = untrusted(workspace)
    (workspace.trust.grant if keep else workspace.trust.grant_temporarily)(*subjects)
    apply_trust(workspace)
    return subjects


def apply_trust(workspace: ToolHost) -> None:
    """Apply what is trusted now: the configuration is read again, and the next call looks for tools."""
    project = workspace.config.trust_subject
    if project is not None and workspace.trust.known(project) == bool(workspace.config.withheld):
        workspace.reload_config()
    workspace.registry.invalidate()


async def ask_for_project(workspace: ToolHost, call: Call) -> None:
    """Request trust in the project once, before a call; without it the project stays restricted."""
    project = workspace.config.trust_subject
    if call.dry_run or project is None or not workspace.config.withheld or project in workspace.trust.requested:
        return
    if workspace.permissions.approve is None and workspace.present is None:
        return  # nobody is there: the configuration's warnings report it
    workspace.trust.requested.add(project)
    more = [subject for subject in await asyncio.to_thread(untrusted, workspace) if subject != project]
    lines = [str(project.shown["content"]), *map(_line, more)]
    shown = replace(project, shown={**project.shown, "content": "\n".join(lines)})
    with contextlib.suppress(PermissionRejectedError, PermissionCorrectedError):
        await workspace.trust.require(shown, call, *more)
        apply_trust(workspace)


def _line(subject: Subject) -> str:
    """A line of the project's card: what it is, and what it starts or reaches."""
    reaches = subject.shown.get("command") or subject.shown.get("url")
    name = subject.shown.get("server") or subject.shown.get("label") or subject.name
    return f"{subject.kind}: {name}" + (f": {reaches}" if reaches else "")
