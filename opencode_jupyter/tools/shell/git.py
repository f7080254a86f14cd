"""git: which of its commands run other programs.

A rule such as ``git *`` means work on a repository, not the program that ``-c core.pager=...`` names.
"""

from __future__ import annotations

import re

from .words import Word

KNOWN = frozenset(
    "add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore check-mailmap "
    "check-ref-format checkout checkout-index cherry cherry-pick clean clone column commit commit-graph commit-tree "
    "config count-objects credential describe diff diff-files diff-index diff-tree difftool fast-export fast-import "
    "fetch fetch-pack for-each-ref format-patch fsck gc get-tar-commit-id grep gui hash-object help index-pack init "
    "interpret-trailers log ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge merge-base merge-file "
    "merge-index merge-tree mergetool mktag mktree mv name-rev notes pack-objects pack-redundant pack-refs patch-id "
    "prune prune-packed pull push range-diff read-tree rebase reflog remote repack replace request-pull rerere reset "
    "restore rev-list rev-parse revert rm send-pack shortlog show show-branch show-index show-ref sparse-checkout "
    "stage stash status stripspace submodule switch symbolic-ref tag unpack-file unpack-objects update-index "
    "update-ref var verify-commit verify-pack verify-tag version whatchanged worktree write-tree".split()
)
"""git's own commands; another may be an alias, which can be any program."""

_VALUED = frozenset({"-C", "--git-dir", "--work-tree", "--namespace", "--super-prefix"})
_KEYS = re.compile(
    r"alias\..*|core\.(?:pager|editor|fsmonitor|sshcommand|hookspath|askpass|gitproxy|attributesfile|worktree"
    r"|alternaterefscommand)"
    r"|include(?:if)?\..*|.*\.(?:cmd|command|program|textconv|clean|smudge|process|driver|helper|tool|external|editor"
    r"|path|proxy|receivepack|uploadpack|vcs|insteadof|diffcommand|pager|update|tunnel|packobjectshook|difffilter|hook"
    r"|smtpserver|tocmd|cccmd|headercmd|templatedir|browser|fsmonitor|sshcommand|hookspath|url|allow)|pager\..*|sequence\.editor",
    re.IGNORECASE | re.DOTALL,
)
"""Settings that name a program, or lead to other settings."""
_REMOTE = frozenset(
    {"remote", "init", "fetch", "pull", "push", "clone", "ls-remote", "archive", "fetch-pack", "send-pack", "submodule"}
)
_REMOTE_PROGRAM = re.compile(r"--(?:upl|rece|exe|tem|conf)|-u.|-c")
_MESSAGE = frozenset({"-m", "--message", "-am", "-b", "-B", "-F", "--file", "-t", "--trailer", "--author", "--date"})


def runs(arguments: list[Word]) -> str | None:
    """Why a git command may run another program, in words; None if nothing points to it."""
    at = 0
    while at < len(arguments):
        word = arguments[at]
        if word.text is None:
            return f"what {word.source} makes git do is only known at run time"
        if word.text in _VALUED:
            at += 2
        elif word.text.startswith(("-c", "--config-env", "--exec-path=")):
            return f"git {word.text.partition('=')[0]} can set the program that git runs"
        elif word.text.startswith("-"):
            at += 1
        else:
            break
    if at >= len(arguments):
        return None
    command, rest = arguments[at].text or "", arguments[at + 1 :]
    if command not in KNOWN:
        return f"git {command} may be an alias, which can run anything"
    for index, word in enumerate(rest):
        unknown = word.text is None and word.source[:1] in '$`"' and not word.source.startswith('"-')
        if unknown and not (index and rest[index - 1].text in _MESSAGE):
            return f"what {word.source} makes git do is only known at run time"
    return _by_command(command, [word.shown for word in rest])


def _by_command(command: str, rest: list[str]) -> str | None:
    first = next((text for text in rest if not text.startswith("-")), "")
    reason = f"git {command} runs a program from its arguments"
    if command == "config" and any(_KEYS.fullmatch(text.partition("=")[0]) for text in rest):
        return "this setting of git can name a program to run"
    if (command, first) in (("bisect", "run"), ("submodule", "foreach")):
        return reason
    if command == "rebase" and any(text.startswith(("-x", "--ex")) for text in rest):
        return reason
    if command == "grep" and any(text.startswith(("-O", "--op")) for text in rest):
        return reason
    if command in ("difftool", "mergetool") and any(text.startswith(("-x", "--ext", "--too", "-t")) for text in rest):
        return reason
    if command == "config" and any(
        text in ("--rename-section", "rename-section", "-e", "--edit", "edit") for text in rest
    ):
        return "this setting of git can name a program to run"
    if command == "clone" and any(text == "-u" or text.startswith("-u") for text in rest):
        return reason
    if any(text.startswith("--output=") or text == "--output" for text in rest) and command != "archive":
        return f"git {command} --output writes a file"
    if command in _REMOTE and any(_REMOTE_PROGRAM.match(text) or "ext::" in text for text in rest):
        return reason
    if any(text.startswith("--ext-d") for text in rest):
        return "git --ext-diff runs the program that the settings name"
    return None
