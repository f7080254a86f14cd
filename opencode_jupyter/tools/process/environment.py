"""The environment a command gets: the kernel's, without its secrets and without what would make a program wait."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ...core.wildcard import match

SECRET = re.compile(
    r"(?:^|_)(?:TOKEN|SECRET|SECRETS|KEY|APIKEY|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)S?(?:_|$)"
    r"|(?:TOKEN|SECRET|PASSWORD|APIKEY)$",
    re.IGNORECASE,
)
"""Names whose value is taken for a secret."""

_NOT_SECRET = frozenset({"SSH_AUTH_SOCK"})
_DROPPED = frozenset({"BASH_ENV", "ENV", "OLDPWD", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "PYTHONSTARTUP"})
"""Would run code, or make programs write colours into a pipe (ipykernel sets some of these)."""
_KERNEL = ("JPY_", "JUPYTERHUB_API_")
_SET = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
}


def clean_environment(
    environment: Mapping[str, str], *, keep: Iterable[str] | bool = (), extra: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The environment for a command.

    Args:
        environment: the kernel's.
        keep: names (wildcards) that are passed on although they look like secrets; True keeps all of them.
        extra: set in the end, whatever stood there.
    """
    patterns = () if isinstance(keep, bool) else tuple(keep)
    out = {}
    for name, value in environment.items():
        if name in _DROPPED:
            continue
        hidden = name.startswith(_KERNEL) or (name not in _NOT_SECRET and SECRET.search(name) is not None)
        if hidden and keep is not True and not any(match(name, pattern) for pattern in patterns):
            continue
        out[name] = value
    out.update(_SET)
    out.update(extra or {})
    return out
