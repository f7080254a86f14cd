"""Files that a rule for everything does not cover: what decides which programs run later, and keys."""

from __future__ import annotations

import re
from functools import cache

_NAMES = (
    r"(?:^|/)(?:\.git/(?:.*/)?(?:hooks|config(?:\.worktree)?|commondir|info/attributes)|\.gitconfig|\.opencode"
    r"|opencode\.jsonc?|config\.toml|\.envrc|\.profile"
    r"|\.(?:bash|z(?:sh)?|k?sh|mksh|csh|tcsh)(?:rc|env|_?profile|_?login|_?logout|_aliases)"
    r"|\.inputrc|\.ipython|\.jupyter|\.ssh|\.config/(?:git|fish|systemd|autostart|opencode)|\.vscode/(?:tasks|settings)\.json"
    r"|\.(?:vimrc|exrc|gdbinit|lldbinit|pdbrc|Rprofile|pythonrc|netrc|wgetrc|curlrc|npmrc|pypirc|tmux\.conf|gemrc|gitmodules)"
    r"|(?:site|user)customize\.py|[^/]*\.pth|crontab|cron\.[a-z]+)(?=/|$)"
)
_EDITED = (
    r"(?:^|/)(?:\.(?!\.?(?:/|$)|(?:git(?:ignore|attributes|keep|hub)|(?:docker|prettier|eslint)ignore|editorconfig|env"
    r"|env\.[\w.-]+|ipynb_checkpoints)(?:/|$))|(?:config|commondir|pyvenv\.cfg|kernel\.json|mise\.toml)$|site-packages/"
    r"|venv/|(?:bin|scripts)/(?:activate|python|pip)|hooks/(?:p(?:re|ost)-[\w-]+|[\w-]+-msg)$|(?:jupyter|ipython)_(?:\w+_)?config\.)"
)
"""More that the tools for files should not make unasked: all names with a dot that are not known to be harmless, and
what git, virtual environments and Jupyter start from. Commands name such files too often for other reasons."""
_FOLDERS = r"(?:^|/)\.(?:git|git/(?:info|modules|modules/[^/]*)|config|vscode)/?$"
_KEYS = (
    r"(?:^|/)(?:id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|[^/]*\.(?:pem|p12|pfx|key)|\.(?:netrc|npmrc|pypirc|pgpass)"
    r"|\.git-credentials|\.aws/credentials|\.docker/config\.json|\.kube/config)$"
)


@cache
def _ignoring_case(expression: str) -> re.Pattern[str]:
    return re.compile(expression, re.IGNORECASE)  # at its first use: that of the names takes 3 ms


def is_key_file(path: str) -> bool:
    """Whether a file holds a key or passwords, by its name and that of its folder. A search asks for each file."""
    folder = path.rfind("/", 0, max(0, path.rfind("/")))
    return _ignoring_case(_KEYS).search(path, max(0, folder)) is not None


def is_startup_file(path: str, *, folder: bool = False, edit: bool = False) -> bool:
    """Whether a path, or a rule's pattern, names a start-up file, in whatever case: file systems may ignore it.

    Args:
        path: as written or resolved.
        folder: a folder that holds such files counts too: what is put there may have any name.
        edit: a tool for files changes it, or the rule is one about that.
    """
    kinds = [_NAMES, *([_FOLDERS] if folder else []), *([_EDITED] if edit else [])]
    return any(_ignoring_case(kind).search(path) for kind in kinds)
