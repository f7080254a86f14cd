"""The commands of the magics that list things: the help that ``%sessions?`` and its siblings show."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Magic = TypeVar("Magic", bound=Callable[..., object])

SESSIONS = (
    "%sessions [list] [-n 20] [--all]   the sessions of this folder; --all: of all",
    "%sessions open NAME                continue it with the next %%agent",
    "%sessions show [NAME] [-n 100]     its messages and calls",
    "%sessions fork [NAME] [--at N]     a copy of it, or of the messages before N",
    "%sessions undo [NAME] [--redo]     undo the last message that changed files",
    "%sessions export [NAME] FILE       for OpenCode; --jsonl: events, --otel: spans",
    "                                   (with --content: texts)  [--force]",
    "%sessions import FILE [--replace]  a file that OpenCode or this program exported",
    "%sessions rename [NAME] TITLE, delete NAME... [--yes]",
    "NAME is a number of the list, a title, an id or the start of an id. Without",
    "NAME: the session that the next %%agent continues.",
)
TOOLS = (
    "%tools [list]                    the tools, and what the rules do with a call of each",
    "%tools history [N]               the last calls of this notebook (--project, --all)",
    "%tools doctor                    what works here and what does not",
    "%tools undo [N] [--force]        undo the last file changes",
    "%tools clean [--days N] [--all]  delete old files of cut outputs",
    "%tools reload                    read the config files again",
    "%tools trust [NAME|PATH ...]     project code that needs your trust; trusts it (--project)",
)
MCP = (
    "%mcp [list]                           the servers and their states",
    "%mcp add NAME -- COMMAND ARGS...      a program on this machine  [--env K=V]",
    "%mcp add NAME URL                     a remote server  [--header K=V] [--sse]",
    "          --save, --global            also keep it: in the project's configuration, in your own",
    "%mcp remove NAME [--save]             remove it; --save: from the file as well",
    "%mcp connect | disconnect NAME        start or restart it, stop it",
    "%mcp auth NAME                        log in  [--code ADDRESS] [--forget] [--no-wait]",
    "%mcp logs NAME [-n 50]                its log",
    "%mcp tools NAME                       its tools",
    "%mcp prompts [NAME], prompt NAME/KEY k=v ...",
    "%mcp resources [NAME], read NAME URI",
)
PERMISSIONS = (
    "%permissions                                      the rules in force, in order",
    "%permissions allow|ask|deny PERMISSION [PATTERN]  add a rule until the kernel ends",
    "                   ... --project                  keep it in the project's configuration",
    "%permissions revoke N|PERMISSION [PATTERN]        remove rules that were added",
    "%permissions mode [NAME] [--session NAME]         show or set the mode",
    "%permissions test PERMISSION PATTERN              which rule decides",
    "%permissions sandbox [PROFILE]                    show or set the sandbox of a model's commands",
    "%permissions history [N]                          the last decisions",
    "%permissions log [N] [--verify]                   the audit log; check its chain",
)


def documented(usage: tuple[str, ...]) -> Callable[[Magic], Magic]:
    """Add the commands to a magic's docstring, which IPython shows for a ``?`` after its name."""

    def add(magic: Magic) -> Magic:
        magic.__doc__ = "\n".join([magic.__doc__ or "", "", *usage])
        return magic

    return add


def pointer(magic: str) -> str:
    """The line below a list that says where the commands are."""
    return f"{magic}? shows the commands."
