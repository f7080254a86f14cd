"""The environment a program gets: what it needs of the kernel's, without what would make it wait for a person.

A list of what is passed on, not of what is not: names of secrets can't be listed (``DATABASE_URL``, ``SENTRY_DSN``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from ...core.secrets import is_secret_name
from ...core.wildcard import match

PASSED = (
    *("PATH", "HOME", "LANG", "LANGUAGE", "LC_*", "TZ", "TZDIR", "USER", "LOGNAME", "SHELL", "HOSTNAME"),
    *("TMPDIR", "TMP", "TEMP", "XDG_*", "VIRTUAL_ENV", "CONDA_*", "PYTHONPATH", "LD_LIBRARY_PATH", "OPENCODE_*"),
    *("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO"),
    *("SYSTEMROOT", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA"),
)
"""Names (wildcards) of the variables that every program gets, but for those whose name looks like a secret's."""
_CONTENTS = "OPENCODE_*_CONTENT"
"""Whole files, which may hold keys."""
_DROPPED = frozenset({"BASH_ENV", "ENV", "OLDPWD", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "PYTHONSTARTUP"})
"""Would run code, or make programs write colours into a pipe (ipykernel sets some of these)."""
_SET = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
}


def clean_environment(
    environment: Mapping[str, str], *, keep: Any = (), extra: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The environment for a program that a model or a configuration starts; with `keep` True, that of a person's own.

    Args:
        environment: the kernel's.
        keep: the config's ``experimental.shell_env_keep``: a name with wildcards, or several, that are passed on
            besides the usual ones; True keeps all.
        extra: set in the end, whatever stood there.
    """
    names = [keep] if isinstance(keep, str) else keep if isinstance(keep, Iterable) else ()
    more = [name for name in names if isinstance(name, str)]
    out = {}
    for name, value in environment.items():
        if name in _DROPPED:
            continue
        if keep is True or _usual(name) or any(match(name, pattern) for pattern in more):
            out[name] = value
    out.update(_SET)
    out.update(extra or {})
    return out


@lru_cache(maxsize=1000)
def _usual(name: str) -> bool:
    if is_secret_name(name) or match(name, _CONTENTS):
        return False
    return any(match(name, pattern) for pattern in PASSED)
