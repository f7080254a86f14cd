"""Known secrets, and their masking wherever this package shows text, keeps it, or sends it to a model.

A secret is known by its name: a variable of the environment (``OPENAI_API_KEY``), an entry of the configuration
(``provider.openai.options.apiKey``), a stored login. Its value becomes ``[secret NAME]``. Values that stand in ordinary
texts (a word, a number, a path) are left alone.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, AnyStr, TypeVar
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from .config import Config
    from .result import ToolResult

T = TypeVar("T")

SHORTEST = 8
"""Characters of the shortest value that is masked."""
COMMON = 16
"""Characters up to which a value made of words and numbers is no secret: ``your-api-key``."""
CUT = 24
"""Characters of a value from which on also its beginning is masked, where the rest of it was cut away."""
DIFFERENT = 5
"""Different characters that a value has at least: ``xxxxxxxxxx`` is none."""
DEEPEST = 250
"""Levels of a value that are looked into; what is below them, or goes in a circle, is left out."""
LINE = 16
"""Characters of a line that is masked on its own where the value has several (a private key)."""
HIDDEN = "***"
"""Replaces a secret that has no name."""
STORED = ("access", "refresh")
"""Further keys of tokens in OpenCode's ``auth.json``."""

_NAME = re.compile(
    r"(?:^|_)(?:TOKEN|SECRET|KEY|APIKEY|PASSWORD|PASSWD|PASSPHRASE|PASS|CREDENTIAL|JWT|DSN)S?(?:_|$)|_PWD(?:_|$)"
    r"|(?:TOKEN|SECRET|PASSWORD|APIKEY)$|^PASSWORD|API_?KEY|AUTHORIZATION|COOKIE",
    re.IGNORECASE,
)
_WORD_ENDS = re.compile(r"(?<=[a-z])(?=[A-Z])|[-.]")
_URL = re.compile(r"[a-zA-Z][\w+.-]*://")
_USER = re.compile(r"[a-zA-Z][\w+.-]*://(?P<user>[^\s/@:\"']*)(?::(?P<password>[^\s\"']*))?@[^\s/@]")
_CONNECTION = re.compile(r"(?:^|[;\s])(?:password|pwd)=([^;\s\"']+)(?=[;\s]|$)", re.IGNORECASE)
_PATH = re.compile(r"(?:[A-Za-z]:\\|~|\.{0,2}/)")
_WORD = re.compile(r"[A-Z]?[a-z]{0,13}|[A-Z]{1,13}|[0-9]*")
_BETWEEN = re.compile(r"[^A-Za-z0-9]+")
_REFERENCE = re.compile(r"\{(?:env|file):")
_SCHEME = re.compile(r"(?:bearer|basic|token)\s+", re.IGNORECASE)


def is_secret_name(name: str) -> bool:
    """Whether the value under this name is a secret: ``GITHUB_TOKEN``, ``apiKey``, ``x-api-key``."""
    return _NAME.search(_WORD_ENDS.sub("_", name)) is not None


def is_common(value: str) -> bool:
    """Return whether a value is likely in ordinary text, which masking would spoil: a word, a number, a path."""
    if len(value) < SHORTEST or len(set(value)) < DIFFERENT:
        return True
    path = _PATH.match(value)
    if path is None and len(value) > COMMON:
        return False
    return all(map(_WORD.fullmatch, _BETWEEN.split(value))) or (
        path is not None and os.path.exists(os.path.expanduser(value))
    )


def secrets_in(name: str, value: str) -> list[str]:
    """The secret parts of a value: all of it, the password of a URL or of a connection string, or nothing."""
    value = value.strip()
    if _URL.match(value) is not None:
        match = _USER.match(value)
        if match is None:
            return []
        parts = [match["password"]] if match["password"] else [match["user"]] if is_secret_name(name) else []
    elif _CONNECTION.search(value) is not None:
        parts = _CONNECTION.findall(value)
    else:
        parts = [value] if is_secret_name(name) else []
    return [form for part in parts for form in dict.fromkeys((part, unquote(part))) if not is_common(form)]


