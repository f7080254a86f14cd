"""The subcommands and options of the magics: for reading their lines, for help, errors and completion.

A subcommand's options are written in its arguments only, as in ``[NAME] [-n 20] [--all]``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from inspect import cleandoc
from textwrap import indent
from typing import NamedTuple, TypeVar

from ...core.errors import InvalidArgumentsError
from ...core.suggestions import near_names, suggestion

Magic = TypeVar("Magic", bound=Callable[..., object])

LIST = "list"
"""The command of a line that names none."""
_OPTION = re.compile(r"(?<![\w-])(?P<name>--?[a-z][\w-]*)(?: (?P<value>[A-Z\d]\S*))?(?=[\]\s|]|$)")
_HELP_COLUMN = 44


_OPTION_COLUMN = 19


def _documented(function: Magic, help: str) -> Magic:
    function.__doc__ = f"{cleandoc(function.__doc__ or '')}\n\n{help}"
    return function


class Command(NamedTuple):
    """One subcommand.

    Attributes:
        name: as it is typed; several that take the same arguments stand together, as in ``allow|ask``.
        arguments: what may follow it; in capitals what a person fills in.
        help: what it does.
    """

    name: str
    arguments: str
    help: str

    @property
    def options(self) -> dict[str, bool]:
        """Its options in order, and whether each takes a value."""
        return {match["name"]: match["value"] is not None for match in _OPTION.finditer(self.arguments)}


class MagicOption(NamedTuple):
    """An option of ``%tool`` or ``%%agent``.

    Attributes:
        name: as it is typed.
        value: the name of its value; "" if it takes none.
        help: what it does.
        field: the attribute of the request that it sets.
        other_name: another way to type it.
    """

    name: str
    value: str
    help: str
    field: str
    other_name: str = ""

    @property
    def usage(self) -> str:
        """The option with its value."""
        return f"{self.name} {self.value}".rstrip()


class MagicOptions:
    """The options of one magic, in the order in which help shows them."""

    def __init__(self, *options: MagicOption) -> None:
        self.all = options
        self.by_name = {name: option for option in options for name in (option.name, option.other_name) if name}

    def takes_value(self, name: str) -> bool:
        """Whether this is an option with a value after it."""
        return name in self.by_name and bool(self.by_name[name].value)

    def help(self) -> str:
        """All options, one below the other."""
        return "\n".join(f"{option.usage:<{_OPTION_COLUMN}}{option.help}" for option in self.all)

    def documented(self, function: Magic) -> Magic:
        """Add the options to a magic's docstring, which IPython shows for a ``?`` after its name."""
        return _documented(function, self.help())


_OUTPUT = MagicOption("-o", "VAR", "bind the result to a variable", "output", "--output")
_QUIET = MagicOption("-q", "", "show no card (a request for approval is still shown)", "quiet", "--quiet")
_BACKGROUND = MagicOption("--bg", "", "run in the background and return a handle", "background", "--background")
TOOL_OPTIONS = MagicOptions(
    _OUTPUT,
    _QUIET,
    MagicOption("--dry-run", "", "show which approvals it needs and which rule decides; run nothing", "dry_run"),
    MagicOption(
        "--timeout", "SECONDS", "stop the call after this time (waiting for approval does not count)", "timeout"
    ),
    MagicOption("--agent", "NAME", "whose rules apply", "agent"),
    _BACKGROUND,
    MagicOption("--from", "VAR", "take arguments from a dict or a model, or the body from a string", "sources"),
    MagicOption("--help", "", "show the tool's arguments", "help", "-h"),
)
AGENT_OPTIONS = MagicOptions(
    MagicOption(
        "-m",
        "MODEL",
        "the model: provider:model (openai:gpt-5), provider/model or scripted:FILE; by default the last one used, then "
        '"model" in opencode.json',
        "model",
        "--model",
    ),
    MagicOption("-a", "AGENT", "the agent: build, plan, or one of yours", "agent", "--agent"),
    MagicOption("--session", "ID", "continue this session (its id or title)", "session"),
    MagicOption("--new", "", "start a new session", "new"),
    MagicOption("--max-steps", "N", "the most steps of the model", "max_steps"),
    MagicOption(
        "--json",
        "SCHEMA",
        "the answer must fit this JSON schema: {...}, a variable, or a .json file; it becomes r.value",
        "format",
    ),
    MagicOption(
        "--type", "NAME", "the same with a type: a pydantic model, a dataclass, list[int] in a variable", "format"
    ),
    MagicOption("--mode", "MODE", "the session's permission mode: default, ask, accept-edits, plan, bypass", "mode"),
    MagicOption("--record", "FILE", "keep the conversation as a script that scripted:FILE replays", "record"),
    _OUTPUT,
    _QUIET,
    MagicOption(
        "--bg", "", "run in the background and return a handle with .result(), .cancel()", "background", "--background"
    ),
)


