"""Parse a config file: JSON with comments and trailing commas, or TOML; fill in ``{env:NAME}`` and ``{file:path}``.

The value of a reference (docs/opencode/core.md 14.2) may be a secret. It goes into the configuration and nowhere else:
an error shows the text as it was written, and a warning the reference in place of its value.
"""

from __future__ import annotations

import json
import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ConfigError, short_repr
from .config import Keys
from .files import read
from .validation import MAX_DEPTH

# A string or comment that is not closed goes on to the end of its line or of the text: so none of it is read twice, and
# the time stays in proportion to the text.
_STRING = r"\"(?:[^\"\\\n]|\\.)*+(?:\"|(?=\n)|\Z|\\)"
_COMMENTS = re.compile(_STRING + r"|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_TOML_COMMENTS = re.compile(
    r'"""(?:[^\\]|\\.)*?(?:"""|\Z)'
    r"|'''.*?(?:'''|\Z)"
    r"|\"(?:[^\"\\\n]|\\.)*+(?:\"|(?=\n)|\Z|\\)|'[^'\n]*+(?:'|(?=\n)|\Z)"
    r"|#[^\n]*",
    re.DOTALL,
)
_COMMAS = re.compile(_STRING + r"|,(?=\s*[}\]])", re.DOTALL)
TOKENS = re.compile(_STRING + r"|[{}\[\],:]|[^\s{}\[\],:\"]+", re.DOTALL)
_TOML_ERROR = re.compile(r"^(.*) \(at line (\d+), column (\d+)\)$", re.DOTALL)
_DEEP_KEY = re.compile(r"(?<![\w-])(?:(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+')[ \t]*\.[ \t]*)" + f"{{{MAX_DEPTH}}}")
"""A dotted key that is nested too deeply; Python's reader of TOML takes time with the square of its length."""
REFERENCE = re.compile(r"\{(env|file):([^{}\n]+)\}")
_SHORTEST_HIDDEN = 4
"""Characters. A shorter value is hidden only where it is a whole entry: a "1" may be anywhere."""


