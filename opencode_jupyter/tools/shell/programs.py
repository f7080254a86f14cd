"""Programs whose own arguments can run other programs: which words of theirs do.

A rule such as ``tar *`` means archives, not what ``--checkpoint-action=exec=...`` runs. Options may be shortened as GNU
allows, and several letters may share one dash.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ...core.arity import ARITY
from . import catalog, interpreters, wrappers
from .word_expansion import Word

LAUNCHERS = frozenset(
    "abduco anacron ansible aria2c at batch bwrap byobu capsh cgexec chpst cpulimit crontab daemonize "
    "busctl dbus-run-session dbus-send distrobox-enter dtach eatmydata entr envdir expect fakechroot fakeroot faketime "
    "firejail flatpak fswatch gdb gdbus gosu hyperfine i386 linux32 linux64 lldb ltrace machinectl mispipe mosh "
    "mpirun mpiexec nix-shell nodemon nsenter numactl parallel pee perf pkexec prlimit proot proxychains "
    "proxychains4 qemu-aarch64 qemu-arm qemu-i386 qemu-x86_64 rlwrap run-parts run0 runcon runuser sbatch "
    "screen script scriptlive sem setarch setlock setpriv sg softlimit srun ssh ssh-agent sshpass "
    "start-stop-daemon su su-exec sudoedit systemd-run tmux torsocks uname26 unbuffer valgrind vipe "
    "watchexec wine wsl x86_64 xterm xvfb-run zellij".split()
)
"""Programs that run what their arguments or their input say, in ways that are not analysed here."""

_LISTS = {"tmux": (["ls"], ["list-sessions"]), "crontab": (["-l"],), "screen": (["-ls"], ["-list"]), "at": (["-l"],)}
"""What such a program only lists with."""

SUBCOMMANDS: dict[str, tuple[str, ...]] = {
    "cmake": ("-E", "-P"),
    "docker": ("run", "exec", "compose run", "compose exec", "container run", "container exec", "build", "buildx"),
    "docker-compose": ("run", "exec"),
    "podman": ("run", "exec"),
    "kubectl": ("exec", "debug", "run", "cp"),
    "ip": ("netns exec", "vrf exec"),
    "lxc": ("exec",),
    "vagrant": ("ssh",),
    "gcloud": ("compute ssh",),
    "npm": ("explore", "set-script", "config", "c", "set", "pkg set"),
    "pnpm": ("config",),
    "yarn": ("config",),
    "gh": ("alias", "extension", "codespace ssh"),
    "guix": ("shell", "environment"),
    "nix": ("run", "develop", "shell"),
    "openssl": ("engine",),
    "just": ("--command", "--shell"),
    "pip": ("config",),
}
"""Programs that run what follows these words."""

LOADER = re.compile(r"ld(?:-[\w.-]+)?\.so(?:\.\d+)?")
"""The dynamic loader, which runs the program it is given."""

FED = frozenset(
    "bc dc duckdb ed ex ftp gdb gnuplot gp lftp lua m4 mail mailx mysql mariadb nslookup psql sftp sqlite3 "
    "tclsh telnet terraform vi vim nvim zsh".split()
)
"""Programs that take commands, shell commands among them, from their input."""

_TAR = (
    "checkpoint-action to-command use-compress-program info-script new-volume-script rsh-command rmt-command "
    "files-from transform xform absolute-names"
)
OPTIONS: dict[str, tuple[str, str]] = {
    # name: (long options, letters)
    **dict.fromkeys(("ack", "ag", "bat", "batcat"), ("pager", "")),
    **dict.fromkeys(("ar", "nm", "objcopy", "objdump", "ranlib", "strip"), ("plugin", "")),
    **dict.fromkeys(("diff3", "sdiff"), ("diff-program", "")),
    **dict.fromkeys(("groff", "nroff", "pic", "troff"), ("", "U")),
    "apt": ("option config-file", "oc"),
    "apt-config": ("option config-file", "oc"),
    "apt-get": ("option config-file", "oc"),
    "bsdtar": ("use-compress-program files-from", "IT"),
    "cargo": ("config", ""),
    "cpio": ("rsh-command", ""),
    "curl": ("config engine remote-header-name", "KJ"),
    "debugfs": ("", "fR"),
    "dpkg": ("pre-invoke post-invoke", ""),
    "exiftool": ("", ""),
    "fd": ("exec exec-batch", "xX"),
    "fdfind": ("exec exec-batch", "xX"),
    "fzf": ("preview bind with-shell", ""),
    "gpg": ("photo-viewer exec-path load-extension agent-program dirmngr-program homedir options pinentry-program", ""),
    "gradle": ("init-script", "I"),
    "hg": ("config", ""),
    "install": ("strip-program", ""),
    "just": ("shell shell-arg command", "c"),
    "logrotate": ("", ""),
    "make": ("eval", "E"),
    "man": ("pager html preprocessor config-file", "PHC"),
    "mlr": ("prepipe prepipex load mload", ""),
    "more": ("", ""),
    "mypy": ("python-executable", ""),
    "nano": ("speller rcfile", "sf"),
    "ncat": ("exec sh-exec lua-exec", "ec"),
    "nc": ("", "ec"),
    "netcat": ("", "ec"),
    "nmap": ("script", ""),
    "npm": (
        "script-shell userconfig globalconfig node-options browser viewer editor git node-gyp shell init-module",
        "",
    ),
    "patch": ("ed", "e"),
    "pandoc": ("filter lua-filter pdf-engine pdf-engine-opt defaults syntax-definition", "FLd"),
    "pip": ("python global-option config-settings build-option", ""),
    "pylint": ("init-hook", ""),
    "pytest": ("basetemp", ""),
    "rg": ("pre hostname-bin", ""),
    "rpm": ("eval define pipe load macros", "ED"),
    "rsync": ("rsh rsync-path files-from daemon config read-batch", "e"),
    "scp": ("", "oSFD"),
    "script": ("command", "c"),
    "setfacl": ("restore", ""),
    "sftp": ("", "oSFDb"),
    "sort": ("compress-program files0-from", ""),
    "split": ("filter", ""),
    "ssh-add": ("", "s"),
    "ssh-copy-id": ("", "oF"),
    "ssh-keygen": ("", "D"),
    "sshfs": ("", "oF"),
    "svn": ("config-option diff-cmd diff3-cmd editor-cmd merge-cmd", ""),
    "tar": (_TAR, "IFTP"),
    "tcpdump": ("", "z"),
    "tshark": ("", "X"),
    "wget": (
        "use-askpass execute config content-disposition trust-server-names recursive mirror page-requisites",
        "ermp",
    ),
    "yt-dlp": ("exec exec-before-download netrc-cmd downloader config-locations", ""),
    "xz": ("files files0", ""),
    "zip": ("unzip-command", "T@"),
    "zstd": ("filelist", ""),
}
"""Options whose value is run, or a file that can have programs run."""
OPTIONS |= {"gtar": OPTIONS["tar"], "gmake": OPTIONS["make"], "pip3": OPTIONS["pip"], "gsort": OPTIONS["sort"]}
OPTIONS["py.test"] = OPTIONS["pytest"]
_WORDS = {
    "7z": r"-?@.*|-\w*@.*",
    "dc": r"-[ef].*|--.*",
    "ed": r"!.*",
    "gcc": r"-wrapper|-Xlinker|-Wl,.*-plugin.*|-B.*|-fplugin.*|-specs.*|--specs.*|@.*"
    r"|-W[alp],.*@.*|-fuse-ld=.*/.*|-fpass-plugin.*|--ld-path.*|-Xclang",
    "go": r"--?(?:toolexec|vettool|exec|overlay|compiler)\b.*|generate|tool|-w|.*-extld.*",
    "java": r"-(?:agentpath|agentlib|javaagent|XX:(?:On|Flags|VMOptions)).*|@.*",
    "javac": r"-(?:processorpath|processor|J.*)|@.*",
    "ld": r"--?plugin.*|@.*",
    "less": r"\+.*|-[kKt].*|--lesskey.*",
    "more": r"\+.*",
    "mvn": r"exec:.*|-Dexec.*|antrun:.*",
    "openssl": r"-(?:engine|provider|provider-path|config|provparam)(?:=.*)?",
    "pandoc": r".*\.lua",
    "pdflatex": r"(?s)--?(?:shell-escape|enable-write18|shell-restricted).*|.*\\(?:write|input\||directlua).*",
    "rustc": r"-C(?:linker.*)?|--codegen.*|@.*",
    "socat": r"(?is).*\b(?:EXEC|SYSTEM|SHELL):.*",
    "gs": r"-c|-dNOSAFER|.*%pipe%.*",
    "convert": r"(?i)(?:msl|ephemeral|vid|text|mvg|https?):.*|@.*|.*\|.*",
    "ansible": r".*",
    "m4": r"(?s).*[(`].*|-R.*|--rel.*",
    "mongosh": r"--eval.*|-f|--file.*",
    "exiftool": r"-config|-if\d*|-@|-p|-userParam",
    "yq": r"(?s).*load\w*\(.*|-s.*|--split-exp.*",
    "star": r"-?compress-program=.*",
}
"""Words with which a program runs another."""
_WORDS |= dict.fromkeys(("cc", "g++", "c++", "clang", "clang++", "gfortran"), _WORDS["gcc"])
_WORDS |= dict.fromkeys(("latex", "xelatex", "lualatex", "tex", "pdftex", "luatex", "latexmk"), _WORDS["pdflatex"])
_WORDS |= dict.fromkeys(("magick", "mogrify", "identify", "composite"), _WORDS["convert"])
_TEXTS = {
    "curl": r"%output\{",
    "duckdb": r"(?i)'(?:/|~|[^']*(?:\.\.|/\.|opencode))|\bto\s+'\.|\b(?:install|load)\s",
    "jq": r"\b(?:import|include)\s*\"",
    "mlr": r"\b(?:system|exec)\s*\(|\btee\b|\|\s*\"|>\s*\"",
    "rename": r"(?s)[`$@;{]|^(?:s|y|tr)\W.*\W[a-z]*e[a-z]*$|\b(?:system|exec|qx|eval|(?:un|sym)?link|rename"
    r"|ch(?:mod|own|dir)|(?:mk|rm)dir|truncate|open|require|do|use)\b",
}
_TEXTS |= dict.fromkeys(("prename", "file-rename"), _TEXTS["rename"])
"""What in a program's words, wherever it stands, has it run another or reach other files."""

