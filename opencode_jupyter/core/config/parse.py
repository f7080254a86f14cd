"""One config text to data, with where its entries stand and what its references brought."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from . import jsonc
from .plain import DEEPEST
from .reading import read_text
from .references import Filled, fill
from .warning import Keys, shown

_JSON5_ERROR = re.compile(r"^.*?:(\d+) (.*?) at column (\d+)$", re.DOTALL)
_TOML_ERROR = re.compile(r"^(.*) \(at line (\d+), column (\d+)\)$", re.DOTALL)
_DEEP_KEY = re.compile(r"(?<![\w-])(?:(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+')[ \t]*\.[ \t]*)" + f"{{{DEEPEST}}}")
"""A dotted key that is nested too deeply; Python's reader of TOML takes time with the square of its length."""
LARGEST_JSON5 = 20_000
"""Characters. The reader of JSON5 (names without quotes and the like) takes 30 µs for each; JSON has no such limit."""


@dataclass(slots=True)
class Parsed:
    """The data of a text.

    Attributes:
        data: a dict, if it is a config file's; an empty one for an empty text.
        filled: the text, with its references filled in.
        toml: it is TOML.
        repeated: keys that stand more than once in an object, with the line of the first and of the last.
    """

    data: Any
    filled: Filled
    toml: bool = False
    repeated: list[tuple[Keys, int, int]] = field(default_factory=list)
    _lines: dict[Keys, int] | None = None
    _breaks: list[int] | None = None

    def line(self, keys: Keys) -> int | None:
        """The line on which an entry stands, or the nearest one above it that does; None if none does."""
        if self.toml:
            return _locate_toml(self.filled.written, keys)
        if self._lines is None:
            # Of an entry that stands twice, the last counts.
            self._lines = {path: self._line_at(at) for path, at in jsonc.places(self.filled.text)}
        for end in range(len(keys), 0, -1):
            if keys[:end] in self._lines:
                return self._lines[keys[:end]]
        return None

    def show(self, value: Any) -> str:
        """A value as a warning shows it: without secrets."""
        return shown(self.filled.hidden(value))

    def find_repeated(self) -> None:
        """Fill in `repeated`."""
        first: dict[Keys, int] = {}
        again: dict[Keys, int] = {}
        for path, at in jsonc.places(self.filled.text):
            if path in first:
                again[path] = at
            else:
                first[path] = at
        self.repeated = [(path, self._line_at(first[path]), self._line_at(at)) for path, at in again.items()]

    def _line_at(self, at: int) -> int:
        if self._breaks is None:
            self._breaks = [found.start() for found in re.finditer("\n", self.filled.written)]
        return bisect_left(self._breaks, self.filled.origin(at)[0]) + 1


def parse(text: str, *, path: str, folder: Path, env: Mapping[str, str], home: Path) -> dict[str, Any]:
    """The dict a config text stands for; see `parsed`.

    Raises:
        ConfigError: the text does not parse, is no object, or a file it names is not there.
    """
    data = parsed(text, path=path, folder=folder, env=env, home=home).data
    if not isinstance(data, dict):
        raise ConfigError(f"must be an object ({{...}}), not {type(data).__name__}", path=path, line=1)
    return data


def parsed(
    text: str, *, path: str, folder: Path, env: Mapping[str, str], home: Path, within: Path | None = None
) -> Parsed:
    """The data that a config text stands for.

    Args:
        text: JSON with comments and trailing commas, or TOML if `path` ends in ``.toml``.
        path: named in errors.
        folder: what relative ``{file:...}`` paths are relative to.
        env: environment variables.
        home: the home folder.
        within: as for `fill`.

    Raises:
        ConfigError: the text does not parse, or a file it names is not there.
    """
    toml = path.endswith(".toml")
    nul = text.find("\0")
    if nul >= 0:
        line = text.count("\n", 0, nul) + 1
        raise ConfigError(
            "holds NUL bytes, so it is not a text file; restore it from a backup or write it again",
            path=path,
            line=line,
        )
    bare = jsonc.without_comments(text, toml=toml)
    filled = fill(bare, path=path, folder=folder, env=env, home=home, written=text, within=within)
    if not filled.text.strip():
        return Parsed({}, filled, toml)
    repeats: list[bool] = []
    data = _toml(filled, path) if toml else _json(filled, path, repeats)
    out = Parsed(data, filled, toml)
    if repeats:
        out.find_repeated()
    return out


