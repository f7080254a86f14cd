"""What a config may hold. What does not fit is reported and left out; the rest is used.

OpenCode refuses a whole file for one wrong key. In a notebook that would take every tool away, so here a mistake costs
only its own entry, and a permission that can't be understood asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from ..permission import ACTIONS, EDIT_TOOLS

Report = Callable[[tuple[str, ...], str], None]
"""Told of a mistake: where (the keys down to it) and what is wrong, with what to write instead."""

_TEXT = "a text"
_TRUTH = "true or false"
_NUMBER = "a number"
_COUNT = "a whole number above 0"
_OBJECT = "an object"
_TEXTS = "a list of texts"
_ANY = ""

TOP: dict[str, str] = {
    "$schema": _TEXT,
    "theme": _TEXT,
    "model": _TEXT,
    "small_model": _TEXT,
    "default_agent": _TEXT,
    "username": _TEXT,
    "logLevel": _TEXT,
    "share": _TEXT,
    "layout": _TEXT,
    "autoshare": _TRUTH,
    "snapshot": _TRUTH,
    "autoupdate": _ANY,
    "formatter": _ANY,
    "lsp": _ANY,
    "permission": _ANY,
    "plugin": _TEXTS,
    "instructions": _TEXTS,
    "disabled_providers": _TEXTS,
    "enabled_providers": _TEXTS,
    "keybinds": _OBJECT,
    "tui": _OBJECT,
    "server": _OBJECT,
    "command": _OBJECT,
    "watcher": _OBJECT,
    "mode": _OBJECT,
    "agent": _OBJECT,
    "provider": _OBJECT,
    "mcp": _OBJECT,
    "tools": _OBJECT,
    "skills": _OBJECT,
    "enterprise": _OBJECT,
    "compaction": _OBJECT,
    "experimental": _OBJECT,
    "tool_output": _OBJECT,
}
"""Known top-level keys and what they hold."""

NESTED: dict[str, dict[str, str]] = {
    "experimental": {
        "batch_tool": _TRUTH,
        "primary_tools": _TEXTS,
        "continue_loop_on_deny": _TRUTH,
        "mcp_timeout": _COUNT,
    },
    "skills": {"paths": _TEXTS, "urls": _TEXTS},
    "tool_output": {"max_lines": _COUNT, "max_bytes": _COUNT},
}
"""Entries this package reads. Others beside them are passed on as they are."""

AGENT: dict[str, str] = {
    "name": _TEXT,
    "model": _TEXT,
    "variant": _TEXT,
    "prompt": _TEXT,
    "description": _TEXT,
    "color": _TEXT,
    "mode": _TEXT,
    "temperature": _NUMBER,
    "top_p": _NUMBER,
    "steps": _COUNT,
    "maxSteps": _COUNT,
    "disable": _TRUTH,
    "hidden": _TRUTH,
    "options": _OBJECT,
    "tools": _OBJECT,
    "permission": _ANY,
}
"""Keys of an agent. Any other becomes one of its ``options``."""

_MODES = ("primary", "subagent", "all")


@dataclass(frozen=True, slots=True)
class ConfigWarning:
    """A mistake in a config that was worked around.

    Attributes:
        message: what is wrong and what to do.
        path: the file (or ``OPENCODE_PERMISSION`` and the like).
        line: 1-based, if known.
        key: the entry, such as ``permission.bash``.
    """

    message: str
    path: str = ""
    line: int | None = None
    key: str = ""

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        return f"{where}: {self.message}" if where else self.message


def normalise(data: Mapping[str, Any], report: Report | None = None) -> dict[str, Any]:
    """One config's dict in the form the rest of the package reads.

    ``permission`` becomes an object; agents get their legacy ``tools`` turned into permissions and their unknown keys
    moved to ``options``; values of a wrong type are left out. Each mistake goes to `report`.
    """
    tell = report or _ignore
    out: dict[str, Any] = {}
    for key, value in data.items():
        if key not in TOP:
            tell((str(key),), f'"{key}" is not a key of the configuration{_near(str(key), TOP)}')
            out[key] = value
        elif key == "permission":
            out[key] = permission(value, (key,), tell)
        elif _fits(value, TOP[key], (key,), tell):
            out[key] = value
    for section, kinds in NESTED.items():
        if section in out:
            out[section] = {
                k: v for k, v in out[section].items() if k not in kinds or _fits(v, kinds[k], (section, k), tell)
            }
    if "tools" in out:
        out["tools"] = _switches(out["tools"], ("tools",), tell)
    for section in ("agent", "mode"):
        if section in out:
            out[section] = {
                name: _agent(entry, (section, name), tell)
                for name, entry in out[section].items()
                if _fits(entry, _OBJECT, (section, name), tell)
            }
    if "mcp" in out:
        out["mcp"] = {n: e for n, e in out["mcp"].items() if _fits(e, _OBJECT, ("mcp", n), tell)}
    return out


def permission(value: Any, where: tuple[str, ...], report: Report) -> dict[str, Any]:
    """A ``permission`` entry as an object. What can't be understood becomes "ask"."""
    if not isinstance(value, Mapping):
        return {"*": _action(value, where, report)}
    out: dict[str, Any] = {}
    for key, entry in value.items():
        if isinstance(entry, Mapping):
            out[key] = {pattern: _action(a, (*where, key, pattern), report) for pattern, a in entry.items()}
        else:
            out[key] = _action(entry, (*where, key), report)
    return out


