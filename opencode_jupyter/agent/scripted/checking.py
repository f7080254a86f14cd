"""Small checks of a script's values; what is wrong is noted with its place, and reading goes on."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from .nodes import Mistakes, Node
from .templates import near


class Checker:
    """Reads values of a kind; a wrong one is noted and an empty one stands in for it."""

    def __init__(self, mistakes: Mistakes) -> None:
        self._mistakes = mistakes

    def at(self, place: str, message: str) -> None:
        """Note a mistake."""
        self._mistakes.add(place, message)

    def wrong(self, node: Node, message: str) -> None:
        """Note a mistake in a value."""
        self._mistakes.add(node.place, message)

    def mapping(self, node: Node, known: Sequence[str], what: str) -> dict[str, Node]:
        """A mapping with some of these keys."""
        inside = self.named(node, what)
        for key in inside:
            if key not in known:
                self.at(node.keys[key], f"{key}: is not known in {what}{near(key, known)}")
        return {key: value for key, value in inside.items() if key in known}

    def named(self, node: Node, what: str) -> dict[str, Node]:
        """A mapping with any keys."""
        if isinstance(node.value, dict):
            return node.value
        self.wrong(node, f"{what} must be a mapping (name: value), not {node.kind}")
        return {}

    def list_of(self, node: Node, what: str) -> list[Node]:
        """A list."""
        if isinstance(node.value, list):
            return node.value
        self.wrong(node, f"{what} must be a list (each entry starts with a dash), not {node.kind}")
        return []

    def text(self, node: Node, what: str) -> str:
        """A text; a number or a truth value is taken as it is written in JSON."""
        value = node.value
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, (str, int, float)):
            return str(value)
        self.wrong(node, f"{what} must be a text, not {node.kind}")
        return ""

    def texts(self, node: Node, what: str) -> tuple[str, ...]:
        """A text, or a list of them."""
        if isinstance(node.value, list):
            return tuple(self.text(one, what) for one in node.value)
        return (self.text(node, what),)

    def patterns(self, node: Node, what: str) -> tuple[str, ...]:
        """A regular expression, or a list of them."""
        found = self.texts(node, what)
        listed = node.value if isinstance(node.value, list) else [node]
        for pattern, one in zip(found, listed, strict=True):
            try:
                re.compile(pattern)
            except re.error as error:
                self.wrong(one, f"{what} {pattern!r} is no regular expression: {error}")
                return ()
        return found

    def words(self, node: Node, known: Sequence[str], what: str) -> tuple[str, ...]:
        """One of these words, or a list of them."""
        found = self.texts(node, what)
        for word in found:
            if word not in known:
                self.wrong(node, f"{what} {word!r} is not known{near(word, known)}")
        return tuple(word for word in found if word in known)

    def true_or_false(self, node: Node | None) -> bool:
        """A truth value; False if it is not there."""
        if node is None or isinstance(node.value, bool):
            return bool(node and node.value)
        self.wrong(node, f"must be true or false, not {node.kind}")
        return False

    def number(self, node: Node, what: str) -> float | None:
        """A number, 0 or more."""
        value = node.value
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0:
            return value
        self.wrong(node, f"{what}, not {value if isinstance(value, (int, float)) else node.kind}")
        return None

    def numbers(self, node: Node, what: str) -> tuple[int, ...]:
        """A whole number, or a list of them."""
        listed = node.value if isinstance(node.value, list) else [node]
        for one in listed:
            if not isinstance(one.value, int) or isinstance(one.value, bool):
                self.wrong(one, f"{what} must be a whole number, not {one.kind}")
                return ()
        return tuple(one.value for one in listed)

    def free(self, node: Node | None) -> dict[str, Any]:
        """A mapping of any values."""
        if node is None:
            return {}
        return {key: value.plain for key, value in self.named(node, "this").items()}
