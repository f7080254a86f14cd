"""pydantic's errors in a person's words: which entry, what it is, what it should be, what happens until then."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher, get_close_matches
from typing import TYPE_CHECKING, Any

from .models.section import TAG

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from .warning import Keys

_EXPECTED: dict[str, str] = {
    "string_type": "a text",
    "scalar_type": "a text",
    "bool_type": "true or false",
    "float_type": "a number",
    "finite_number": "a number",
    "int_type": "a whole number above 0",
    "int_from_float": "a whole number above 0",
    "greater_than": "a number above 0",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "list_type": "a list of texts",
}
_QUOTED = re.compile(r"'([^']*)'|\b(True|False)\b")
_ALIKE = 0.85
"""How alike two words must be (``difflib``) for one to be called a slip of the other; 1 is the same."""


def place(error: ErrorDetails) -> tuple[Keys, bool]:
    """The keys down to the entry that is wrong, and whether the fault is one element of that entry's list."""
    keys: list[str] = []
    for part in error["loc"]:
        if isinstance(part, int):
            return tuple(keys), True
        if not part.startswith(TAG):
            keys.append(part)
    return tuple(keys), False


def expected(error: ErrorDetails, *, element: bool) -> tuple[str, list[str]]:
    """The expected kind of an entry, and its allowed values if they are few."""
    if element:
        return "a list of texts", []
    kind = error["type"]
    if kind == "literal_error":
        found = _QUOTED.findall(str((error.get("ctx") or {}).get("expected", "")))
        words = [quoted or bare.lower() for quoted, bare in found]
        return _either(words), words
    return _EXPECTED.get(kind, "something else: " + error["msg"]), []


def near(word: Any, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """A hint at the known word that is most like this one; "" if none is."""
    found = get_close_matches(word.lower(), list(known), n=1, cutoff=cutoff) if isinstance(word, str) else []
    return f" (did you mean {found[0]}?)" if found else ""


def slip(word: str, known: Mapping[str, Any] | Iterable[str]) -> str | None:
    """The known word of which this one is most probably a slip: two letters exchanged, one too many or too few."""
    lowered = word.lower()
    for candidate in known:
        one, other = lowered.replace("-", "_"), candidate.lower()
        if one == other or (sorted(one) == sorted(other) and one[:1] == other[:1]):
            return candidate
        if SequenceMatcher(None, one, other).ratio() >= _ALIKE:
            return candidate
    return None


def _either(words: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else "something else"