EDITORS = frozenset("emacs emacsclient ex gview gvim nvim rview rvim vi view vim vimdiff".split())
_EDITS = r"\+.|-\w*[cSsluwWV]|--(?:cmd|eval|load|script|batch|init-directory)|-(?:eval|f|funcall|l|load)"
_SHELL_ESCAPE = (
    r"(?im)(?:^|;)\s*\.(?:sh|sys|once|o|import|load|read|excel|edit|backup|save|clone|log|ar|restore|cd)|\\[!ogwsic]|\bsystem\b|\bsource\b|-cmd|-init|\bprogram\b|--pager|\battach\b|\bvacuum\s+into\b|^-A"
    r"|\b(?:edit|load_extension|writefile|readfile)\s*\(|\\(?:copy|setenv|gexec|watch)|`|^--?(?:init-command|rcfile)"
)
_CLIENTS = frozenset({"sqlite3", "psql", "mysql", "mariadb", "duckdb"})
_RECIPE = re.compile(r"[$`;|&<>()#\n]")
_MAKE_PROGRAMS = frozenset(
    "AR AS CC CO CPP CTANGLE CXX FC GET LD LEX LINT M2C MAKEINFO PC RM TANGLE TEX WEAVE YACC".split()
)
"""Variables that name the programs of make's own rules."""
_TOOLCHAIN = re.compile(r"[\w-]*(?:cc|clang|[gc]\+\+|clang\+\+|gfortran|ccache|ar|ld|cpp|as)(?:-?[\d.]+)?(?: .*)?")