def secrets_of_config(config: Any, name: str = "", path: str = "") -> Iterator[tuple[str, str]]:
    """The secrets of a configuration, each under its keys: by the name of the key, and all headers and variables.

    Args:
        config: the configuration, or a part of it.
        name: the key of the part.
        path: the keys down to it, joined by dots.
    """
    if isinstance(config, Mapping):
        for key, value in config.items():
            inherited = name in ("headers", "environment") and not isinstance(value, Mapping)
            below = f"secret_{key}" if inherited else name if name in ("headers", "environment") else str(key)
            yield from secrets_of_config(value, below, f"{path}.{key}" if path else str(key))
    elif isinstance(config, (list, tuple)):
        for value in config:
            yield from secrets_of_config(value, name, path)
    elif isinstance(config, str) and is_secret_name(name) and not _REFERENCE.match(config):
        yield path, _SCHEME.sub("", config, count=1) if _SCHEME.match(config) else config


class Masker:
    """Replaces the values of a set of secrets; it never changes.

    Args:
        secrets: values with their names.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        names: dict[str, str] = {}
        for value, name in secrets.items():
            lines = [line.strip() for line in value.splitlines()] if "\n" in value else []
            lines = [line for line in lines if len(line) >= LINE and not line.startswith("-----") and " " not in line]
            for text in (value, *lines):
                for form in (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], quote(text, "")):
                    names.setdefault(form, name)
        ordered = sorted(names, key=lambda form: (-len(form), form))
        self._text = _Forms({form: f"[secret {names[form]}]" for form in ordered}, "")
        encoded = {form.encode("utf-8", "replace"): f"[secret {names[form]}]".encode() for form in ordered}
        self._bytes = _Forms(encoded, b"")

    def text(self, text: str) -> str:
        """A text with the values replaced."""
        masked: str = self._text.replace(text)
        return masked

    def chunk(self, data: AnyStr) -> tuple[AnyStr, AnyStr]:
        """A piece of a stream with the values replaced, and its end that may begin one: put that before the next."""
        forms: Any = self._text if isinstance(data, str) else self._bytes
        result: tuple[AnyStr, AnyStr] = forms.chunk(data)
        return result

    def last(self, data: AnyStr) -> AnyStr:
        """What was held back, where the stream ends. Most of a value is masked like the whole."""
        forms: Any = self._text if isinstance(data, str) else self._bytes
        result: AnyStr = forms.last(data)
        return result

    def value(self, value: T) -> T:
        """A value of any kind with all texts in it masked: the same object if there is nothing to mask."""
        result: T = self._mask_nested(value, 0)
        return result

    def _mask_nested(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is str:
            return self._text.replace(value)
        if kind in (int, float, bool, type(None)):
            return value
        if depth > DEEPEST:
            return "…"
        if kind is dict:
            pairs = list(value.items())  # another thread may change it
            masked = [(self._mask_nested(key, depth + 1), self._mask_nested(entry, depth + 1)) for key, entry in pairs]
            same = all(a is c and b is d for (a, b), (c, d) in zip(masked, pairs, strict=True))
            return value if same else dict(masked)
        if kind in (list, tuple):
            before = list(value)
            items = [self._mask_nested(item, depth + 1) for item in before]
            return value if all(a is b for a, b in zip(items, before, strict=True)) else kind(items)
        if kind is bytes:
            return self._bytes.replace(value)
        if isinstance(value, str):
            text = self._text.replace(str(value))
            return value if text == str(value) else text
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value) if field.init]
            changed = {name: new for name, old in fields if (new := self._mask_nested(old, depth + 1)) is not old}
            return dataclasses.replace(value, **changed) if changed else value
        return self._mask_other(value)

    def _mask_other(self, value: Any) -> Any:
        """A value of a kind that JSON does not know, as the store writes it, if a secret is in that."""
        from .store.rows import encode  # here: few values are of such a kind

        text = encode(value)
        masked = self._text.replace(text)
        return value if masked == text else json.loads(masked)

    def restore(self, value: T, original: Any) -> T:
        """A value with the secrets of `original` put back in the place of their names; undoes `value`."""
        if self.value(original) is original:
            return value
        text = json.dumps(original, ensure_ascii=False, default=str)
        spellings = {
            name: form
            for form, name in self._text.spellings.items()
            if json.dumps(form, ensure_ascii=False)[1:-1] in text
        }
        restored: T = _replace_texts(value, spellings)
        return restored

    def mask_result(self, result: ToolResult) -> None:
        """Mask a call's result in place, for whoever called; the object that a tool returned stays as it is."""
        for name in ("title", "output", "metadata", "attachments", "_records"):
            result.__dict__[name] = self.value(result.__dict__[name])

    def mask_error(self, error: BaseException) -> None:
        """Mask the message of an error and of those that led to it, in place: a traceback shows them."""
        seen: set[int] = set()
        todo: list[BaseException | None] = [error]
        while todo:
            current = todo.pop()
            if current is None or id(current) in seen:
                continue
            seen.add(id(current))
            todo += [current.__cause__, current.__context__]
            texts = {name: text for name, text in vars(current).items() if isinstance(text, str)}
            if isinstance(current, OSError):
                texts |= {
                    n: t for n in ("strerror", "filename", "filename2") if isinstance(t := getattr(current, n), str)
                }
            args = tuple(self.text(arg) if isinstance(arg, str) else arg for arg in current.args)
            try:
                if args != current.args:
                    current.args = args
                for name, text in texts.items():
                    if (masked := self.text(text)) != text:
                        setattr(current, name, masked)
            except Exception:  # noqa: S112 - an exception class of the user's may refuse
                continue


