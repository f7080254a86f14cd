r"""``{{...}}`` in a script's texts and arguments: what came back from calls, what a condition caught, the prompt.

There is no code in it: a dotted path, and filters behind bars. ``\{{`` stands for two braces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from .seen import Prompt, Result

OPEN = "{{"
_PIECE = re.compile(r"\\\{\{|\{\{(.*?)\}\}", re.DOTALL)
_PATH = re.compile(r"[A-Za-z_][\w-]*(\.[\w-]+)*")
ROOTS = ("result", "results", "prompt", "agent", "session", "directory", "home", "user", "round", "tools")
"""Names that every template knows."""
FILTERS: dict[str, Callable[[Any], Any]] = {
    "trim": lambda value: _text(value).strip(),
    "first_line": lambda value: (_text(value).strip().splitlines() or [""])[0],
    "last_line": lambda value: (_text(value).strip().splitlines() or [""])[-1],
    "count_lines": lambda value: len(_text(value).splitlines()),
    "upper": lambda value: _text(value).upper(),
    "lower": lambda value: _text(value).lower(),
    "number": lambda value: _number(_text(value)),
    "json": lambda value: json.loads(_text(value)),
}
"""What can stand behind a bar."""
_FIELDS = ("output", "tool", "outcome", "arguments")


class TemplateError(ValueError):
    """A template that means nothing, or nothing here."""


@dataclass(slots=True)
class Scope:
    """What the templates of a turn can name.

    Attributes:
        results: of the last calls.
        labelled: results of the calls of earlier turns, by the turn's label.
        variables: the script's own and what was caught.
    """

    prompt: Prompt
    agent: str = ""
    session: str = ""
    directory: str = ""
    home: str = ""
    user: str = ""
    tools: tuple[str, ...] = ()
    results: Sequence[Result] = ()
    labelled: dict[str, Sequence[Result]] = field(default_factory=dict)
    variables: dict[str, Any] = field(default_factory=dict)
    round: int = 1

    def find(self, path: str) -> Any:
        """The value of a dotted path.

        Raises:
            TemplateError: there is none.
        """
        root, *rest = path.split(".")
        if root in self.variables:
            return _inside(self.variables[root], rest, path)
        if root == "result":
            return _result(self.results, rest, path)
        if root == "results":
            label, *rest = rest
            if label not in self.labelled:
                raise TemplateError(f"{{{{{path}}}}}: no turn with the label {label} came before")
            return _result(self.labelled[label], rest, path)
        if root == "prompt":
            return self.prompt.number if rest == ["number"] else self.prompt.text
        if root == "tools":
            return ", ".join(self.tools)
        if root in ROOTS:
            return getattr(self, root)
        raise TemplateError(f"{{{{{path}}}}}: no value of that name was captured yet")


def check(text: str, known: Collection[str], labels: Collection[str]) -> list[str]:
    """What is wrong with the templates of a text, whatever the conversation will be.

    Args:
        text: with templates or without.
        known: names of variables, beside `ROOTS`.
        labels: of the turns around it.
    """
    wrong = []
    for inside in (found[1] for found in _PIECE.finditer(text) if found[1] is not None):
        path, filters = _split(inside)
        if not _PATH.fullmatch(path):
            wrong.append(f"{{{{{inside}}}}} is no name; a plain {OPEN} is written \\{OPEN}")
            continue
        root, *rest = path.split(".")
        names = [*ROOTS, *known]
        if root not in names:
            wrong.append(f"{{{{{inside.strip()}}}}}: {root} is not known{near(root, names)}")
        elif root == "results" and (not rest or rest[0] not in labels):
            label = rest[0] if rest else ""
            wrong.append(f"{{{{{inside.strip()}}}}}: there is no label {label!r}{near(label, labels)}")
        elif root == "prompt" and rest not in ([], ["text"], ["number"]):
            wrong.append(f"{{{{{inside.strip()}}}}}: a prompt has only text and number")
        elif root in ("result", "results") and root not in known:
            fields = [key for key in rest[root == "results" :] if not key.isdigit()]
            if fields and fields[0] not in _FIELDS:
                wrong.append(f"{{{{{inside.strip()}}}}}: a result has {', '.join(_FIELDS)}{near(fields[0], _FIELDS)}")
        unknown = [name for name in filters if name not in FILTERS]
        wrong += [f"{{{{{inside.strip()}}}}}: there is no filter {name}{near(name, FILTERS)}" for name in unknown]
    return wrong


def expand(text: str, scope: Scope) -> str:
    """A text with its templates filled in.

    Raises:
        TemplateError: one of them has no value here.
    """
    return text if OPEN not in text else _PIECE.sub(lambda found: _filled(found, scope), text)


def expand_json(text: str, scope: Scope) -> str:
    """The same for text that is JSON: what is filled in is escaped as in a JSON string."""
    if OPEN not in text:
        return text
    return _PIECE.sub(
        lambda f: OPEN if f[1] is None else json.dumps(_filled(f, scope), ensure_ascii=False)[1:-1],
        text,
    )


def expand_value(value: Any, scope: Scope) -> Any:
    """A JSON value with the templates of its texts filled in; a text that is one template keeps the value's type.

    Raises:
        TemplateError: one of them has no value here.
    """
    if isinstance(value, str):
        whole = _PIECE.fullmatch(value) if OPEN in value else None
        # fullmatch may stretch one template over two
        if whole is not None and whole[1] is not None and "}}" not in whole[1]:
            return _value(whole[1], scope)
        return expand(value, scope)
    if isinstance(value, Mapping):
        return {key: expand_value(item, scope) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [expand_value(item, scope) for item in value]
    return value


def escape(text: str) -> str:
    """A text that, as a template, gives `text`."""
    return text.replace(OPEN, "\\" + OPEN)


def near(word: str, known: Collection[str]) -> str:
    """A hint at the known word that is most like this one, or at all there are if they are few."""
    found = get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    if found:
        return f" (did you mean {found[0]}?)"
    return f" (there are {', '.join(known)})" if 0 < len(known) <= 24 else ""


def _split(inside: str) -> tuple[str, list[str]]:
    path, *filters = (piece.strip() for piece in inside.split("|"))
    return path, filters


def _filled(found: re.Match[str], scope: Scope) -> str:
    return OPEN if found[1] is None else _text(_value(found[1], scope))


def _value(inside: str, scope: Scope) -> Any:
    path, filters = _split(inside)
    value = scope.find(path)
    for name in filters:
        try:
            value = FILTERS[name](value)
        except KeyError:
            raise TemplateError(f"{{{{{inside.strip()}}}}}: there is no filter {name}{near(name, FILTERS)}") from None
        except ValueError as error:
            raise TemplateError(f"{{{{{inside.strip()}}}}}: {error}") from error
    return value


def _result(results: Sequence[Result], rest: list[str], path: str) -> Any:
    index, fields = (int(rest[0]), rest[1:]) if rest and rest[0].isdigit() else (0, rest)
    if index >= len(results):
        count = f"{len(results)} result" + "s" * (len(results) != 1)
        raise TemplateError(f"{{{{{path}}}}}: the last turn's calls gave {count}")
    value = getattr(results[index], fields[0] if fields else "output", None)
    return _inside(value, fields[1:], path)


def _inside(value: Any, rest: list[str], path: str) -> Any:
    for key in rest:
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, (list, tuple)) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            raise TemplateError(f"{{{{{path}}}}}: there is no {key} in it")
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _number(text: str) -> int | float:
    try:
        return int(text.strip())
    except ValueError:
        return float(text)