def tools_to_permission(tools: Mapping[str, bool]) -> dict[str, str]:
    """The legacy ``tools`` switches as permissions."""
    return {permission_key(name): "allow" if on else "deny" for name, on in tools.items()}


def permission_key(tool: str) -> str:
    """The permission that a tool's legacy switch stands for."""
    return "edit" if tool in EDIT_TOOLS else tool


def _agent(entry: Mapping[str, Any], where: tuple[str, ...], report: Report) -> dict[str, Any]:
    out: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for key, value in entry.items():
        if key not in AGENT:
            options[key] = value
        elif key == "permission":
            out[key] = permission(value, (*where, key), report)
        elif _fits(value, AGENT[key], (*where, key), report):
            out[key] = value
    mode = out.get("mode")
    if mode is not None and mode not in _MODES:
        report((*where, "mode"), f"mode is {mode!r}; use primary, subagent or all{_near(mode, _MODES)}")
        del out["mode"]
    if options:
        out["options"] = {**options, **out.get("options", {})}
    steps = out.pop("maxSteps", None)
    if steps is not None:
        out.setdefault("steps", steps)
    tools = out.pop("tools", None)
    if tools is not None:
        switches = tools_to_permission(_switches(tools, (*where, "tools"), report))
        out["permission"] = {**switches, **out.get("permission", {})}
    return out


def _switches(tools: Mapping[str, Any], where: tuple[str, ...], report: Report) -> dict[str, bool]:
    out: dict[str, bool] = {}
    for name, on in tools.items():
        if _fits(on, _TRUTH, (*where, name), report, left_out="the tool is switched off"):
            out[name] = on
        else:
            out[name] = False
    return out


def _action(value: Any, where: tuple[str, ...], report: Report) -> str:
    if isinstance(value, str) and value in ACTIONS:
        return value
    near = _near(value, ACTIONS) if isinstance(value, str) else ""
    report(where, f"{_path(where)} is {_shown(value)}; use allow, deny or ask{near}. Until then it asks")
    return "ask"


def _fits(value: Any, kind: str, where: tuple[str, ...], report: Report, left_out: str = "it is left out") -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    good = {
        _ANY: True,
        _TEXT: isinstance(value, str),
        _TRUTH: isinstance(value, bool),
        _NUMBER: number,
        _COUNT: number and isinstance(value, int) and value > 0,
        _OBJECT: isinstance(value, Mapping),
        _TEXTS: isinstance(value, list) and all(isinstance(entry, str) for entry in value),
    }[kind]
    if not good:
        report(where, f"{_path(where)} is {_shown(value)}; it should be {kind}. Until then {left_out}")
    return good


def _near(word: str, known: Mapping[str, Any] | tuple[str, ...]) -> str:
    found = get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return f" (did you mean {found[0]}?)" if found else ""


def _path(where: tuple[str, ...]) -> str:
    return ".".join(map(str, where))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _ignore(where: tuple[str, ...], message: str) -> None:
    """Nobody wants to know."""
