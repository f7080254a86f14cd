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
INTERPRETERS = re.compile(r"(python|pypy|perl|ruby|node|deno|bun|php|lua|tclsh|Rscript|osascript|pwsh)[\d.]*")
_CODE = r"-(?!-)[A-Za-z0-9]*?[{}]|--(?:eval|exec|print|execute|command|require|import)\b"
INLINE_CODE = {
    **dict.fromkeys(("python", "pypy"), re.compile(_CODE.format("c"))),
    **dict.fromkeys(("node", "deno", "bun"), re.compile(_CODE.format("epr") + "|eval")),
    "perl": re.compile(_CODE.format("eEM")),
    "ruby": re.compile(_CODE.format("er")),
    "php": re.compile(_CODE.format("rBRE")),
    "pwsh": re.compile(""),
    **dict.fromkeys(("lua", "tclsh", "Rscript", "osascript"), re.compile(_CODE.format("e"))),
}
"""By interpreter, the options with which it takes a program as its argument, attached or not."""
RUNNING_MODULES = frozenset({"timeit", "pdb", "code", "trace", "cProfile", "profile", "runpy", "asyncio"})
"""Python's modules that run a program they are given."""
RESERVED = frozenset({"{", "(", "!", "[[", "if", "while", "until", "for", "case", "select", "function", "then", "do"})
"""Words that begin something other than a simple command."""
OPAQUE = frozenset({"source", ".", "trap", "alias", "enable", "complete", "bind", "hash", "fc", "compgen"})
"""Builtins that change what later words mean, or run a file in this shell."""
OPAQUE_WITH = {"mapfile": "C", "readarray": "C", "history": "s"}
"""Builtins that do so with one of these options."""

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
