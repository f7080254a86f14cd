"""Markdown files with YAML fields before the text: agents and modes (and skills) of a config folder.

Fields that are not YAML are read a second time as OpenCode does, with ``key: value: more`` as a text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from ..errors import ConfigError
from .files import read_text

_PAIR = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:[ \t]+([^\s\"'|>\[{&*!#].*:.*)")
"""A line with a colon in its unquoted value."""


class _FrontMatterLoader(yaml.SafeLoader):
    """Reads what JSON can hold, with the keys as texts: no dates, no ``yes`` and ``no``, no aliases."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):  # a few lines of them make gigabytes
            raise yaml.MarkedYAMLError(problem="aliases are not supported", problem_mark=self.get_mark())
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key must be a text", problem_mark=key.start_mark)
        return {key.value: self.construct_object(value, deep=True) for key, value in node.value}


_FrontMatterLoader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", "true|false", "tf"),
    ("null", "null|~|", ["n", "~", ""]),
    ("int", "[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    _FrontMatterLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"), [*_first])


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
        ConfigError: the fields are not YAML, or the second ``---`` is missing.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != "---":
        return {}, text
    for end, line in enumerate(lines[1:], 1):
        if line.rstrip() == "---":
            return _fields("\n".join(lines[1:end]), path), "\n".join(lines[end + 1 :])
    raise ConfigError('the front matter starts with "---" but has no closing "---"', path=path, line=1)


def _fields(text: str, path: str) -> dict[str, Any]:
    try:
        try:
            fields = yaml.load(text, _FrontMatterLoader)  # noqa: S506 - a SafeLoader
        except yaml.YAMLError:
            fields = yaml.load("\n".join(map(_with_quotes, text.split("\n"))), _FrontMatterLoader)  # noqa: S506
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 2
        raise ConfigError(
            f"the front matter holds the character U+{error.character:04X}", path=path, line=line
        ) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = min(mark.line, text.count("\n")) if mark else 0
        problem = getattr(error, "problem", None) or str(error)
        shown = text.split("\n")[line].strip()[:120]
        raise ConfigError(f"the front matter is not YAML: {problem}: {shown}", path=path, line=line + 2) from error
    except RecursionError as error:
        raise ConfigError("the front matter is nested too deeply", path=path, line=2) from error
    # a tag that does not fit its value, a number too long
    except (ValueError, LookupError, AttributeError, OverflowError) as error:
        raise ConfigError(f"the front matter has a value that can't be read: {error}", path=path, line=2) from error
    if fields is None:
        return {}
    if not isinstance(fields, dict):
        raise ConfigError("the front matter must be fields of the form  key: value", path=path, line=2)
    return fields


def _with_quotes(line: str) -> str:
    """A line with a colon in its value, quoted: OpenCode makes it a block, but then errors would name other lines."""
    match = _PAIR.fullmatch(line)
    return f"{match[1]}: {json.dumps(match[2].rstrip(), ensure_ascii=False)}" if match else line
