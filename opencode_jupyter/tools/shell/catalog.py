"""A catalog of commands and variables: which take paths, which run other commands, which change what runs."""

from __future__ import annotations

import re

from .word_expansion import Word

PATH_COMMANDS = frozenset({"cd", "rm", "cp", "mv", "mkdir", "touch", "chmod", "chown", "cat"})
"""Commands whose arguments OpenCode looks at as paths."""
WRITERS = frozenset("tee dd ln install truncate rmdir unlink shred mkfifo mknod rsync chgrp pushd sponge".split())
"""More that write where their arguments say."""

COPIERS = frozenset("cp mv rsync ln install scp".split())
"""Programs that copy or move folders with all that is in them."""
EXTRACTORS = frozenset("tar gtar bsdtar unzip patch gpatch 7z 7za cpio pax ar unar git".split())
"""Programs that write files whose names are in another file."""
RECURSIVE = {
    **dict.fromkeys(("grep", "egrep", "fgrep"), r" -\w*[rR]| --(?:rec|deref|dir)"),
    **dict.fromkeys(("rg", "ag", "ack", "rsync"), ""),
    **dict.fromkeys(("fd", "fdfind"), r" -\w*[xX]| --exec"),
    **dict.fromkeys(("tar", "bsdtar", "gtar"), r"^ -?\w*[cru]| -\w*[cru]| --(?:cre|app|upd)"),
    **dict.fromkeys(("cp", "scp"), r" -\w*[rRa]| --(?:rec|arch)"),
    "diff": r" -\w*r| --rec",
    "find": r" -(?:exec|ok)",
    "git": r"^ grep .*--(?:no-ind|unt)",
    "zip": r" -\w*[rR]| --rec",
}
"""Programs that read all files of a folder, and with which options."""
LISTING = {
    **dict.fromkeys(("find", "fd", "fdfind", "ls"), ""),
    "git": r"^ ls-files .*(?:-\w*[oi]|--(?:oth|ign))",
}
"""Programs that list files which others then read, and with which options."""
FOLLOWING = {
    **dict.fromkeys(("grep", "egrep", "fgrep"), r" -\w*R| --deref"),
    **dict.fromkeys(("rg", "fd", "fdfind", "rsync", "cp"), r" -\w*[LH]| --(?:follow|copy|deref)"),
    **dict.fromkeys(("tar", "bsdtar", "gtar"), r"^ -?\w*h| -\w*h| --deref"),
    "ag": r" -\w*f",
    "diff": "",
    "find": r" -(?:L|follow)",
    "zip": "",
}
"""Those that follow links on their way, and with which options."""
NO_PATHS = frozenset(
    "echo printf expr seq true false : type which command hash basename dirname kill sleep exit "
    "return shift wait export set unset let eval tr yes test [ ls du df stat pwd id nproc uname hostname "
    "man help ps read".split()
)
"""Programs whose words are no paths, or that show of a file no more than its name and size."""
PATTERN_FIRST = frozenset("grep egrep fgrep rg ag ack sed gsed awk gawk mawk nawk jq yq".split())
"""Programs whose first word is a text to look for, or a program."""
READERS = frozenset(
    "cat head tail wc grep egrep fgrep zgrep rg ag ack cmp comm cut paste join file find fd md5sum sha1sum "
    "sha256sum sha512sum cksum od hexdump strings nl tac rev fold fmt expand column jq awk gawk mawk nawk "
    "sed gsed diff colordiff realpath readlink cd pushd popd zcat bzcat xzcat zless less more bat batcat "
    "base64 sort tree".split()
)
"""Programs that write no file, whatever their words."""
_WRITES = r"-i.*|--(?:in-?p|o|lo|LO).*|-\w*[oO].*|-[nEersz]*i.*"


def only_reads(name: str, arguments: list[Word]) -> bool:
    """Return whether a command writes no file that its words name."""
    if name in NO_PATHS:
        return True
    if name in ("sed", "gsed", "sort", "tree", "less"):
        return not any(re.match(_WRITES, word.shown) for word in arguments)
    return name in READERS


