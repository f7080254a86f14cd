"""What of a project's configuration holds before a person trusts it: what makes rules stricter, and nothing else.

Everything else is withheld, and recorded. MCP servers, model providers and plugins stay: each of them
waits for a person's trust by itself (`core.trust`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from ..trust import Subject, digest
from .config import UNTRUSTED, Keys
from .validation import known_keys, normalise, tools_to_permission

GATED = ("mcp", "provider", "plugin")
"""Sections whose entries wait for trust one by one."""
HARMLESS = frozenset(
    {
        *("$schema", "instructions", "model", "small_model", "compaction", "command", "tool_output", "username"),
        *("share", "autoshare", "autoupdate", "logLevel", "theme", "layout", "keybinds", "tui", "server", "watcher"),
        "enterprise",
    }
)
"""Sections that loosen no rule, run nothing and send nothing; their entries are guarded where they are used."""
EXPERIMENTAL = frozenset({"batch_tool", "mask_secrets", "sandbox"})
"""The sandbox takes nothing from a project's file that would make it weaker; masking takes nothing at all."""
AGENT = frozenset({"description", "prompt", "temperature", "top_p", "color", "model", "variant", "steps", "options"})
"""Fields of an existing agent. ``permission`` decides what it may do, and whether it can be selected."""
NATIVE = frozenset({"build", "plan", "general", "explore", "compaction", "title", "summary"})
"""The built-in agents."""
STRICTER = ("ask", "deny")
LONGEST = 10_000
"""Characters of one entry in the list that a person sees."""


@dataclass(slots=True)
class RestrictedSource:
    """One source of a project, without and with trust.

    Attributes:
        data: what holds without trust, without its rules.
        rules: ``permission`` objects without what allows, by the keys down to them.
        withheld: entries that are not in effect, with the keys down to them.
        reviewed: what a person reviews before trusting: the sections from which something could be withheld, whole.
    """

    data: dict[str, Any] = field(default_factory=dict)
    rules: dict[Keys, dict[str, Any]] = field(default_factory=dict)
    withheld: list[tuple[Keys, Any]] = field(default_factory=list)
    reviewed: dict[str, Any] = field(default_factory=dict)


def restrict(written: Any, filled: Mapping[str, Any], agents: Iterable[str]) -> RestrictedSource:
    """Separate what holds in a project's source from what needs trust.

    Args:
        written: the data; references that reach out of the project stand in it as they are written.
        filled: normalised, with every reference filled in: for the sections that are trusted entry by entry.
        agents: names of the agents of other sources.
    """
    out = RestrictedSource()
    known = known_keys()
    # Not normalised: what does not fit as it is written may fit once it is filled in.
    out.reviewed = {key: value for key, value in written.items() if key in known and key not in HARMLESS | set(GATED)}
    for key, value in normalise(written).items():
        if key in GATED or key not in known:
            continue
        if key == "permission":
            _restrict_rules(out, (key,), value)
        elif key == "tools":
            _restrict_switches(out, value)
        elif key in ("agent", "mode"):
            out.data[key] = {name: _restrict_agent(out, (key, name), entry, agents) for name, entry in value.items()}
        elif key == "skills":
            out.data[key] = _restrict_skills(out, value)
        elif key == "experimental":
            out.data[key] = _select(out, (key,), value, EXPERIMENTAL)
        elif key in HARMLESS or (key in ("formatter", "lsp") and value is False) or (key == "snapshot" and value):
            out.data[key] = value
        else:
            out.withheld.append(((key,), value))
    out.data = _without_references(out, (), out.data)
    out.reviewed |= {keys[0]: written[keys[0]] for keys, _ in out.withheld if keys[0] in written}
    out.data |= {key: filled[key] for key in filled if key in GATED or key not in known}
    return out


