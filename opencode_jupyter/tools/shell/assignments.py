"""Builtins that give variables values: where that decides what runs, or runs what the value or the name holds.

``read PATH``, ``printf -v BASH_ENV`` and ``for PATH in`` set a variable as ``PATH=`` does. In ``a[$(command)]`` given
as a name, and in what is given to a variable of numbers (``declare -i``), the shell runs the command.
"""

from __future__ import annotations

import re
from itertools import pairwise

from . import catalog
from .arithmetic import ASSIGNED, is_number
from .word_expansion import Word

DECLARING = frozenset({"declare", "typeset", "local", "export", "readonly"})

_READ_VALUED = {"read": "adinNptu", "mapfile": "dnOsuCc", "readarray": "dnOsuCc"}
_SETS = "it sets {}, which decides what runs"
_UNKNOWN = "which variable {} sets or reads is only known at run time"
_INSIDE = "the shell runs the command inside such a name"
_CHANGES = frozenset("expand_aliases cdable_vars sourcepath lastpipe extdebug compat31 compat32 posix".split())
_MODES = frozenset("keyword history histexpand posix".split())


def names(name: str, arguments: list[Word]) -> list[Word]:
    """The words of a builtin that name variables; those it looks at, too."""
    if name in _READ_VALUED:
        return _operands(arguments, _READ_VALUED[name], "a" if name == "read" else "")
    if name in ("printf", "wait"):
        letter = "-v" if name == "printf" else "-p"
        if name == "printf" and (not arguments or not arguments[0].shown.startswith(letter)):
            return []
        for at, word in enumerate(arguments):
            if word.text is not None and word.text.startswith(letter):
                return [Word(word.source, word.text[2:])] if word.text != letter else arguments[at + 1 : at + 2]
        return []
    if name == "getopts":
        return arguments[1:2]
    if name == "unset":
        return [word for word in arguments if word.text is None or not word.text.startswith("-")]
    if name in ("test", "["):
        return [b for a, b in pairwise(arguments) if a.text in ("-v", "-R")]
    return []


def _operands(arguments: list[Word], valued: str, naming: str) -> list[Word]:
    """The words that are no options, with the value of the option that names a variable."""
    out: list[Word] = []
    at = 0
    while at < len(arguments):
        word = arguments[at]
        text = word.text
        if text is None or not text.startswith("-") or text in ("-", "--"):
            return out + [w for w in arguments[at:] if w.text != "--"]
        letter = next((one for one in text[1:] if one in valued), "")
        at += 1
        if letter:
            attached = text.partition(letter)[2]
            if letter in naming:
                out += [Word(text, attached)] if attached else arguments[at : at + 1]
            at += not attached
    return out


def runs(name: str, arguments: list[Word]) -> str | None:
    """Why such a builtin may run or change more than it says, in words; None if it does not."""
    if name in DECLARING:
        return _declares(name, arguments)
    if name == "let":
        if any(word.text is None for word in arguments):
            return "it calculates with a value only known at run time, and the shell runs commands inside such a value"
        if any(_subscript(word) for word in arguments):
            return _INSIDE
        names_set = [match[1] or match[2] for word in arguments for match in re.finditer(ASSIGNED, word.shown)]
        return next((_SETS.format(one) for one in names_set if re.fullmatch(catalog.DANGEROUS, one)), None)
    for word in names(name, arguments):
        if word.text is None or word.glob:
            return _UNKNOWN.format(name)
        if _subscript(word):
            return _INSIDE
        plainly = word.text.partition("[")[0]
        if name not in ("test", "[", "unset") and re.fullmatch(catalog.DANGEROUS, plainly):
            return _SETS.format(plainly)
        if name == "unset" and plainly in ("PATH", "IFS", "HOME"):
            return _SETS.format(plainly)
    return None


def _subscript(word: Word) -> bool:
    return word.text is not None and re.search(r"\[[^\]]*(?:\$|`)", word.text) is not None


def _declares(name: str, arguments: list[Word]) -> str | None:
    letters = "".join(w.text[1:] for w in arguments if w.text and w.text[:1] in "-+")
    if name in ("export", "readonly") and not set(letters) - set("pnf") and not arguments:
        return None
    if "n" in letters and name != "export":
        return "a name for another variable hides which one is set"
    for word in arguments:
        if word.text is not None and word.text[:1] in ("-", "+") and word.text:
            continue
        written, equals, value = (word.source if word.text is None else word.text).partition("=")
        variable = re.sub(r"\[.*|\+$", "", written)
        if re.fullmatch(catalog.DANGEROUS, variable):
            return _SETS.format(variable)
        if not re.fullmatch(r"\w+(?:\[[\w@*.-]*\])?\+?", written):
            return _UNKNOWN.format(name) if word.text is None else _INSIDE
        if not equals:
            continue
        array = value.startswith("(")  # written as one word, or known only when it runs
        if set(letters) & set("aA") and word.text is None and not array:
            return "the shell expands such a value, and runs the commands in it"
        if set(letters) & set("aA") and word.text is not None and re.search(r"[$`]", value):
            return "the shell expands such a value, and runs the commands in it"
        if "i" in letters and (word.text is None or not is_number(value)) and not array:
            return "it calculates with a value only known at run time, and the shell runs commands inside such a value"
    return None


def modes(name: str, arguments: list[Word]) -> str | None:
    """Why ``set`` or ``shopt`` changes how later words are read, in words; None if it does not."""
    shown = [word.shown for word in arguments]
    if name == "shopt":
        unknown = any(word.text is None for word in arguments)
        return "it changes how later text is parsed" if unknown or _CHANGES & set(shown) else None
    for word in arguments:
        if word.text == "--" or (word.text is not None and word.text[:1] not in ("-", "+")):
            if word.text in _MODES and shown[0].startswith(("-", "+")):
                return "it changes how later text is parsed"
            if word.text == "--":
                break
        elif word.text is not None and not word.text.startswith("--") and set(word.text[1:]) & set("kH"):
            return "it changes how later text is parsed"
    return None
