"""A script's text as values that know where they stand, so that a mistake can be named by line and column.

YAML 1.2's plain values are meant: only ``true`` and ``false`` are truth values (not ``yes``, ``no``, ``on``), ``12:30``
and dates stay text. JSON is read by the same rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ModelError

MOST = 500_000
"""Values that a script may hold; aliases count each time, so a small file can't swell without end."""
_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_PAIR = re.compile(r"(?<!\\)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
"""How JSON writes what is beyond 16 bits; YAML has no such pairs."""
_PLAIN: dict[str, Any] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A value of a script.

    Attributes:
        value: a dict of `Node`s, a list of them, or a plain value.
        place: where it stands, in words for a message.
        keys: for a dict, where each key stands.
    """

    value: Any
    place: str
    keys: Mapping[str, str]

    @property
    def plain(self) -> Any:
        """The value without its places."""
        if isinstance(self.value, dict):
            return {key: node.plain for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain for node in self.value]
        return self.value

    @property
    def kind(self) -> str:
        """What it is, in words."""
        if self.value is None:
            return "nothing"
        words = {dict: "a mapping", list: "a list", str: "a text", bool: "true or false", int: "a number"}
        return words.get(type(self.value), "a number" if isinstance(self.value, float) else type(self.value).__name__)


class Mistakes:
    """The error for a script; it lists every problem at once."""

    MOST = 10

    def __init__(self, name: str) -> None:
        self.name = name
        self.found: list[str] = []

    def add(self, place: str, message: str) -> None:
        """Note one."""
        self.found.append(f"{place}: {message}")

    def raise_any(self) -> None:
        """Raise what was noted.

        Raises:
            ModelError: kind ``script``.
        """
        if not self.found:
            return
        shown = self.found[: self.MOST]
        if len(self.found) > len(shown):
            shown.append(f"and {len(self.found) - len(shown)} more")
        lead = f"The script {self.name} has a mistake: " if len(self.found) == 1 else f"Mistakes in {self.name}:\n"
        raise ModelError(lead + "\n".join(shown), "script", provider="scripted")


def read(path: Path) -> Node:
    """The values of a file.

    Raises:
        ModelError: kind ``script``: it is not there, no UTF-8, or no YAML.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise ModelError(f"There is no script {path}", "script", provider="scripted") from None
    except UnicodeDecodeError as error:
        raise ModelError(f"The script {path} is not UTF-8: {error}", "script", provider="scripted") from None
    except OSError as error:
        said = error.strerror or error
        raise ModelError(f"The script {path} cannot be read: {said}", "script", provider="scripted") from None
    return parse(text, path.name, json=path.suffix == ".json")


def parse(text: str, name: str, *, json: bool = False) -> Node:
    """The values of a YAML (or JSON) text; `name` is for messages.

    Raises:
        ModelError: kind ``script``; the message names line and column.
    """
    import yaml

    mistakes = Mistakes(name)
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    if json:  # a tab can only stand between values there, where YAML takes none
        text = _PAIR.sub(
            lambda found: chr(0x10000 + (int(found[1], 16) & 0x3FF) * 0x400 + (int(found[2], 16) & 0x3FF)), text
        )
        text = text.replace("\t", " ")
    try:
        root = yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = ", ".join(filter(None, (error.context, error.problem)))
        mistakes.add(_place(mark) if mark else "somewhere", f"no YAML: {said}")
    except yaml.YAMLError as error:
        mistakes.add("somewhere", f"no YAML: {' '.join(str(error).split())}")
    except RecursionError:
        mistakes.add("somewhere", "it is nested too deeply")
    mistakes.raise_any()
    if root is None:
        mistakes.add("line 1, column 1", "the script is empty; it needs turns: or prompts:")
        mistakes.raise_any()
    made = _Maker(mistakes).node(root, ())
    mistakes.raise_any()
    return made


def of(value: Any, place: str) -> Node:
    """The same for values of Python; `place` says where they were given."""
    if isinstance(value, Mapping):
        made = {str(key): of(item, f"{place}.{key}") for key, item in value.items()}
        return Node(made, place, {key: f"{place}.{key}" for key in made})
    if isinstance(value, (list, tuple)):
        return Node([of(item, f"{place}[{index}]") for index, item in enumerate(value)], place, {})
    return Node(value, place, {})


class _Maker:
    def __init__(self, mistakes: Mistakes) -> None:
        self._mistakes = mistakes
        self._count = 0

    def node(self, given: Any, above: tuple[Any, ...]) -> Node:
        place = _place(given.start_mark)
        self._count += 1
        if self._count == MOST:
            self._mistakes.add(place, f"the script holds more than {MOST:,} values")
        if self._count >= MOST or given in above:
            if given in above:
                self._mistakes.add(place, "an alias leads into itself")
            return Node(None, place, {})
        inside = (*above, given)
        if given.id == "mapping":
            values: dict[str, Node] = {}
            keys: dict[str, str] = {}
            for key, place_of_key, item in self._pairs(given):
                if key in values:
                    self._mistakes.add(place_of_key, f"{key} is there twice ({keys[key]} is the first)")
                values[key] = self.node(item, inside)
                keys[key] = place_of_key
            return Node(values, place, keys)
        if given.id == "sequence":
            return Node([self.node(item, inside) for item in given.value], place, {})
        return Node(_scalar(given), place, {})

    def _pairs(self, given: Any) -> Iterator[tuple[str, str, Any]]:
        for key, item in given.value:
            place = _place(key.start_mark)
            if key.id != "scalar":
                self._mistakes.add(place, "a key must be a text ({{ }} at a value's beginning needs quotes)")
                continue
            yield str(key.value), place, item


def means(text: str) -> Any:
    """What a text means where it stands without quotes."""
    if text in _PLAIN:
        return _PLAIN[text]
    if _INT.fullmatch(text) and len(text) < 1000:
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _scalar(node: Any) -> Any:
    # plain: neither quoted nor a block
    return node.value if node.style else means(node.value)


def _place(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}"
