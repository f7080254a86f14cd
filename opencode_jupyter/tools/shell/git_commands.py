"""git: which of its commands run other programs, work on another repository or write start-up files.

A rule such as ``git *`` means work on a repository, not the program that ``-c core.pager=...`` names. Options may be
cut short, and letters may share a dash.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterable
from itertools import islice
from typing import NamedTuple

from ...core.permission.sensitive_files import is_startup_file
from .word_expansion import Word

REVISIONS = 8
"""Revisions of a line that are looked at."""
PATIENCE = 1.0
"""Seconds that one of them may take."""
_REVISION = re.compile(r"[\w@][\w@{}./~^+-]*")
READING = frozenset(
    "add annotate blame cat-file check-attr check-ignore check-mailmap check-ref-format cherry column "
    "commit count-objects describe diff diff-files diff-index diff-tree fetch for-each-ref fsck grep help "
    "log ls-files ls-remote ls-tree merge-base name-rev push range-diff reflog remote rev-list rev-parse "
    "shortlog show show-branch show-index show-ref stage status var verify-commit verify-pack verify-tag "
    "version whatchanged branch tag".split()
)
"""git's own commands that write no file of the working tree."""
TREE = frozenset(
    "am apply checkout checkout-index cherry-pick clone merge pull read-tree rebase reset restore revert "
    "stash submodule switch worktree bisect".split()
)
"""Those that may put any file, or a link, into the working tree."""
KNOWN = (
    READING
    | TREE
    | frozenset(
        "archive bundle clean commit-graph commit-tree config fast-export fetch-pack format-patch gc "
        "get-tar-commit-id gui hash-object index-pack init interpret-trailers mailinfo mailsplit "
        "maintenance merge-file merge-tree mktag mktree mv notes pack-objects pack-redundant pack-refs "
        "patch-id prune prune-packed repack replace request-pull rerere rm send-pack sparse-checkout "
        "stripspace symbolic-ref unpack-file unpack-objects update-index update-ref write-tree".split()
    )
)
"""git's own commands; another may be an alias, which can be any program."""

_GLOBAL = frozenset(
    "-p --paginate -P --no-pager --no-replace-objects --literal-pathspecs --glob-pathspecs "
    "--noglob-pathspecs --icase-pathspecs --no-optional-locks --version -v --help -h --exec-path "
    "--html-path --man-path --info-path".split()
)
"""Options before the command that change neither what git runs nor where."""
_KEYS = (
    r"(?is)alias\..*|core\.(?:pager|editor|fsmonitor|sshcommand|hookspath|askpass|gitproxy|attributesfile|worktree|bare"
    r"|alternaterefscommand|excludesfile|symlinks|protect.*)"
    r"|include(?:if)?\..*|.*\.(?:cmd|command|program|textconv|clean|smudge|process|driver|helper|tool|external|editor"
    r"|path|proxy|receivepack|uploadpack|vcs|insteadof|diffcommand|pager|update|tunnel|packobjectshook|difffilter|hook"
    r"|httpd|modulepath|smtpserver|tocmd|cccmd|headercmd|templatedir|browser|fsmonitor|sshcommand|hookspath|url|allow|barerepository"
    r"|directory|template|man|web)|pager\..*|sequence\.editor|interactive\..*|gui\..*|guitool\..*|mailmap\..*|blame\..*"
)
"""Settings that name a program or a file, or lead to other settings."""


class _Runs(NamedTuple):
    """Options of a command that run a program, write a file or bring in settings.

    Attributes:
        long: their names.
        letters: short ones.
        valued: letters of other options whose value is the rest of the word.
    """

    long: str
    letters: str = ""
    valued: str = ""


_REMOTE = frozenset("remote fetch pull push clone ls-remote archive fetch-pack send-pack submodule".split())
_TRANSPORT = _Runs("upload-pack receive-pack exec")
_OPTIONS = {
    "grep": _Runs("open-files-in-pager ext-grep", "O", "efmABC"),
    "rebase": _Runs("exec", "x", "sXCS"),
    "clone": _Runs("upload-pack config template separate-git-dir", "uc", "objX"),
    "init": _Runs("template separate-git-dir"),
    "archive": _Runs("exec remote"),
    "apply": _Runs("unsafe-paths"),
    "checkout-index": _Runs("prefix"),
    "config": _Runs("edit rename-section", "e", "f"),
    "submodule": _Runs("upload-pack reference"),
    "help": _Runs("web", "w"),
    **dict.fromkeys(("fetch", "pull", "push", "ls-remote", "fetch-pack", "send-pack"), _TRANSPORT),
}
_PROGRAMS = (
    r"(?:difftool|mergetool|merge-index|fast-import|credential|gui)\b.*|bisect (?:run|visualize|view)|submodule foreach"
    r"|maintenance (?:start|register|unregister|stop)|config (?:edit|rename-section)"
)
"""Commands that run a program whatever their options."""
_MESSAGE = frozenset({"-m", "--message", "-am", "-b", "-B", "-F", "--file", "-t", "--trailer", "--author", "--date"})


