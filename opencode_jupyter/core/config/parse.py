"""One config file: text to dict, with its ``{env:NAME}`` and ``{file:path}`` filled in."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import ConfigError

_ENV = re.compile(r"\{env:([^}]+)\}")
_FILE = re.compile(r"\{file:([^}]+)\}")
_JSON5_ERROR = re.compile(r"^.*?:(\d+) (.*?) at column (\d+)$", re.DOTALL)
_TOML_ERROR = re.compile(r"^(.*) \(at line (\d+), column (\d+)\)$", re.DOTALL)


def read_text(path: Path) -> str | None:
    """The file's text, None if there is no such file.

    Raises:
        ConfigError: it is there and can't be read.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError as e:
        raise ConfigError(f"is not UTF-8 text ({e.reason} at byte {e.start}); save it as UTF-8", path=str(path)) from e
    except OSError as e:
        raise ConfigError(f"can't be read: {e.strerror or e}", path=str(path)) from e


def parse(text: str, *, path: str, folder: Path, env: Mapping[str, str], home: Path) -> dict[str, Any]:
    """The dict a config text stands for; ``{}`` for an empty one.

    Args:
        text: JSON with comments and trailing commas, or TOML if `path` ends in ``.toml``.
        path: named in errors.
        folder: what relative ``{file:...}`` paths are relative to.
        env: environment variables.
        home: the home folder.

    Raises:
        ConfigError: the text does not parse, is no object, or a file it names is not there.
    """
    toml = path.endswith(".toml")
    text = _substitute(text, path=path, folder=folder, env=env, home=home, comment="#" if toml else "//")
    if not text.strip():
        return {}
    data = _toml(text, path) if toml else _json(text, path)
    if not isinstance(data, dict):
        raise ConfigError(f"must be an object ({{...}}), not {type(data).__name__}", path=path, line=1)
    return data


def _substitute(text: str, *, path: str, folder: Path, env: Mapping[str, str], home: Path, comment: str) -> str:
    text = _ENV.sub(lambda found: env.get(found[1], ""), text)
    if "{file:" not in text:
        return text
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith(comment):
            continue
        lines[number - 1] = _FILE.sub(lambda found: _content(found[1], path, number, folder, home), line)  # noqa: B023
    return "\n".join(lines)


def _content(name: str, path: str, line: int, folder: Path, home: Path) -> str:
    target = home / name[2:] if name.startswith("~/") else folder / name
    try:
        content = target.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as e:
        reason = f"{target} does not exist" if isinstance(e, FileNotFoundError) else f"{target} can't be read: {e}"
        raise ConfigError(f'bad file reference: "{{file:{name}}}": {reason}', path=path, line=line) from e
    return json.dumps(content, ensure_ascii=False)[1:-1]


def _json(text: str, path: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError as e:
        raise ConfigError("is nested too deeply", path=path) from e
    except ValueError:
        pass
    import json5  # slow to import and to run: only for files that need it

    try:
        return json5.loads(text)
    except RecursionError as e:
        raise ConfigError("is nested too deeply", path=path) from e
    except ValueError as e:
        found = _JSON5_ERROR.match(str(e))
        if found is None:
            raise ConfigError(f"is not valid JSON: {e}", path=path) from e
        raise _syntax(text, path, found[2], int(found[1]), int(found[3])) from e


def _toml(text: str, path: str) -> Any:
    try:
        return tomllib.loads(text)
    except RecursionError as e:
        raise ConfigError("is nested too deeply", path=path) from e
    except tomllib.TOMLDecodeError as e:
        found = _TOML_ERROR.match(str(e))
        if found is None:  # at the end of the file
            raise ConfigError(f"is not valid TOML: {e}", path=path, line=text.count("\n") + 1) from e
        raise _syntax(text, path, found[1], int(found[2]), int(found[3])) from e


def _syntax(text: str, path: str, what: str, line: int, column: int) -> ConfigError:
    lines = text.split("\n")
    source = lines[line - 1] if 0 < line <= len(lines) else ""
    start = max(0, column - 60)  # a file of one long line must not fill the screen
    shown, caret = source[start : start + 120], " " * (column - 1 - start) + "^"
    return ConfigError(f"{what.strip()} (column {column})\n  {shown}\n  {caret}", path=path, line=line)


def locate(text: str, keys: tuple[str, ...], *, toml: bool) -> int | None:
    """The line on which an entry probably stands: each key is looked for after the one before it."""
    position, line = 0, None
    for key in keys:
        name = re.escape(key)
        if toml:
            quoted = rf"[\"']?{name}[\"']?"
            table = rf"\[[^\]\n]*{quoted}\]"
            pattern = rf"(?m)^[ \t]*(?:{table}|{quoted}[ \t]*[=.])|[{{,][ \t]*{quoted}[ \t]*="
        else:
            pattern = rf"(?:\"{name}\"|'{name}'|(?<![\w$]){name})\s*:"
        found = re.search(pattern, text[position:])
        if found is None:
            return line
        start = position + found.start() + (len(found[0]) - len(found[0].lstrip()))
        line = text.count("\n", 0, start) + 1
        position += found.end() if not found[0].endswith("=") else found.end() - 1
    return line


def display(path: Path, project: Path, home: Path) -> str:
    """A file's name for a person: relative to the project, else with ``~``, else whole."""
    for base, prefix in ((project, ""), (home, "~" + os.sep)):
        if path.is_relative_to(base) and base != Path(base.anchor):
            return prefix + str(path.relative_to(base))
    return str(path)
