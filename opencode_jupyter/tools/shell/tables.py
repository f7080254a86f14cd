"""What is known of commands: which take paths, which run other commands, which variables change what runs."""

from __future__ import annotations

import re

PATH_COMMANDS = frozenset({"cd", "rm", "cp", "mv", "mkdir", "touch", "chmod", "chown", "cat"})
"""Commands whose arguments OpenCode looks at as paths."""
WRITERS = frozenset("tee ln install truncate rmdir unlink shred mkfifo mknod rsync chgrp pushd sponge".split())
"""More that write where their arguments say."""

MOVERS = frozenset({"cd", "pushd"})
RESERVED = frozenset({"{", "(", "!", "[[", "if", "while", "until", "for", "case", "select", "function", "then", "do"})
"""Words that begin something other than a simple command."""
OPAQUE = frozenset("source . trap alias enable complete compopt bind hash fc compgen".split())
"""Builtins that change what later words mean, or run a file in this shell."""
OPAQUE_WITH = {"mapfile": "C", "readarray": "C", "history": "s"}
"""Builtins that do so with one of these options."""

FIND_EXEC = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
FIND_WRITES = frozenset({"-delete", "-fprint", "-fprint0", "-fprintf", "-fls"})

_HARMLESS = (
    r"PYTHON(?:UNBUFFERED|HASHSEED|DONTWRITEBYTECODE|IOENCODING|UTF8|FAULTHANDLER|OPTIMIZE|NOUSERSITE|DEVMODE|TRACEMALLOC)"
    r"|NODE_ENV|VIRTUAL_ENV_DISABLE_PROMPT|GIT_(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE)|GIT_TERMINAL_PROMPT"
)
DANGEROUS = re.compile(
    rf"(?!(?:{_HARMLESS})$)(?:"
    r"PATH|CDPATH|HOME|IFS|ENV|SHELL|LD_.*|DYLD_.*|GLIBC_TUNABLES|GCONV_PATH|LOCPATH|BASHOPTS|SHELLOPTS|PS[0-4]"
    r"|BASH_(?:ENV|ALIASES|CMDS|FUNC_.*|LOADABLES_PATH|COMPAT)|POSIXLY_CORRECT|PROMPT_COMMAND|MAILPATH|FCEDIT|INPUTRC"
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
