"""What is known of commands: which take paths, which run other commands, which variables change what runs."""

from __future__ import annotations

import re

PATH_COMMANDS = frozenset({"cd", "rm", "cp", "mv", "mkdir", "touch", "chmod", "chown", "cat"})
"""Commands whose arguments OpenCode looks at as paths."""
WRITERS = frozenset(
    {"tee", "ln", "install", "truncate", "rmdir", "unlink", "shred", "mkfifo", "mknod", "rsync", "chgrp", "pushd"}
)
"""More that write where their arguments say."""

MOVERS = frozenset({"cd", "pushd"})
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "fish"})
INTERPRETERS = re.compile(r"(?:python|pypy|perl|ruby|node|deno|bun|php|lua|tclsh|Rscript|osascript|pwsh)[\d.]*")
INLINE_CODE = re.compile(r"-[A-Za-z]*[ceErp]|--(?:eval|exec|print|execute|command)(?:=.*)?|eval", re.DOTALL)
"""Options with which an interpreter takes a program as its argument."""
OPAQUE = frozenset({"source", ".", "trap", "alias", "enable", "complete", "bind", "hash", "fc"})
"""Builtins that change what later words mean, or run a file in this shell."""

WRAPPERS: dict[str, tuple[str, int]] = {
    # name: (options that take the next word as their value, how many words come before the inner command)
    "builtin": ("", 0),
    "busybox": ("", 0),
    "chroot": ("", 1),
    "chrt": ("-T -P -D", 1),
    "command": ("", 0),
    "coproc": ("", 0),
    "doas": ("-u -C", 0),
    "env": ("-u -C -S --unset --chdir --split-string", 0),
    "exec": ("-a", 0),
    "flock": ("-w -E --timeout", 1),
    "ionice": ("-c -n -p", 0),
    "nice": ("-n --adjustment", 0),
    "nohup": ("", 0),
    "setsid": ("", 0),
    "stdbuf": ("-i -o -e", 0),
    "strace": ("-e -o -p -s -u", 0),
    "sudo": ("-u -g -h -p -C -r -t -U -D -R -T", 0),
    "taskset": ("", 1),
    "time": ("-f -o", 0),
    "timeout": ("-s -k --signal --kill-after", 1),
    "unshare": ("", 0),
    "watch": ("-n -d --interval", 0),
    "xargs": ("-a -d -E -I -L -n -P -s --arg-file --delimiter --max-args --max-procs --replace --max-lines", 0),
}
"""Commands whose arguments are another command."""

FIND_EXEC = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
FIND_WRITES = frozenset({"-delete", "-fprint", "-fprint0", "-fprintf", "-fls"})

DANGEROUS = re.compile(
    r"PATH|CDPATH|LD_.*|DYLD_.*|BASH_ENV|ENV|BASHOPTS|SHELLOPTS|IFS|PS4|PROMPT_COMMAND|GIT_.*|PAGER|MANPAGER|LESSOPEN"
    r"|EDITOR|VISUAL|PYTHON.*|NODE_OPTIONS|PERL5.*|RUBY(?:OPT|LIB)|JAVA_TOOL_OPTIONS|HOME|SHELL|BROWSER"
)
"""Variables that decide which program runs, or have one run."""

HARMLESS_TARGETS = re.compile(r"/dev/(?:null|zero|full|tty|std(?:in|out|err)|fd/\d+)")
"""Redirections that reach no file."""