@dataclass(slots=True)
class Filled:
    """A text with its references filled in.

    Attributes:
        text: the result.
        written: the text as it was written.
        values: the references by their values.
    """

    text: str
    written: str
    values: dict[str, str] = field(default_factory=dict)
    _spans: list[tuple[int, int, int, str]] = field(default_factory=list)

    def origin(self, at: int) -> tuple[int, str]:
        """The position in `written` of a position in `text`, and the reference it comes from ("" if none)."""
        before = bisect_right(self._spans, at, key=lambda span: span[0]) - 1
        if before < 0:
            return at, ""
        _, end, start, reference = self._spans[before]
        return (start, reference) if at < end else (start + len(reference) + at - end, "")

    def hide(self, value: Any) -> Any:
        """A value, with the references in place of their values."""
        if isinstance(value, dict):
            return {self.hide(key): self.hide(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [self.hide(entry) for entry in value]
        if not self.values:
            return value
        text = value if isinstance(value, str) else json.dumps(value)
        if text in self.values:
            return self.values[text]
        if isinstance(value, str):
            for secret in sorted(self.values, key=len, reverse=True):
                if len(secret) >= _SHORTEST_HIDDEN:
                    value = value.replace(secret, self.values[secret])
        return value


@dataclass(slots=True)
class Parsed:
    """The data of a text.

    Attributes:
        data: a dict, if it is a config file's; an empty one for an empty text.
        filled: the text, with its references filled in.
        toml: it is TOML.
        has_repeated: a key occurs more than once in an object.
    """

    data: Any
    filled: Filled
    toml: bool = False
    has_repeated: bool = False
    _lines: dict[Keys, list[int]] | None = None

    def line(self, keys: Keys) -> int | None:
        """The line of an entry, or of the nearest one above it; None if there is none, and for TOML.

        Of an entry that occurs twice, the last is in effect.
        """
        lines = {} if self.toml else self._all_lines()
        return next((lines[keys[:end]][-1] for end in range(len(keys), 0, -1) if keys[:end] in lines), None)

    def repeated_keys(self) -> list[tuple[Keys, int, int]]:
        """Keys that occur more than once in an object, with the line of the first and of the last."""
        if not self.has_repeated:
            return []
        return [(path, lines[0], lines[-1]) for path, lines in self._all_lines().items() if lines[1:]]

    def _all_lines(self) -> dict[Keys, list[int]]:
        if self._lines is None:
            self._lines = {}
            breaks = [match.start() for match in re.finditer("\n", self.filled.written)]
            for path, start in key_positions(self.filled.text):
                line = bisect_left(breaks, self.filled.origin(start)[0]) + 1
                self._lines.setdefault(path, []).append(line)
        return self._lines

    def show(self, value: Any) -> str:
        """A value as a warning shows it: without secrets."""
        return short_repr(self.filled.hide(value))


def parse(
    text: str, *, path: str, folder: Path, env: Mapping[str, str], home: Path, within: Path | None = None
) -> Parsed:
    """Parse a config text.

    Args:
        text: JSON with comments and trailing commas, or TOML if `path` ends in ``.toml``.
        path: named in errors.
        folder: what relative ``{file:...}`` paths are relative to.
        env: environment variables.
        home: the home folder.
        within: as for `fill_references`.

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
    bare = without_comments(text, toml=toml)
    filled = fill_references(bare, path=path, folder=folder, env=env, home=home, written=text, within=within)
    if not filled.text.strip():
        return Parsed({}, filled, toml)
    return _toml(filled, path) if toml else _json(filled, path)


def _json(filled: Filled, path: str) -> Parsed:
    has_repeated = False

    def pairs(entries: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal has_repeated
        out = dict(entries)
        has_repeated = has_repeated or len(out) < len(entries)
        return out

    try:
        try:
            data = json.loads(filled.text, object_pairs_hook=pairs)
        except ValueError:
            data = json.loads(_without_trailing_commas(filled.text), object_pairs_hook=pairs)
    except RecursionError:
        raise ConfigError("is nested too deeply", path=path) from None
    except json.JSONDecodeError as error:
        raise _syntax(filled, path, error.msg, error.lineno, error.colno) from None
    return Parsed(data, filled, has_repeated=has_repeated)


def _toml(filled: Filled, path: str) -> Parsed:
    import tomllib  # here: most projects have no TOML

    if _DEEP_KEY.search(filled.text):
        raise ConfigError("is nested too deeply", path=path)
    try:
        return Parsed(tomllib.loads(filled.text), filled, toml=True)
    except RecursionError:
        raise ConfigError("is nested too deeply", path=path) from None
    except tomllib.TOMLDecodeError as error:
        match = _TOML_ERROR.match(str(error))
        if match is None:  # at the end of the file
            line = filled.written.count("\n") + 1
            raise ConfigError(f"is not valid TOML: {error}", path=path, line=line) from None
        raise _syntax(filled, path, match[1], int(match[2]), int(match[3])) from None


def _syntax(filled: Filled, path: str, what: str, line: int, column: int) -> ConfigError:
    """The error for a place of the filled text, shown as it was written."""
    lines = filled.text.split("\n")
    at = sum(len(before) + 1 for before in lines[: line - 1]) + column - 1
    at, reference = filled.origin(at)
    if reference:
        what = f"the value of {reference} does not fit here"
    written = filled.written
    line, line_start = written.count("\n", 0, at) + 1, written.rfind("\n", 0, at) + 1
    column = at - line_start + 1
    source = written[line_start:].split("\n", 1)[0].expandtabs(1)
    start = max(0, column - 60)  # a file of one long line must not fill the screen
    caret = " " * (column - 1 - start) + "^"
    return ConfigError(
        f"{what.strip()} (column {column})\n  {source[start : start + 120]}\n  {caret}", path=path, line=line
    )


# ---------------------------------------------------------------------- text


def key_positions(text: str) -> Iterator[tuple[Keys, int]]:
    """Every entry of every object, in order: the keys down to it, and where its own key begins.

    An element of a list counts as an entry whose key is its number. The text may be no JSON at all: then the places
    mean little.
    """
    # Of each bracket that is open: whether it is a list, and the key (or number) of the entry that it is at.
    open_: list[tuple[bool, str]] = []
    last: tuple[str, int] = ("", 0)
    for match in TOKENS.finditer(text):
        symbol = match[0]
        if symbol in "{[":
            open_.append((symbol == "[", "0"))
        elif symbol in "}]":
            if open_:
                open_.pop()
        elif symbol == "," and open_:
            is_list, key = open_[-1]
            open_[-1] = (is_list, str(int(key) + 1) if is_list else "")
        elif symbol == ":" and open_ and not open_[-1][0]:
            open_[-1] = (False, last[0])
            yield tuple(key for _, key in open_), last[1]
        elif symbol not in ",:":
            last = (_key(symbol), match.start())


def _key(symbol: str) -> str:
    try:
        return str(json.loads(symbol, strict=False)) if symbol[0] == '"' else symbol
    except ValueError:
        return symbol[1:-1]


def without_comments(text: str, *, toml: bool = False) -> str:
    """The text with blanks in place of its comments, so that every other character keeps its position."""
    pattern, starts = (_TOML_COMMENTS, "#") if toml else (_COMMENTS, "/")
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]) if match[0][0] == starts else match[0], text)


def _without_trailing_commas(text: str) -> str:
    """A text without comments, with blanks in place of commas before a closing bracket."""
    return _COMMAS.sub(lambda match: " " if match[0] == "," else match[0], text)


def load_jsonc(text: str) -> Any:
    """The data of a JSON text with comments and trailing commas.

    Raises:
        ValueError: it does not parse.
    """
    try:
        return json.loads(text)
    except ValueError:
        return json.loads(_without_trailing_commas(without_comments(text)))


# ---------------------------------------------------------------------- references


def fill_references(
    text: str,
    *,
    path: str,
    folder: Path,
    env: Mapping[str, str],
    home: Path,
    written: str | None = None,
    within: Path | None = None,
) -> Filled:
    """Fill in the references. A variable's value goes in as it is, a file's content escaped as in a JSON text.

    Their values are not searched for references again.

    Args:
        text: without its comments, in which nothing is filled in.
        path: named in errors.
        folder: what relative paths start from.
        env: environment variables; one that is not set is empty.
        home: what ``~/`` stands for.
        written: the text with its comments, of the same length; `text` if left out.
        within: leave the references to variables, and to files outside of this folder.

    Raises:
        ConfigError: a file is not there or can't be read.
    """
    out = Filled(text, text if written is None else written)
    if "{env:" not in text and "{file:" not in text:
        return out
    pieces: list[str] = []
    length = end = 0
    for match in REFERENCE.finditer(text):
        if within is not None and (match[1] == "env" or not _is_in_project(match[2], within, folder, home)):
            continue
        if match[1] == "env":
            bare = escaped = env.get(match[2], "")
        else:
            bare = _content(match[2], path, text.count("\n", 0, match.start()) + 1, folder, home)
            escaped = json.dumps(bare, ensure_ascii=False)[1:-1]
        pieces += [text[end : match.start()], escaped]
        length += match.start() - end
        out._spans.append((length, length + len(escaped), match.start(), match[0]))
        length += len(escaped)
        end = match.end()
        if bare:
            out.values[bare] = match[0]
    out.text = "".join([*pieces, text[end:]])
    return out


def _is_in_project(name: str, within: Path, folder: Path, home: Path) -> bool:
    """Return whether a file is one of a project. A project around the home folder would make every file one."""
    target = Path(os.path.realpath(home / name[2:] if name.startswith("~/") else folder / name))
    return target.is_relative_to(within) and not home.is_relative_to(within)


def _content(name: str, path: str, line: int, folder: Path, home: Path) -> str:
    target = home / name[2:] if name.startswith("~/") else folder / name
    try:
        return read(target).strip()
    except (FileNotFoundError, NotADirectoryError):
        reason = f"{target} does not exist"
    except UnicodeDecodeError:
        reason = f"{target} can't be read: it is not UTF-8 text"
    except (OSError, ValueError) as error:
        reason = f"{target} can't be read: {getattr(error, 'strerror', None) or error}"
    raise ConfigError(f'bad file reference: "{{file:{name}}}": {reason}', path=path, line=line)
