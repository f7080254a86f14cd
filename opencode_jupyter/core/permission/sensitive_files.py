"""Files that a rule for everything does not cover: what decides which programs run later, and keys."""

from __future__ import annotations

import re

# Compiled at their first use, by `re`: that of the names takes 3 ms.
_NAMES = (
    r"(?:^|/)(?:\.git/(?:hooks|config|info/attributes|modules/.*/(?:hooks|config))|\.gitconfig|\.opencode|opencode\.jsonc?"
    r"|config\.toml|\.envrc|\.(?:bash|zsh|k?sh|mksh|csh|tcsh)(?:rc|env|_?profile|_?login|_?logout|_aliases)|\.profile"
    r"|\.inputrc|\.ipython|\.jupyter|\.ssh|\.config/(?:git|fish|systemd|autostart|opencode)|\.vscode/(?:tasks|settings)\.json"
    r"|\.(?:vimrc|exrc|gdbinit|lldbinit|pdbrc|Rprofile|pythonrc|netrc|wgetrc|curlrc|npmrc|pypirc|tmux\.conf|gemrc|gitmodules)"
    r"|(?:site|user)customize\.py|[^/]*\.pth|crontab|cron\.[a-z]+)(?=/|$)"
)
_FOLDERS = r"(?:^|/)\.(?:git|git/(?:info|modules|modules/[^/]*)|config|vscode)/?$"
_KEYS = (
    r"(?:^|/)(?:id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|[^/]*\.(?:pem|p12|pfx|key)|\.(?:netrc|npmrc|pypirc|pgpass)"
    r"|\.git-credentials|\.aws/credentials|\.docker/config\.json|\.kube/config)$"
)


def is_key_file(path: str) -> bool:
    """Whether a file holds a key or passwords, by its name."""
    return re.search(_KEYS, path) is not None


def is_startup_file(path: str, *, folder: bool = False) -> bool:
    """Whether a path, or a rule's pattern, names a start-up file.

    Args:
        path: as written or resolved.
        folder: a folder that holds such files counts too: what is put there may have any name.
    """
    return re.search(_NAMES, path) is not None or (folder and re.search(_FOLDERS, path) is not None)