def command(arguments: list[Word]) -> tuple[str, list[Word]]:
    """The git command among the words, and the words after it; "" if there is none."""
    for at, word in enumerate(arguments):
        if not word.shown.startswith("-") and (at == 0 or arguments[at - 1].text != "-C"):
            return word.shown, arguments[at + 1 :]
    return "", []


def runs(arguments: list[Word], is_bare: Callable[[str | None], bool]) -> str | None:
    """Why a git command may do more than work on its repository, in words; None if nothing points to it.

    Args:
        arguments: its words.
        is_bare: whether git takes its settings from a folder that is a repository without a working tree.
    """
    folder: str | None = "."
    name, rest = command(arguments)
    for before, word in zip([None, *arguments], arguments[: len(arguments) - len(rest) - bool(name)], strict=False):
        if word.text is None:
            return f"what {word.source} makes git do is only known at run time"
        if before is not None and before.text == "-C":
            folder = None if word.glob or folder is None or "{}" in word.text else os.path.join(folder, word.text)
        elif word.text not in _GLOBAL and word.text != "-C":
            return f"git {word.text.partition('=')[0]} can set what git runs, or where it finds its settings"
    if name and is_bare(folder):
        return "git takes its settings from a repository inside the project"
    if name and name not in KNOWN:
        return f"git {name} may be an alias, which can run anything"
    for index, word in enumerate(rest):
        unknown = word.text is None and word.source[:1] in '$`"<'
        if unknown and not (index and rest[index - 1].text in _MESSAGE):
            return f"what {word.source} makes git do is only known at run time"
    shown = [word.shown for word in rest]
    first = next(iter(_operands(shown)), "")
    if re.fullmatch(_PROGRAMS, f"{name} {first}"):
        return f"git {name} {first} runs a program".replace("  ", " ")
    if name == "config" and (any(text.startswith(("--gl", "--sy")) for text in shown) and len(_operands(shown)) > 1):
        return "it changes settings of git outside the project"
    if name == "config" and any(re.fullmatch(_KEYS, text.partition("=")[0]) for text in shown):
        return "this setting of git can name a program to run"
    if name in _REMOTE and any(re.search(r"(?:^|=)\w[\w+.-]*::", text) for text in shown):
        return f"git {name} runs the program for such an address"
    return _by_options(name, rest)


def _operands(words: list[str]) -> list[str]:
    return [text for text in words if not text.startswith("-") or text.startswith(("--unset", "--remove"))]


def _by_options(name: str, rest: list[Word]) -> str | None:
    options = _OPTIONS.get(name, _Runs(""))
    for word in rest:
        if word.text == "--":
            break
        if (word.text is not None or options.long) and word.may_be_option(
            f"{options.long} ext-diff", options.letters, options.valued
        ):
            return f"git {name} {word.source} runs a program, or changes what git runs"
        if name != "archive" and word.may_be_option("output", "") and word.shown.startswith("--o"):
            return f"git {name} --output writes a file"
    return None


def startup_changes(folder: str, words: Iterable[str]) -> list[str]:
    """The start-up files that differ between the working tree's commit and the revisions among some words.

    Args:
        folder: of the working tree.
        words: operands of git commands, revisions among them.
    """
    settings = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ALLOW_PROTOCOL": "none"}
    command = ["git", "-c", "safe.bareRepository=explicit", "-C", folder, "diff-tree", "-r", "-z", "--name-only"]
    out: list[str] = []
    for word in islice(words, REVISIONS):
        if not _REVISION.fullmatch(word):
            continue
        try:
            process = subprocess.run(
                [*command, "HEAD", word, "--"],
                env={**os.environ, **settings},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PATIENCE,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        out += filter(is_startup_file, process.stdout.decode("utf-8", "replace").split("\0"))
    return out