MOVERS = frozenset({"cd", "pushd"})
RESERVED = frozenset({"{", "(", "!", "[[", "if", "while", "until", "for", "case", "select", "function", "then", "do"})
"""Words that begin something other than a simple command."""
OPAQUE = frozenset("source . trap alias enable complete compopt bind hash fc compgen uudecode unshar".split())
"""Builtins that change what later words mean, or run a file in this shell."""
OPAQUE_WITH = {"mapfile": "C", "readarray": "C", "history": "s"}
"""Builtins that do so with one of these options."""

FIND_EXEC = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
FIND_WRITES = frozenset({"-delete", "-fprint", "-fprint0", "-fprintf", "-fls", "-files0-from"})

_HARMLESS = (
    r"PYTHON(?:UNBUFFERED|HASHSEED|DONTWRITEBYTECODE|IOENCODING|UTF8|FAULTHANDLER|OPTIMIZE|NOUSERSITE|DEVMODE|TRACEMALLOC)"
    r"|NODE_ENV|VIRTUAL_ENV_DISABLE_PROMPT|GIT_(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE)|GIT_TERMINAL_PROMPT"
)
DANGEROUS = (
    rf"(?!(?:{_HARMLESS})$)(?:"
    r"PATH|CDPATH|HOME|IFS|ENV|SHELL|LD_.*|DYLD_.*|GLIBC_TUNABLES|GCONV_PATH|LOCPATH|BASHOPTS|SHELLOPTS|PS[0-4]"
    r"|BASH_(?:ENV|ALIASES|CMDS|FUNC_.*|LOADABLES_PATH|COMPAT)|POSIXLY_CORRECT|PROMPT_COMMAND|MAILPATH|FCEDIT|INPUTRC|HISTFILE|COLLECT_.*"
    r"|EXECIGNORE|GLOBIGNORE|OLDPWD|ZDOTDIR|GIT_.*|SSH_ASKPASS.*|SUDO_ASKPASS|SVN_.*|CVS_.*|RSYNC_.*"
    r"|HG(?:MERGE|RCPATH)?|.*PAGER|.*EDITOR|VISUAL|BROWSER|LESS(?:OPEN|CLOSE|KEY.*)?|MANOPT|TEXEDIT|TERMINFO"
    r"|PYTHON.*|PYTEST_.*|IPYTHONDIR|JUPYTER_(?:CONFIG.*|PATH|DATA_DIR)|PIP_.*|UV_.*|CONDA_.*|NODE_.*"
    r"|(?:npm_config|NPM_CONFIG)_.*|PERL.*|RUBY.*|GEM_.*|BUNDLE_.*|LUA_.*|R_(?:LIBS.*|PROFILE.*|ENVIRON.*|HOME)"
    r"|JULIA_.*|OCTAVE_.*|GUILE_.*|TCLLIBPATH|CLASSPATH|_JAVA_OPTIONS|(?:JAVA|JDK_JAVA)(?:_TOOL)?_OPTIONS|JAVA_HOME"
    r"|MAVEN_.*|GRADLE_.*|GO(?:FLAGS|PATH|ROOT|TOOLCHAIN|PROXY)|CARGO.*|RUST(?:C.*|FLAGS|UP_.*)|CC|CXX|LD|AR|CPP"
    r"|GCC_.*|COMPILER_PATH|MAKE|MAKEFILES|MAKEFLAGS|GNUMAKEFLAGS|CMAKE_.*|CCACHE_.*|PKG_CONFIG.*|AWKPATH|AWKLIBPATH"
    r"|TAR_OPTIONS|ZIPOPT|RIPGREP_CONFIG_PATH|FZF_.*|BAT_.*|OPENSSL_(?:CONF|ENGINES|MODULES)|CURL_HOME|WGETRC"
    r"|SSLKEYLOGFILE|GTK_(?:MODULES|PATH)|QT_(?:PLUGIN_PATH|QPA_PLATFORM_PLUGIN_PATH)|XDG_.*|KUBECONFIG"
    r"|DOCKER_(?:HOST|CONFIG|CONTEXT)|PG(?:SERVICE.*|SYSCONFDIR|OPTIONS)|PSQL.*|GS_(?:LIB|OPTIONS)|VIM|VIMINIT|VIMRUNTIME"
    r"|MYVIMRC|EXINIT)"
)
"""Variables that decide which program runs, or have one run."""

HARMLESS_TARGETS = re.compile(r"/dev/(?:null|zero|full|tty|std(?:in|out|err)|fd/\d+)")
"""Redirections that reach no file."""
