"""YAML texts as values with their places, so that a mistake can be named by line and column; and back.

YAML 1.2's plain values are meant: only ``true`` and ``false`` are booleans (not ``yes``, ``no``, ``on``), ``12:30`` and
dates stay texts.
"""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .answers import missing_script_error, script_error

MOST_VALUES = 500_000
"""Values that a script can hold. An alias counts each time, so a small file cannot expand without end."""
_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NULL = ("", "~", "null", "Null", "NULL")
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


@dataclass(slots=True)
class ScriptDocument:
    """A value, and the place of each value in it by its path of keys and indexes."""

    name: str
    value: Any
    places: dict[tuple[Any, ...], str] = field(default_factory=dict)

    def place(self, path: tuple[Any, ...]) -> str:
        """The place of a value: line and column if they are known, else its path (``turns[0].calls``)."""
        while path and path not in self.places and self.places:
            short = tuple(key for key in path if key != "turns")  # a list may stand for a mapping with turns:
            path = short if short in self.places else path[:-1]
        if path in self.places:
            return self.places[path]
        return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).lstrip(".") or self.name


def read_document(path: Path) -> ScriptDocument:
    """The values of a YAML or JSON file.

    Raises:
        ModelError: kind ``script``: it is missing, not UTF-8, or not YAML.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
        return ScriptDocument(path.name, json.loads(text)) if path.suffix == ".json" else parse(text, path.name)
    except FileNotFoundError:
        raise missing_script_error(path) from None
    except UnicodeDecodeError as error:
        raise script_error(str(path), f"it is not UTF-8: {error}") from None
    except (OSError, ValueError) as error:
        raise script_error(str(path), f"it cannot be read: {error}") from None


def parse(text: str, name: str) -> ScriptDocument:
    """The values of a YAML text; `name` is for messages.

    Raises:
        ModelError: kind ``script``; the message names line and column.
    """
    import yaml

    document = ScriptDocument(name, None)
    try:
        root = yaml.compose(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))
        if root is not None:
            document.value = _value(root, (), document)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = ", ".join(filter(None, (error.context, error.problem)))
        raise script_error(name, f"{_location(mark) if mark else 'somewhere'}: no YAML: {problem}") from None
    except yaml.YAMLError as error:
        raise script_error(name, f"no YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise script_error(name, "it is nested too deeply, or an alias leads into itself") from None
    return document


def _value(node: Any, path: tuple[Any, ...], document: ScriptDocument) -> Any:
    document.places.setdefault(path, _location(node.start_mark))
    if len(document.places) > MOST_VALUES:
        raise script_error(document.name, f"{_location(node.start_mark)}: it holds more than {MOST_VALUES:,} values")
    if node.id == "scalar":
        return node.value if node.style else plain_value(node.value)  # a style: quoted, or a block
    if node.id == "sequence":
        return [_value(item, (*path, index), document) for index, item in enumerate(node.value)]
    values: dict[str, Any] = {}
    for key, item in node.value:
        position = _location(key.start_mark)
        if key.id != "scalar":
            raise script_error(document.name, f"{position}: a key must be a text; quote a value that begins with {{{{")
        if key.value in values:
            raise script_error(document.name, f"{position}: {key.value} is there twice")
        document.places[*path, key.value] = position
        values[key.value] = _value(item, (*path, key.value), document)
    return values


def plain_value(text: str) -> Any:
    """The value of a text without quotes."""
    if text in _NULL:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _INT.fullmatch(text) and len(text) < 1000:
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _location(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}"


def dump(value: Any) -> str:
    """A value as YAML that `parse` reads as the same value."""
    import yaml

    text: str = yaml.dump(
        value, Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=1_000_000, default_flow_style=False
    )
    return text


@functools.cache
def _dumper() -> Any:
    import yaml

    base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

    class Dumper(base):  # type: ignore[misc]
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: Any, data: str) -> Any:
        data = data.encode("utf-8", "replace").decode()
        style = "|" if "\n" in data else '"' if not isinstance(plain_value(data), str) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=style)

    Dumper.add_representer(str, text)
    return Dumper