class MagicCommands:
    """The subcommands of one magic.

    Args:
        magic: its name with the ``%``.
        commands: in the order in which help shows them.
        note: lines below them.
    """

    def __init__(self, magic: str, *commands: Command, note: str = "") -> None:
        self.magic = magic
        self._commands = commands
        self._note = note

    @cached_property
    def by_name(self) -> dict[str, Command]:
        """Each command by each of its names."""
        return {name: command for command in self._commands for name in command.name.split("|")}

    def usage(self, name: str) -> str:
        """How a command is typed."""
        return f"{self.magic} {name} {self.by_name[name].arguments}".rstrip()

    def unknown_subcommand(self, name: str) -> InvalidArgumentsError:
        """The error for a subcommand that does not exist."""
        near = [f"{self.magic} {known}" for known in near_names(name, self.by_name)]
        hint = suggestion(near) or f" There are {', '.join(self.by_name)}."
        return InvalidArgumentsError(f"{self.magic} has no subcommand {name}.{hint}")

    def help(self) -> str:
        """All commands, one below the other."""
        lines = []
        for command in self._commands:
            name = f"[{LIST}]" if command.name == LIST else command.name
            usage = f"{self.magic} {name} {command.arguments}".rstrip()
            if len(usage) < _HELP_COLUMN:
                lines.append(f"{usage:<{_HELP_COLUMN}}{command.help}")
            else:
                lines += [usage, indent(command.help, " " * _HELP_COLUMN)]
        return "\n".join([*lines, *([self._note] if self._note else [])])

    def documented(self, function: Magic) -> Magic:
        """Add the commands to a magic's docstring, which IPython shows for a ``?`` after its name."""
        return _documented(function, self.help())

    @property
    def pointer(self) -> str:
        """The line below a list that names the help."""
        return f"{self.magic}? shows the commands."


SESSIONS = MagicCommands(
    "%sessions",
    Command(LIST, "[-n 20] [--all]", "the sessions of this folder; --all: of all folders"),
    Command("open", "NAME", "continue it with the next %%agent"),
    Command("show", "[NAME] [-n 100]", "its messages and calls"),
    Command("fork", "[NAME] [--at N]", "a copy of it, or of the messages before message N"),
    Command("undo", "[NAME] [--redo] [--force]", "undo the last message that changed files"),
    Command(
        "export",
        "[NAME] FILE [--jsonl | --otel] [--content] [--force]",
        "for OpenCode; --jsonl: events, --otel: spans (with --content: texts)",
    ),
    Command("import", "FILE [--replace]", "a file that OpenCode or this program exported"),
    Command("rename", "[NAME] TITLE", "put a title of several words in quotes"),
    Command("delete", "NAME... [--yes]", "--yes: several at once"),
    note="NAME is a number of the list, a title, an id or the start of an id. Without NAME: the session that the next\n"
    "%%agent continues.",
)
TOOLS = MagicCommands(
    "%tools",
    Command(LIST, "", "the tools, and what the rules do with a call of each"),
    Command("history", "[N] [--project | --all]", "the last calls of this notebook, the project, or all"),
    Command("doctor", "", "what works here and what does not"),
    Command("undo", "[N] [--force]", "undo the last file changes"),
    Command("clean", "[--all]", "delete files of cut outputs of more than a week ago, or all"),
    Command("reload", "", "read the config files again"),
    Command(
        "trust",
        "[NAME|PATH ...] [--project | --all | --list | --revoke]",
        "project code that needs your trust; trusts it (--project: all of it)",
    ),
)
MCP = MagicCommands(
    "%mcp",
    Command(LIST, "", "the servers and their states"),
    Command(
        "add",
        "NAME URL | NAME -- COMMAND ARGS... [--header K=V] [--env K=V] [--sse] [--timeout SECONDS] [--save] [--global]",
        "a remote server, or a program on this machine; --save and --global also keep it: in\n"
        "the project's configuration, in your own",
    ),
    Command("remove", "NAME [--save]", "remove it; --save: from the file as well"),
    Command("connect", "NAME", "start or restart it"),
    Command("disconnect", "NAME", "stop it"),
    Command("auth", "NAME [--code ADDRESS | --forget | --no-wait]", "log in"),
    Command("logs", "NAME [-n 50]", "its log"),
    Command("tools", "NAME", "its tools"),
    Command("prompts", "[NAME]", "the prompts that servers offer"),
    Command("prompt", "NAME/KEY k=v ...", "the text of a prompt"),
    Command("resources", "[NAME]", "what servers have to read"),
    Command("read", "NAME URI", "a resource"),
)
PERMISSIONS = MagicCommands(
    "%permissions",
    Command(LIST, "", "the rules in force, in order"),
    Command(
        "allow|ask|deny",
        "PERMISSION [PATTERN ...] [--project]",
        "add rules until the kernel ends; --project: in the project's configuration",
    ),
    Command("revoke", "N|PERMISSION [PATTERN ...]", "remove rules that were added"),
    Command("mode", "[NAME] [--session NAME]", "show or set the mode"),
    Command(
        "sandbox",
        "[PROFILE|default] [--user] [--network | --no-network]",
        "show or set the sandbox of a model's commands; --user: of yours too",
    ),
    Command("test", "PERMISSION PATTERN", "which rule decides"),
    Command("history", "[N]", "the last decisions"),
    Command("log", "[N] [--verify]", "the audit log; check its chain"),
)