def runs(name: str, arguments: list[Word], *, fed: bool) -> str | None:
    """Why a command may run more than its name says, in words; None if nothing points to it.

    Args:
        name: the program, without its folder.
        arguments: its words.
        fed: whether its input comes from a pipe, a file or the text itself.
    """
    if [word.shown for word in arguments] in _LISTS.get(name, ()):
        return None
    if name in LAUNCHERS or LOADER.fullmatch(name):
        return f"{name} runs a program from its arguments" if arguments or fed else None
    shown = [word.shown for word in arguments]
    operands = [text for text in shown if not text.startswith("-")]
    for inner in SUBCOMMANDS.get(name, ()):
        words = inner.split()
        if (words == operands[: len(words)]) if not inner.startswith("-") else inner in shown:
            return f"{name} {inner} runs a program from its arguments"
    pattern = _WORDS.get(name)
    if pattern is not None and any(word.text is None or re.fullmatch(pattern, word.text) for word in arguments):
        return f"{name} can run programs, and its input may contain some"
    if name in _TEXTS and any(re.search(_TEXTS[name], text) for text in shown):
        return f"{name} can run programs or reach files by the text it is given"
    if name in ("make", "gmake") and (reason := _recipes(arguments)):
        return reason
    if name == "coverage":
        return interpreters.coverage(arguments)
    if fed and (
        name in FED or (name == "make" and any(word.shown.startswith(("-f", "--f", "--m")) for word in arguments))
    ):
        return f"{name} takes commands from its input"
    if name in OPTIONS:
        return _by_options(name, arguments)
    reader: Callable[[list[Word]], str | None] | None = _READERS.get(name)
    if reader is not None:
        return reader(arguments)
    if name in EDITORS and any(word.text is None or re.match(_EDITS, word.text) for word in arguments):
        return f"it passes {name} commands to run"
    if name in _CLIENTS and any(word.text is None or re.search(_SHELL_ESCAPE, word.text) for word in arguments):
        return f"{name} can run shell commands, and its input may contain some"
    return None


