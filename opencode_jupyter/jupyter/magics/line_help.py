"""Help for the word at a position in lines of magics, and the words of an unfinished line."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...core.repair import correct_name
from .commands import AGENT_OPTIONS, TOOL_OPTIONS, MagicOptions
from .line_syntax import BLANK
from .parameters import Field, Spec, spec_of, usage

if TYPE_CHECKING:
    from ...core.registry import Registry

log = logging.getLogger(__name__)

MOST_CHOICES = 200
"""Values of one parameter that are listed."""
DESCRIPTION = 1_000
"""Characters of a description that are shown."""
_HEAD = re.compile(r"\s*(?:[A-Za-z_][\w.,\s\[\]'\"*]*=\s*)?%{1,2}tool(?:_awaited)?(?=\s)")
KEY = re.compile(r"([A-Za-z_][\w-]*)(:?=)")
_NOTHING: dict[str, Any] = {"found": False}


def typed_words(text: str) -> list[str]:
    """The words of an unfinished line as they are typed; the last is the one under the cursor, perhaps empty."""
    words = list(spans(text))
    under = bool(words) and words[-1][2] == len(text)
    return [word for word, _, _ in words] + ([] if under else [""])


def spans(line: str, position: int = 0) -> Iterator[tuple[str, int, int]]:
    """The words of an unfinished line as they are typed, from a position on, each with its start and end."""
    begin, mark, escaped = None, "", False
    for at in range(position, len(line)):
        char = line[at]
        if char in BLANK and not mark and not escaped:
            if begin is not None:
                yield line[begin:at], begin, at
                begin = None
            continue
        begin = at if begin is None else begin
        if escaped:
            escaped = False
        elif char == "\\" and mark != "'":
            escaped = True
        elif mark:
            mark = "" if char == mark else mark
        elif char in "'\"":
            mark = char
    if begin is not None:
        yield line[begin:], begin, len(line)


def explain(registry: Registry, code: str, position: int) -> dict[str, Any]:
    """Explain the word at a position of a cell.

    Args:
        registry: whose tools.
        code: the cell.
        position: counts code points.

    Returns:
        ``found``, and if so ``kind`` (``tool``, ``parameter``, ``option``), ``name``, ``description``, the word's
        ``start`` and ``end``, and more: ``source``, ``usage`` of a tool; ``type``, ``required``,
        ``default``, ``choices`` of a parameter.
    """
    begin = code.rfind("\n", 0, position) + 1
    line = code[begin:].partition("\n")[0]
    head = _HEAD.match(line)
    if head is None or ("%%" in head.group() and begin):
        return _NOTHING
    words = list(spans(line, head.end()))
    at = next((i for i, (_, start, end) in enumerate(words) if start <= position - begin <= end), None)
    if at is None:
        return _NOTHING
    word, start, end = words[at]
    position_of_word = {"found": True, "start": begin + start, "end": begin + end}
    named = tool_at([text for text, _, _ in words])
    if word.startswith("-") and (named is None or at < named):
        return {**position_of_word, **_option(TOOL_OPTIONS, word)} if word in TOOL_OPTIONS.by_name else _NOTHING
    if named is None or at < named:
        return _NOTHING
    name = correct_name(registry, words[named][0].rstrip("?"))
    tool = registry.get(name)
    if tool is None:
        reason = registry.why_not(name)[:DESCRIPTION] if at == named else ""
        return {**position_of_word, "kind": "tool", "name": name, "description": reason} if reason else _NOTHING
    spec = spec_of(tool, registry)
    if at == named:
        from .help import source_of

        about = {"kind": "tool", "name": tool.id, "description": _tool_described(spec)}
        return {**position_of_word, **about, "source": source_of(tool), "usage": usage(spec)}
    if word in TOOL_OPTIONS.by_name:
        return {**position_of_word, **_option(TOOL_OPTIONS, word)}
    field = _field_at(spec, [text for text, _, _ in words[named + 1 : at + 1]])
    return {**position_of_word, "kind": "parameter", **_described(field)} if field is not None else _NOTHING


def explain_match(registry: Registry, before: str, text: str, kind: str) -> dict[str, Any]:
    """Explain a suggestion, as ``help``; empty where there is no explanation.

    Args:
        registry: whose tools.
        before: the line up to the suggestion.
        text: the suggestion.
        kind: its type.
    """
    if kind == "option" and before.startswith("%%agent"):
        return {"help": _option(AGENT_OPTIONS, text)} if text in AGENT_OPTIONS.by_name else {}
    if kind not in ("tool", "option", "param", "value"):
        return {}
    try:
        help = explain(registry, before + text, len(before + text))
    except Exception:  # a tool that cannot describe itself; its call reports why
        log.debug("%s cannot be explained", text, exc_info=True)
        return {}
    return {"help": help} if help["found"] else {}


def tool_at(words: list[str]) -> int | None:
    """Which word names the tool: the first that is no option and no option's value."""
    skip = False
    for at, word in enumerate(words):
        if skip or TOOL_OPTIONS.takes_value(word):
            skip = not skip
        elif not word.startswith("-"):
            return at
    return None


def open_fields(spec: Spec, words: list[str]) -> list[Field] | None:
    """The fields that a word without a name may fill after these words; None where an option's value belongs."""
    count, used, skip = 0, set(), False
    for word in words:
        match = KEY.match(word)
        if skip or TOOL_OPTIONS.takes_value(word):
            skip = not skip
        elif match is not None:
            used.add(match.group(1))
        elif not word.startswith("-"):
            count += 1
    return None if skip else [field for field in spec.positional if field.name not in used][count:]


def _described(field: Field) -> dict[str, Any]:
    """One parameter."""
    default = {"default": field.schema["default"]} if "default" in field.schema else {}
    return {
        "name": field.name,
        "type": field.type[:DESCRIPTION],
        "required": field.required,
        "description": field.description[:DESCRIPTION],
        "choices": field.choices[:MOST_CHOICES],
        **default,
    }


def _tool_described(spec: Spec) -> str:
    """The first sentence of a tool's description."""
    from .help import summary

    lines = (line.strip(" #-*") for line in spec.bound.description.splitlines())
    return (summary(spec.tool) or next(filter(None, lines), ""))[:DESCRIPTION]


def _option(options: MagicOptions, word: str) -> dict[str, Any]:
    option = options.by_name[word]
    return {"kind": "option", "name": option.usage, "description": option.help}


def _field_at(spec: Spec, words: list[str]) -> Field | None:
    """The parameter that the last of `words` sets, by its name or its position."""
    key = KEY.match(words[-1])
    if key is not None:
        return spec.find(key.group(1))
    if spec.raw:
        return spec.body
    fields = open_fields(spec, words[:-1])
    if fields == [] and spec.positional and spec.positional[-1].takes("array"):
        return spec.positional[-1]
    return fields[0] if fields else None
