"""Markdown files with fields before the text: agents and modes (and skills) of a config folder.

The fields are the part of YAML that such files use: nested objects by indentation, lists, quoted and plain values,
``|`` and ``>`` blocks, ``[a, b]`` and ``{a: b}`` on one line. A plain value may hold
``: ``, as OpenCode allows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from .reading import read_text

_KEY = re.compile(r"""^(?:"((?:[^"\\]|\\.)*)"\s*|'((?:[^']|'')*)'\s*|([^\s#"'\[{][^\n]*?)):(?:\s+(.*))?$""")
AGENT_FOLDERS = ("agent", "agents", "mode", "modes")
_DEEPEST = 20  # objects on one line within each other; nobody writes more
_QUOTED = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')(?:\s+#.*)?""", re.DOTALL)
_NUMBER = re.compile(r"^[+-]?(?:\d+|\d*\.\d+|\d+\.\d*)(?:[eE][+-]?\d+)?$")


def markdown_agents(folder: Path) -> Iterator[tuple[Path, str, str, dict[str, Any]]]:
    """The agents and modes of a config folder: file, section (``agent`` or ``mode``), name, fields with ``prompt``.

    Raises:
        ConfigError: a file can't be read, or its fields are not understood.
    """
    for section, pattern in (("agent", "**/*.md"), ("mode", "*.md")):
        for parent in (folder / section, folder / f"{section}s"):
            for path in sorted(parent.glob(pattern)):
                text = read_text(path) if path.is_file() else None
                if text is not None:
                    fields, body = split(text, path=str(path))
                    name = path.relative_to(parent).with_suffix("").as_posix()
                    yield path, section, name, {**fields, "prompt": body.strip()}


def split(text: str, *, path: str = "") -> tuple[dict[str, Any], str]:
    """The fields between the leading ``---`` lines, and the text after them.

    Raises:
        ConfigError: a line of the fields is not understood, or the second ``---`` is missing.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != "---":
        return {}, text
    for end, line in enumerate(lines[1:], 1):
        if line.rstrip() == "---":
            return _Reader(lines[1:end], path).read(), "\n".join(lines[end + 1 :])
    raise ConfigError('the front matter starts with "---" but has no closing "---"', path=path, line=1)


class _Reader:
    """Reads the fields line by line."""

    def __init__(self, lines: list[str], path: str) -> None:
        self.lines, self.path, self.at = lines, path, 0

    def read(self) -> dict[str, Any]:
        try:
            fields = self._mapping(0) if self._next() is not None else {}
        except RecursionError as e:
            raise self._error("is nested too deeply") from e
        if self._next() is not None:
            raise self._error("is indented in a way that fits nothing above it")
        return fields

    def _next(self) -> int | None:
        """Skip to the next line that says something; its indentation."""
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.strip() and not line.lstrip().startswith("#"):
                return len(line) - len(line.lstrip())
            self.at += 1
        return None

    def _mapping(self, indent: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        while self._next() == indent:
            found = _KEY.match(self.lines[self.at].strip())
            if found is None:
                raise self._error("is not of the form  key: value")
            key = _unquoted(found)
            self.at += 1
            out[key] = self._value((found[4] or "").strip(), indent)
        return out

    def _value(self, text: str, indent: int) -> Any:
        if re.fullmatch(r"[|>][+-]?", text):
            return self._block(indent, folded=text[0] == ">", keep_end="-" not in text)
        if text and not text.startswith("#"):
            return _inline(text + self._continued(text, indent))
        below = self._next()
        if below is None or below < indent:
            return None
        if self.lines[self.at].lstrip().startswith("- "):
            return self._list(below)
        return self._mapping(below) if below > indent else None

    def _continued(self, text: str, indent: int) -> str:
        """The rest of a value that goes on in the lines below, which are indented more than its key."""
        if text[0] in "[{" or _QUOTED.fullmatch(text):
            return ""
        rest, gap = "", 0
        for line in self.lines[self.at :]:
            if line.strip() and len(line) - len(line.lstrip()) <= indent:
                break
            if line.strip():
                rest += ("\n" * gap or " ") + line.strip()
                gap = 0
            else:
                gap += 1
            self.at += 1
        return rest

    def _list(self, indent: int) -> list[Any]:
        out: list[Any] = []
        while self._next() == indent and self.lines[self.at].lstrip().startswith("- "):
            out.append(_inline(self.lines[self.at].strip()[2:].strip()))
            self.at += 1
        return out

    def _block(self, indent: int, *, folded: bool, keep_end: bool) -> str:
        taken: list[str] = []
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.strip() and len(line) - len(line.lstrip()) <= indent:
                break
            taken.append(line)
            self.at += 1
        depth = min((len(x) - len(x.lstrip()) for x in taken if x.strip()), default=0)
        text = "\n".join(x[depth:].rstrip() for x in taken).rstrip("\n")
        if folded:
            text = re.sub(r"\n+", lambda found: "\n" * (len(found[0]) - 1) or " ", text)
        return text + "\n" if keep_end and text else text

    def _error(self, what: str) -> ConfigError:
        return ConfigError(f"this line {what}: {self.lines[self.at].strip()[:120]}", path=self.path, line=self.at + 2)


def _unquoted(found: re.Match[str]) -> str:
    if found[1] is not None:
        return str(_quoted(f'"{found[1]}"'))
    return found[2].replace("''", "'") if found[2] is not None else found[3].rstrip()


def _quoted(text: str) -> Any:
    try:
        return json.loads(text, strict=False)
    except ValueError:  # an escape that JSON does not know
        return text[1:-1]


def _inline(text: str, depth: int = 0) -> Any:
    found = _QUOTED.fullmatch(text)
    if found:
        return _quoted(found[1]) if text[0] == '"' else found[1][1:-1].replace("''", "'")
    text = re.sub(r"\s#.*$", "", text).rstrip()
    if depth > _DEEPEST:
        return text
    if text[:1] == "[" and text[-1:] == "]":
        return [_inline(part, depth + 1) for part in _parts(text[1:-1])]
    if text[:1] == "{" and text[-1:] == "}":
        out: dict[str, Any] = {}
        for part in _parts(text[1:-1]):
            pair = _KEY.match(part)
            if pair is None:
                return text
            out[_unquoted(pair)] = _inline((pair[4] or "").strip(), depth + 1) if pair[4] else None
        return out
    if text in ("true", "false"):
        return text == "true"
    if text in ("null", "~", ""):
        return None
    if _NUMBER.match(text):
        return int(text) if text.lstrip("+-").isdigit() else float(text)
    return text


def _parts(text: str) -> list[str]:
    """Split at the commas outside quotes and brackets."""
    parts, depth, quote, start = [], 0, "", 0
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c in "[{":
            depth += 1
        elif c in "]}":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]
