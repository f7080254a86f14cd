"""Programs whose own arguments can run other programs: which words of theirs do.

A rule such as ``tar *`` means archives, not what ``--checkpoint-action=exec=...`` runs. Options may be shortened as GNU
allows, and several letters may share one dash.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from . import git, scripts
from .words import Word

LAUNCHERS = frozenset(
    "at batch capsh catchsegv cgexec chpst crontab daemonize dbus-run-session eatmydata entr envdir expect fakeroot "
    "faketime firejail gdb hyperfine i386 linux32 linux64 ltrace nsenter numactl parallel perf pkexec prlimit proot "
    "proxychains proxychains4 rlwrap run-parts runuser screen setarch setpriv sg softlimit ssh ssh-agent "
    "start-stop-daemon su systemd-run tmux torsocks uname26 unbuffer valgrind x86_64 xvfb-run".split()
)
"""Programs that run what their arguments or their input say, in ways that are not told apart here."""

LOADER = re.compile(r"ld(?:-[\w.-]+)?\.so(?:\.\d+)?")
"""The dynamic loader, which runs the program it is given."""

FED = frozenset("bc dc ed ex gdb lua m4 mail mysql psql sftp sqlite3 tclsh vi vim nvim".split())
"""Programs that take commands, shell commands among them, from their input."""

OPTIONS: dict[str, tuple[str, str]] = {
    # name: (long options, letters)
    "fd": ("exec exec-batch", "xX"),
    "fdfind": ("exec exec-batch", "xX"),
    "make": ("eval", ""),
    "man": ("pager html preprocessor", "PH"),
    "rg": ("pre hostname-bin", ""),
    "rsync": ("rsh rsync-path", "e"),
    "scp": ("", "oSFD"),
    "script": ("command", "c"),
    "sftp": ("", "oSFD"),
    "sort": ("compress-program", ""),
    "split": ("filter", ""),
    "tar": (
        "checkpoint-action to-command use-compress-program info-script new-volume-script rsh-command rmt-command",
        "IF",
    ),
    "zip": ("unzip-command", "T"),
}
"""Options whose value is run."""

EDITORS = frozenset("emacs ex nvim vi view vim vimdiff".split())
_EDITS = re.compile(r"\+.|-[cSsl]|--(?:cmd|eval|load|script|batch)|-(?:eval|f|funcall|l|load)")
_SHELL_ESCAPE = re.compile(r"^\s*\.(?:shell|system|sh\b|sys\b)|\\!|^system\b|-cmd|-init", re.MULTILINE)
_CLIENTS = frozenset({"sqlite3", "psql", "mysql"})


def runs(name: str, arguments: list[Word], *, fed: bool) -> str | None:
    """Why a command may run more than its name says, in words; None if nothing points to it.

    Args:
        name: the program, without its folder.
        arguments: its words.
        fed: whether its input comes from a pipe, a file or the text itself.
    """
    if name in LAUNCHERS or LOADER.fullmatch(name):
        return f"{name} runs what it is told to" if arguments or fed else None
    if fed and (
        name in FED or (name == "make" and any(word.shown.startswith(("-f", "--f", "--m")) for word in arguments))
    ):
        return f"{name} takes commands from its input"
    if name in OPTIONS:
        return _by_options(name, arguments)
    reader: Callable[[list[Word]], str | None] | None = _READERS.get(name)
    if reader is not None:
        return reader(arguments)
    if name in EDITORS and any(word.text is None or _EDITS.match(word.text) for word in arguments):
        return f"it gives {name} commands to run"
    if name in _CLIENTS and any(word.text is None or _SHELL_ESCAPE.search(word.text) for word in arguments):
        return f"{name} can run shell commands, and what it is given may"
    return None


def _by_options(name: str, arguments: list[Word]) -> str | None:
    long, letters = OPTIONS[name]
    for index, word in enumerate(arguments):
        if word.text is None:
            if word.source[:1] in '$`"' and not word.source.startswith('"-'):
                return f"what {word.source} gives {name}, only running it can tell"
            continue
        text = word.text
        if text == "--":
            return None
        if text.startswith("--"):
            given = text[2:].partition("=")[0]
            if given and any(option.startswith(given) for option in long.split()):
                return f"{name} {text.partition('=')[0]} runs a program"
        elif (text.startswith("-") or (name == "tar" and index == 0)) and set(letters) & set(text.partition("=")[0]):
            return f"{name} {text} runs a program"
    return None


_READERS: dict[str, Callable[[list[Word]], str | None]] = {
    "awk": scripts.awk,
    "gawk": scripts.awk,
    "mawk": scripts.awk,
    "nawk": scripts.awk,
    "git": git.runs,
    "sed": scripts.sed,
    "gsed": scripts.sed,
}