def _replace_texts(value: Any, texts: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for old, new in texts.items():
            value = value.replace(old, new)
        return value
    if isinstance(value, dict):
        return {key: _replace_texts(entry, texts) for key, entry in value.items()}
    return [_replace_texts(item, texts) for item in value] if isinstance(value, list) else value


class _Forms:
    """The spellings of secrets, as texts or as bytes, each with its replacement; the longest first."""

    __slots__ = ("_begins", "_empty", "spellings")

    def __init__(self, spellings: Mapping[Any, Any], empty: Any) -> None:
        self.spellings = spellings
        self._begins = {form: _beginning(form) for form in spellings}
        self._empty = empty

    def replace(self, text: Any) -> Any:
        if not any(map(text.__contains__, self._begins.values())):  # few texts have one, and this is quick
            return text
        for form, new in self.spellings.items():
            text = text.replace(form, new)
        for form, begin in self._begins.items():
            if begin != form and begin in text:
                text = self._replace_cut(text, begin, form)
        return text

    def _replace_cut(self, text: Any, needle: Any, form: Any) -> Any:
        """Replace the beginnings of a secret that was cut."""
        pieces, at = [], 0
        while (start := text.find(needle, at)) >= 0:
            length = len(needle)
            while length < len(form) and text[start + length : start + length + 1] == form[length : length + 1]:
                length += 1
            pieces += [text[at:start], self.spellings[form]]
            at = start + length
        return self._empty.join([*pieces, text[at:]])

    def chunk(self, data: Any) -> tuple[Any, Any]:
        for form, new in self.spellings.items():
            if self._begins[form] in data:
                data = data.replace(form, new)
        held = self._held_start(data)
        return self.replace(data[:held]), data[held:]

    def _held_start(self, data: Any) -> int:
        """The position of the end that may be the start of a secret."""
        held = len(data)
        for form in self.spellings:
            at = data.find(form[:1], max(0, len(data) - len(form) + 1), held)
            while at >= 0:
                if form.startswith(data[at:]):
                    held = at
                    break
                at = data.find(form[:1], at + 1, held)
        return held

    def last(self, data: Any) -> Any:
        for form in self.spellings:
            if len(data) >= max(SHORTEST, len(form) // 2) and form.startswith(data):
                return self.spellings[form]
        return self.replace(data)


def _beginning(form: Any) -> Any:
    """As much of a secret as gives it away; all of it if it is short, or begins with ordinary words."""
    head = form[: max(COMMON, len(form) // 2)]
    text = head if isinstance(head, str) else head.decode("utf-8", "replace")
    are_words = all(map(_WORD.fullmatch, _BETWEEN.split(text)))
    return form if len(form) < CUT or are_words else head


class KnownSecrets:
    """All secrets that this process knows: those of the environment, and those added with `learn`."""

    def __init__(self) -> None:
        self._learned: dict[str, str] = {}
        self._environment: Any = getattr(os.environ, "_data", os.environ)  # as it is: comparing takes 0.5 µs, no copy
        self._before: dict[Any, Any] | None = None
        self._masker: Masker | None = None

    def learn(self, name: str, value: Any) -> None:
        """Mask this value from now on, unless it may be ordinary text."""
        for secret in secrets_in(f"{name}_SECRET", value) if isinstance(value, str) else ():
            if secret not in self._learned:
                self._learned[secret] = name
                self._before = None

    def clear(self) -> None:
        """Forget what was learned, and read the environment again."""
        self._learned, self._before = {}, None

    def masker(self) -> Masker | None:
        """The masker of the present secrets; None if there are none. Cheap: it is called at every change of a call."""
        if self._environment != self._before:
            self._before = dict(self._environment)
            secrets: dict[str, str] = {}
            for name, value in os.environ.copy().items():
                for secret in secrets_in(name, value):
                    secrets.setdefault(secret, name)
            secrets = {**self._learned, **secrets}
            self._masker = Masker(secrets) if secrets else None
        return self._masker


known = KnownSecrets()
"""The secrets of this process."""


def masker_for(config: Config) -> Callable[[], Masker | None]:
    """A function that gives the present masker, or None where the configuration switches masking off.

    The configuration's own secrets are known from now on: values under a secret's name, and those of headers.
    """
    for keys, value in secrets_of_config(config.data):
        if is_secret_name(keys.rpartition(".")[2]) or (".headers." in keys and " " not in value):
            known.learn(keys, value)
    return known.masker if config.masks_secrets else lambda: None


def mask(text: str) -> str:
    """A text with all known secrets masked, whatever the configuration is: for logs and errors."""
    masker = known.masker()
    return text if masker is None else masker.text(text)


def hide(text: str, secrets: Iterable[str], shortest: int = 4) -> str:
    """A text without these secrets (they have no names), and with the known ones masked."""
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) >= shortest:
            text = text.replace(secret, HIDDEN)
    return mask(text)


def learn_stored(data_dir: Path) -> None:
    """Learn stored logins (this package's MCP tokens, OpenCode's keys), and mask logs from now on."""
    _mask_logs()
    opencode = Path(os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share"), "opencode", "auth.json")
    for path in (data_dir / "mcp-auth.json", opencode):
        try:
            data = json.loads(path.read_bytes())
        except (OSError, ValueError):
            continue
        learn_from(data, path.stem)


def learn_from(data: Any, name: str) -> None:
    """Learn the tokens and keys in stored data; `name` is their owner."""
    for keys, value in _stored(data, name):
        known.learn(keys, value)


def _stored(data: Any, path: str, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from _stored(value, path if _URL.match(str(key)) else f"{path}.{key}", str(key))
    elif isinstance(data, str) and (is_secret_name(name) or name in STORED):
        yield path, data


class _LogMask(logging.Handler):
    """Masks the package's log records on their way to the handlers of others; it writes nothing itself."""

    def emit(self, record: logging.LogRecord) -> None:
        masker = known.masker()
        if masker is not None:
            text = record.getMessage()
            if (masked := masker.text(text)) != text:
                record.msg, record.args = masked, None
            if record.exc_info:
                trace = logging.Formatter().formatException(record.exc_info)
                if (masked := masker.text(trace)) != trace:
                    record.exc_info, record.exc_text = None, masked
        if not _has_other_handler(logging.getLogger(record.name), self):
            last = logging.lastResort  # which Python leaves out because of this handler
            if last is not None and record.levelno >= last.level:
                last.handle(record)


def _has_other_handler(logger: logging.Logger | None, this: logging.Handler) -> bool:
    while logger is not None:
        if any(handler is not this for handler in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False


def _mask_logs() -> None:
    """Mask what this package logs. A second time does nothing."""
    logger = logging.getLogger(__package__.partition(".")[0])
    if not any(isinstance(handler, _LogMask) for handler in logger.handlers):
        logger.addHandler(_LogMask())
