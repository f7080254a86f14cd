"""Removes secrets, folders and the user's name from texts that are shared."""

from __future__ import annotations

import getpass
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...core.secrets import is_secret_name, secrets_of_config

SHORTEST = 8
"""Characters below which a variable's value is taken for no secret: it would be found in every other word."""
DIRECTORY, HOME, USER = "{{directory}}", "{{home}}", "{{user}}"
"""Placeholders of the session's folder, the home folder and the user's name; templates fill them in again."""
_COMMON_USERS = frozenset(
    "root user admin ubuntu debian jovyan jupyter nobody guest test runner vscode docker python data".split()
)
"""Names that many have, and that mean something else in most texts."""
_FORMS: tuple[tuple[str, str], ...] = (
    (
        "PRIVATE KEY",
        r"-----BEGIN (?P<kind>[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?)-----[\s\S]*?(?:-----END (?P=kind)-----|\Z)",
    ),
    ("sk-", r"\bsk-[A-Za-z0-9_-]{16,}"),  # OpenAI, Anthropic, OpenRouter
    ("k_", r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{10,}|\bgsk_[A-Za-z0-9]{20,}"),  # Stripe, Groq
    ("gh", r"\bgh[pousr]_[A-Za-z0-9]{20,}"),
    ("github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{20,}"),
    ("glpat-", r"\bglpat-[A-Za-z0-9_-]{16,}"),
    ("A", r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}\b"),  # Amazon
    ("AIza", r"\bAIza[A-Za-z0-9_-]{30,}"),  # Google
    ("ya29.", r"\bya29\.[A-Za-z0-9_-]{20,}"),
    ("xox", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),  # Slack
    ("xapp-", r"\bxapp-[A-Za-z0-9-]{10,}"),
    ("hf_", r"\bhf_[A-Za-z0-9]{20,}"),
    ("xai-", r"\bxai-[A-Za-z0-9]{20,}"),
    ("pplx-", r"\bpplx-[A-Za-z0-9]{20,}"),
    ("npm_", r"\bnpm_[A-Za-z0-9]{30,}"),
    ("pypi-", r"\bpypi-[A-Za-z0-9_-]{30,}"),
    ("eyJ", r"\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*)?"),  # JWT
)
"""Forms of secrets, each after a text that it contains, which is searched first because that is quick."""
_WHOLE = tuple((hint, re.compile(form)) for hint, form in _FORMS)
_NAMED = (
    r"(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?token|"
    r"access[_-]?token|refresh[_-]?token|bearer[_-]?token|credentials?|(?<![a-z])token)[\w-]{0,40}"
)
_QUOTED = re.compile(rf"(?i)({_NAMED}\\?[\"']?\s*[:=]\s*\\?)([\"'])((?:(?!\2)[^\n\\]){{4,}})(?=\\?\2)")
_BARE = re.compile(rf"(?i)({_NAMED}(?:=|:[ \t]+))([^\s\"'`,;(){{}}\[\]<>$\\]{{6,}})(?![(\[.\w])")
_SPACED = re.compile(rf"(?i)({_NAMED} += +)([A-Za-z0-9+/=_-]{{16,}})(?![(\[.\w])")
_OPTION = re.compile(r"(?i)(--(?:[\w-]{0,40}(?:password|token|secret)|api-?key)[= ])([^\s\"'$-][^\s\"']{3,})")
_BEARER = re.compile(r"(?i)(\b(?:bearer|basic|authorization:\s*token|x-api-key:)\s+)([A-Za-z0-9._~+/=-]{12,})")
_URL = re.compile(r"(\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@\"']{0,80}:)([^\s/@\"']{3,200})(?=@)")
_NO_VALUE = re.compile(
    r"(?i)\[secret-\d+\]|none|null|true|false|undefined|str|string|\*+|x+|\.+|<.*>|\$.*|%.*%|\{.*\}|os\.environ.*|"
    r"(?:your|my|the|some|new|old|example|dummy|change)[-_ ].*|\d{1,7}"
)
_HAS_DIGIT = re.compile(r"[0-9]")
_PLACEHOLDER = re.compile(r"\[secret-(\d+)\]")


class Secrets:
    """The secrets met so far: the same one always becomes the same placeholder, ``[secret-1]``.

    Args:
        secrets: texts that are secrets (keys of the config), beside those of the environment and those that look so.
        environment: whose variables with a secret's name are secrets; this process's if left out.
    """

    def __init__(self, secrets: Iterable[str] = (), environment: Mapping[str, str] | None = None) -> None:
        self._known: set[str] = set()
        self._values: re.Pattern[str] | None = None
        self._numbers: dict[str, int] = {}
        self._last = 0
        self.learn(secrets, environment)

    def learn(self, secrets: Iterable[str] = (), environment: Mapping[str, str] | None = None) -> None:
        """Hide these as well, and what the environment has by now; see the class."""
        variables = os.environ if environment is None else environment
        self._known |= set(secrets)
        self._known |= {value for name, value in variables.items() if is_secret_name(name) and not _is_path(value)}
        long = sorted(
            (value for value in self._known if len(value) >= SHORTEST), key=lambda value: (-len(value), value)
        )
        spelled = [form for value in long for form in dict.fromkeys((value, json.dumps(value)[1:-1]))]
        self._values = re.compile("|".join(map(re.escape, spelled))) if spelled else None

    def skip(self, text: str) -> None:
        """Leave the numbers free that a text has already."""
        self._last = max([self._last, *(int(number) for number in _PLACEHOLDER.findall(text))])

    def hide(self, text: str) -> str:
        """The text with every secret replaced."""
        if self._values is not None:
            text = self._values.sub(lambda match: self._placeholder(match[0]), text)
        for hint, form in _WHOLE:
            if hint in text:
                text = form.sub(lambda match: self._placeholder(match[0]), text)
        if "@" in text:
            text = _URL.sub(lambda match: match[1] + self._placeholder(match[2]), text)
        lowered = text.lower()
        if any(word in lowered for word in ("bearer", "basic", "authorization", "x-api-key")):
            text = _BEARER.sub(lambda match: match[1] + self._placeholder(match[2]), text)
        if any(word in lowered for word in ("pass", "secret", "key", "token", "credential")):
            text = _QUOTED.sub(lambda match: match[1] + match[2] + self._hide_named(match[3]), text)
            text = _OPTION.sub(lambda match: match[1] + self._hide_named(match[2]), text)
            text = _SPACED.sub(lambda match: match[1] + self._hide_named(match[2], bare=True), text)
            text = _BARE.sub(lambda match: match[1] + self._hide_named(match[2], bare=True), text)
        return text

    def _hide_named(self, value: str, *, bare: bool = False) -> str:
        # Without quotes it may be code: a name is no secret, what has digits in it may be one.
        if _NO_VALUE.fullmatch(value) or "[secret-" in value or (bare and not _HAS_DIGIT.search(value)):
            return value
        return self._placeholder(value)

    def _placeholder(self, secret: str) -> str:
        if _PLACEHOLDER.fullmatch(secret):
            return secret
        if secret not in self._numbers:
            self._last += 1
            self._numbers[secret] = self._last
        return f"[secret-{self._numbers[secret]}]"


class Scrubber:
    """Secrets, folders and the user's name of one session.

    `home` and `user` are this user's if left out.
    """

    def __init__(
        self, secrets: Secrets, directory: str | Path, *, home: str | Path | None = None, user: str | None = None
    ) -> None:
        self._secrets = secrets
        directory = str(directory)
        self.directory = directory
        self.home = str(home or home_folder())
        self.user = user_name() if user is None else user
        self._directory = _path_pattern(*dict.fromkeys((directory, os.path.realpath(directory))))
        self._home = _path_pattern(*dict.fromkeys((self.home, os.path.realpath(self.home))))
        has_user_name = len(self.user) >= 3 and self.user.lower() not in _COMMON_USERS
        self._user = re.compile(rf"(?<![\w-]){re.escape(self.user)}(?![\w-])") if has_user_name else None

    def text(self, text: str) -> str:
        """A text that is only read: a result, a prompt."""
        return self._replace_folders(self._secrets.hide(text), "~", "~")

    def template_text(self, text: str) -> str:
        """A text that a script repeats: its braces are no templates."""
        return self._replace_folders(escape(self._secrets.hide(text)), "~", "~")

    def arguments(self, text: str) -> str:
        """A call's arguments, which a script repeats: folders become those of the replay."""
        return self._replace_folders(escape(self._secrets.hide(text)), HOME, USER)

    def _replace_folders(self, text: str, home: str, user: str) -> str:
        if self._directory is not None:
            text = self._directory.sub(DIRECTORY, text)
        if self._home is not None:
            text = self._home.sub(home, text)
        return text if self._user is None else self._user.sub(user, text)


def secrets_of(config: Any) -> Iterator[str]:
    """The secrets of a configuration: texts under a secret's key, and all headers."""
    return (value for _, value in secrets_of_config(config))


def escape(text: str) -> str:
    """A text that, as a template, gives `text`."""
    return text.replace("{{", "\\{{")


def home_folder() -> str:
    """This user's home folder."""
    return os.path.expanduser("~")


def user_name() -> str:
    """This user's name; "" if it is unknown."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""


def _is_path(value: str) -> bool:
    return value.startswith(("/", "~")) and os.path.exists(os.path.expanduser(value))


def _path_pattern(*paths: str) -> re.Pattern[str] | None:
    """The paths, and what is in them, wherever they stand as a whole; None for the top of everything."""
    forms = [path.rstrip("/\\") for path in paths]
    forms += [json.dumps(form)[1:-1] for form in forms]
    spelled = sorted({re.escape(form) for form in forms if len(form) > 1}, key=len, reverse=True)
    if not spelled:
        return None
    return re.compile(rf"(?<![\w.~-])(?:{'|'.join(spelled)})(?![\w-]|\.\w)")