def subject(project: Path, home: Path, sources: Iterable[tuple[str, RestrictedSource]]) -> Subject | None:
    """What a person trusts by trusting a project's configuration; None if all of it holds anyway."""
    parts = list(sources)
    lines = [f"{path}: {'.'.join(keys)}: {_shorten(value)}" for path, part in parts for keys, value in part.withheld]
    if not lines:
        return None
    reviewed = [[path, part.reviewed] for path, part in parts if part.reviewed]
    return Subject(
        UNTRUSTED,
        str(project),
        digest(json.dumps(reviewed, default=str)),
        {"content": "\n".join(lines), "ids": [], "label": f"configuration of {_folder(project, home)}"},
    )


def summary(withheld: Iterable[Keys]) -> str:
    """The keys of what is not in effect, for a warning."""
    names = list(dict.fromkeys(".".join(keys[:3]) for keys in withheld))
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(names[:8]) + more


def _folder(project: Path, home: Path) -> str:
    inside = project != home and project.is_relative_to(home)
    return f"~/{project.relative_to(home)}" if inside else str(project)


def _shorten(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def _restrict_rules(out: RestrictedSource, keys: Keys, permission: Mapping[str, Any]) -> None:
    stricter: dict[str, Any] = {}
    for name, value in permission.items():
        if isinstance(value, Mapping):
            patterns = {pattern: action for pattern, action in value.items() if action in STRICTER}
            if patterns:
                stricter[name] = patterns
            out.withheld += [
                ((*keys, name, pattern), action) for pattern, action in value.items() if pattern not in patterns
            ]
        elif value in STRICTER:
            stricter[name] = value
        else:
            out.withheld.append(((*keys, name), value))
    if stricter:
        out.rules[keys] = {**out.rules.get(keys, {}), **stricter}


def _restrict_switches(out: RestrictedSource, tools: Mapping[str, Any]) -> None:
    out.withheld += [(("tools", name), on) for name, on in tools.items() if on]
    off = tools_to_permission({name: False for name, on in tools.items() if not on})
    if off:
        out.rules[("permission",)] = {**off, **out.rules.get(("permission",), {})}


def _restrict_agent(
    out: RestrictedSource, keys: Keys, entry: Mapping[str, Any], agents: Iterable[str]
) -> dict[str, Any]:
    new = keys[1] not in NATIVE and keys[1] not in agents
    rest = {key: value for key, value in entry.items() if key != "permission"}
    _restrict_rules(out, ("agent", keys[1], "permission"), entry.get("permission") or {})
    if keys[0] == "mode":
        rest.pop("mode", None)
    return _select(out, keys, rest, AGENT | ({"mode", "hidden"} if new else set()))


def _restrict_skills(out: RestrictedSource, value: Mapping[str, Any]) -> dict[str, Any]:
    paths = [path for path in value.get("paths") or () if _is_inside(path)]
    outside = [path for path in value.get("paths") or () if not _is_inside(path)]
    if outside:
        out.withheld.append((("skills", "paths"), outside))
    if value.get("urls"):
        out.withheld.append((("skills", "urls"), value["urls"]))
    return {"paths": paths} if paths else {}


def _is_inside(path: str) -> bool:
    pure = PurePath(path)
    return not (pure.is_absolute() or ".." in pure.parts or path.startswith(("~", "$HOME")))


def _select(out: RestrictedSource, keys: Keys, value: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    out.withheld += [((*keys, key), entry) for key, entry in value.items() if key not in names]
    return {key: entry for key, entry in value.items() if key in names}


def _without_references(out: RestrictedSource, keys: Keys, value: Any) -> Any:
    """Without the entries that hold a reference which reaches out of the project."""
    if not isinstance(value, Mapping):
        return value
    from .parse import REFERENCE  # here: few projects have a configuration

    clean = {}
    for key, entry in value.items():
        here = (*keys, str(key))
        if REFERENCE.search(str(key)) or (
            not isinstance(entry, Mapping) and REFERENCE.search(json.dumps(entry, ensure_ascii=False, default=str))
        ):
            out.withheld.append((here, entry))
        else:
            clean[key] = _without_references(out, here, entry)
    return clean