def _json(filled: Filled, path: str, repeats: list[bool]) -> Any:
    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(found)
        if len(out) < len(found):
            repeats.append(True)
        return out

    def read(load: Callable[..., Any], text: str) -> Any:
        repeats.clear()
        try:
            return load(text, object_pairs_hook=pairs)
        except RecursionError:
            raise ConfigError("is nested too deeply", path=path) from None

    try:
        return read(json.loads, filled.text)
    except ValueError:
        pass
    text = jsonc.without_trailing_commas(filled.text)
    try:
        return read(json.loads, text)
    except json.JSONDecodeError as error:
        if len(text) > LARGEST_JSON5:
            raise _syntax(filled, path, error.msg, error.lineno, error.colno) from None
    import json5  # slow to import and to run: only for what JSON's reader does not take, and for its better errors

    try:
        return read(json5.loads, text)
    except ValueError as error:
        found = _JSON5_ERROR.match(str(error))
        if found is None:
            raise ConfigError("is not valid JSON", path=path) from None
        raise _syntax(filled, path, found[2], int(found[1]), int(found[3])) from None


def _toml(filled: Filled, path: str) -> Any:
    import tomllib  # here: most projects have no TOML

    if _DEEP_KEY.search(filled.text):
        raise ConfigError("is nested too deeply", path=path)
    try:
        return tomllib.loads(filled.text)
    except RecursionError:
        raise ConfigError("is nested too deeply", path=path) from None
    except tomllib.TOMLDecodeError as error:
        found = _TOML_ERROR.match(str(error))
        if found is None:  # at the end of the file
            line = filled.written.count("\n") + 1
            raise ConfigError(f"is not valid TOML: {error}", path=path, line=line) from None
        raise _syntax(filled, path, found[1], int(found[2]), int(found[3])) from None


def _syntax(filled: Filled, path: str, what: str, line: int, column: int) -> ConfigError:
    """The error for a place of the filled text, shown as it was written."""
    lines = filled.text.split("\n")
    at = sum(len(before) + 1 for before in lines[: line - 1]) + column - 1
    at, reference = filled.origin(at)
    if reference:
        what = f"the value of {reference} does not fit here"
    written = filled.written
    line, begun = written.count("\n", 0, at) + 1, written.rfind("\n", 0, at) + 1
    column = at - begun + 1
    source = written[begun:].split("\n", 1)[0].expandtabs(1)
    start = max(0, column - 60)  # a file of one long line must not fill the screen
    caret = " " * (column - 1 - start) + "^"
    return ConfigError(
        f"{what.strip()} (column {column})\n  {source[start : start + 120]}\n  {caret}", path=path, line=line
    )


def _locate_toml(text: str, keys: Keys) -> int | None:
    """The line on which an entry probably stands: each key is looked for after the one before it."""
    position, line = 0, None
    for key in keys:
        quoted = rf"[\"']?{re.escape(key)}[\"']?"
        table = rf"\[[^\]\n]*{quoted}\]"
        found = re.search(rf"(?m)^[ \t]*(?:{table}|{quoted}[ \t]*[=.])|[{{,][ \t]*{quoted}[ \t]*=", text[position:])
        if found is None:
            return line
        start = position + found.start() + (len(found[0]) - len(found[0].lstrip()))
        line = text.count("\n", 0, start) + 1
        position += found.end() if not found[0].endswith("=") else found.end() - 1
    return line


__all__ = ["Parsed", "parse", "parsed", "read_text"]
