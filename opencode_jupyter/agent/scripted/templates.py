"""``{{...}}`` in texts and arguments of a script: values of the conversation. `escape` writes plain braces."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from .answers import Call, Part, Say
from .script_conversation import CallResult, ScriptConversation
from .scrub import home_folder, user_name

_TEMPLATE = re.compile(r"\\\{\{|\{\{(.*?)\}\}", re.DOTALL)
_NAME = re.compile(
    r"result(\.\d+)?(\.(output|tool|outcome))?|prompt(\.number)?|agent|session|directory|home|user|tools"
)


def check_templates(value: Any) -> None:
    """Check the templates in all texts of a value.

    Raises:
        ValueError: one has a name that does not exist.
    """

    def check(match: re.Match[str]) -> str:
        if match[1] is not None and not _NAME.fullmatch(match[1].strip()):
            raise ValueError(
                f"{match[0]} is not known; there are result, result.1.outcome, prompt, agent, session, directory, "
                "home, user and tools. Other values need a script in Python. Plain braces are written \\{{"
            )
        return match[0]

    _replace(value, check)


def _replace(value: Any, replacement: Callable[[re.Match[str]], str]) -> Any:
    """A value with the templates in all of its texts replaced."""
    if isinstance(value, dict):
        return {key: _replace(item, replacement) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replace(item, replacement) for item in value]
    return _TEMPLATE.sub(replacement, value) if isinstance(value, str) else value


def template_values(conversation: ScriptConversation) -> dict[str, str]:
    """The values of all names but ``result``."""
    prompt = conversation.prompt
    return {
        "prompt": prompt.text if prompt else "",
        "prompt.number": str(prompt.number if prompt else 0),
        "agent": conversation.agent,
        "session": conversation.session,
        "directory": conversation.directory,
        "home": home_folder(),
        "user": user_name(),
        "tools": ", ".join(conversation.tools),
    }


def result_values(results: list[CallResult]) -> dict[str, str]:
    """The values of ``result``: of the first, and of each by its number."""
    values: dict[str, str] = {}
    for name, result in [("result", r) for r in results[:1]] + [(f"result.{i}", r) for i, r in enumerate(results)]:
        values[name] = result.output
        values |= {f"{name}.{field}": getattr(result, field) for field in ("output", "tool", "outcome")}
    return values


def fill_say(turn: Say, values: Mapping[str, str]) -> Say:
    """A turn with its templates filled in; in arguments that are JSON text, values are escaped as in a string.

    Raises:
        ValueError: a template has no value here.
    """
    parts: list[Part] = []
    for part in turn.parts:
        if not isinstance(part, Call):
            parts.append(replace(part, text=fill(part.text, values)))
        else:
            json_text = isinstance(part.arguments, str)
            parts.append(replace(part, arguments=fill(part.arguments, values, json_string=json_text)))
    return replace(turn, parts=tuple(parts))


def fill(value: Any, values: Mapping[str, str], *, json_string: bool = False) -> Any:
    """A value with the templates of its texts filled in.

    Raises:
        ValueError: a template has no value here.
    """

    def replacement(match: re.Match[str]) -> str:
        if match[1] is None:
            return "{{"
        text = values.get(match[1].strip())
        if text is None:
            raise ValueError(f"{match[0]}: the last turn's calls gave no such result")
        return json.dumps(text, ensure_ascii=False)[1:-1] if json_string else text

    return _replace(value, replacement)