def runs_module(arguments: list[Word], *, fed: bool) -> str | None:
    """Why the module that ``python -m`` names may run more than that, as `runs` says it."""
    module = interpreters.module(arguments)
    return runs(module[0].shown, module[1:], fed=fed) if module else None


def by_arguments(name: str) -> bool:
    """Return whether a program may run another if its arguments say so, so that none may come from elsewhere."""
    return (
        name in OPTIONS
        or name in _READERS
        or name in EDITORS
        or name in _CLIENTS
        or name in _WORDS
        or name in ("find", "git")
    )


_SUBCOMMANDS = frozenset(key.partition(" ")[0] for key in [*ARITY, *wrappers.WRAPPERS])
_NO_COMMANDS = frozenset(
    "chmod chown mkdir rm touch tee truncate rmdir unlink shred mkfifo mknod chgrp sponge split csplit dd "
    "gcc cc g++ clang gzip gunzip bzip2 xz zstd iconv dos2unix unix2dos uniq shuf tsort pr unexpand "
    "objcopy strip readelf nm ar xxd uuencode uudecode pytest ruff mypy black isort flake8 pylint jupyter "
    "conda mamba apt apt-get yum dnf apk pacman service mount umount useradd groupadd alias unalias "
    "whereis apropos info locate pgrep pkill killall echo logger figlet cowsay notify-send say zip unzip "
    "patch ffmpeg convert pandoc wget curl".split()
)


def is_known(name: str) -> bool:
    """Return whether it is known what a program does with its words: another may run them."""
    return (
        by_arguments(name)
        or name in LAUNCHERS
        or name in SUBCOMMANDS
        or name in _SUBCOMMANDS
        or name in _NO_COMMANDS
        or name in interpreters.SHELLS
        or interpreters.interpreter(name) is not None
        or name in catalog.COPIERS | catalog.NO_PATHS | catalog.OPAQUE | catalog.MOVERS | catalog.PATTERN_FIRST
        or catalog.only_reads(name, [])
    )


def _recipes(arguments: list[Word]) -> str | None:
    """``make VARIABLE=value``: make and the shells it starts read the value."""
    for word in arguments:
        name, equals, value = word.shown.partition("=")
        if not equals or name.startswith("-"):
            continue
        variable = name.rstrip(":!?+")
        if variable in _MAKE_PROGRAMS and not _TOOLCHAIN.fullmatch(value):
            return f"make runs what {variable} is set to"
        if name.endswith("!") or variable in ("SHELL", "MAKE", "MAKEFLAGS", ".SHELLFLAGS") or _RECIPE.search(value):
            return f"make runs what {variable} is set to"
    return None


def _by_options(name: str, arguments: list[Word]) -> str | None:
    long, letters = OPTIONS[name]
    if name in ("tar", "gtar") and any(word.text in ("--verbatim-files-from", "--null") for word in arguments):
        long, letters = long.replace("files-from", ""), letters.replace("T", "")
    for index, word in enumerate(arguments):
        if word.text == "--":
            return None
        bundled = name in ("tar", "gtar", "bsdtar") and index == 0 and word.text is not None and word.text[:1] != "-"
        if (Word("", "-" + word.shown) if bundled else word).may_be_option(long, letters):
            return f"{name} {word.source.partition('=')[0]} runs a program, or may become an option that does"
    return None


_READERS: dict[str, Callable[[list[Word]], str | None]] = {
    **dict.fromkeys(("awk", "original-awk", "goawk"), interpreters.awk),
    "gawk": interpreters.awk,
    "mawk": interpreters.awk,
    "nawk": interpreters.awk,
    "sed": interpreters.sed,
    "gsed": interpreters.sed,
}
