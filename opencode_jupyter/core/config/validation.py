"""Validation of a config: what does not fit is reported and left out, the rest is used.

OpenCode refuses a whole file for one wrong key. In a notebook that would take every tool away, so here a mistake costs
only its own entry, and a permission that can't be understood asks. `models` alone describes what is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError, short_repr
from ..permission import never_matches, permission_key
from ..suggestions import near_names
from .config import Keys, Report

if TYPE_CHECKING:
    from pydantic import BaseModel, TypeAdapter
    from pydantic_core import ErrorDetails

    from .models import ConfigFile

_CHECKED_IN_USE = ("formatter", "lsp")
"""Sections whose readers leave out and report wrong entries by themselves."""

MAX_DEPTH = 100
"""Objects and lists within each other."""
MOST_HINTS = 300
"""Words of one file for which near names are looked for, which takes a millisecond each."""

Show = Callable[[Any], str]
"""A wrong value as a warning shows it."""


def normalise(data: Mapping[str, Any], report: Report | None = None, show: Show | None = None) -> dict[str, Any]:
    """One config's dict in the form the rest of the package reads.

    ``permission`` becomes an object; agents get their legacy ``tools`` turned into permissions and their unknown keys
    moved to ``options``; values of a wrong type are left out. Each mistake goes to `report`.

    Args:
        data: as a parser gave it; it is not changed.
        report: called for each mistake.
        show: renders a wrong value for a warning; as Python writes it if left out.

    Raises:
        ConfigError: it is nested too deeply, has no end, or holds NUL characters.
    """
    plain = _plain_copy(data)
    if not plain:
        return {}
    out = _Checker(report, show).check(plain)
    if "permission" in out:
        out["permission"] = _as_object(out["permission"])
    for section in ("agent", "mode"):
        if section in out:
            out[section] = {name: _agent(entry) for name, entry in out[section].items()}
    if report is not None:
        _report_patterns(out.get("permission"), ("permission",), report)
        for section in ("agent", "mode"):
            for name, entry in out.get(section, {}).items():
                _report_patterns(entry.get("permission"), (section, name, "permission"), report)
    return out


def _report_patterns(permissions: Any, where: Keys, report: Report) -> None:
    """Report patterns of rules that can never match."""
    for permission, patterns in (permissions or {}).items():
        for pattern in patterns if isinstance(patterns, Mapping) else ():
            if reason := never_matches(permission, pattern):
                keys = (*where, permission, pattern)
                report(keys, f"{'.'.join(keys)} can never match; {reason}")


def missing_field(server: Mapping[str, Any]) -> str | None:
    """The field that an MCP server, merged from all files, lacks; None if it is complete.

    One without a type may be the switch of a server that a file of another program describes.
    """
    if "type" not in server:
        return None
    needed = "command" if server["type"] in ("local", "stdio") else "url"
    return None if server.get(needed) else needed


def tools_to_permission(tools: Mapping[str, bool]) -> dict[str, str]:
    """The legacy ``tools`` switches as permissions."""
    return {permission_key(name): "allow" if on else "deny" for name, on in tools.items()}


def known_keys() -> dict[str, str]:
    """The top-level keys: as files have them, and the names of the model's fields."""
    return {info.alias or name: name for name, info in _model().model_fields.items()}


def _plain_copy(value: Any, depth: int = 0) -> Any:
    """A copy as plain JSON data: objects as dicts whose keys are texts, lists and tuples as lists."""
    if depth > MAX_DEPTH:
        raise ConfigError(f"is nested too deeply (more than {MAX_DEPTH} objects and lists within each other)")
    if isinstance(value, Mapping):
        if any("\0" in str(key) for key in value):
            raise ConfigError("has a key with a NUL character")
        return {str(key): _plain_copy(entry, depth + 1) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_copy(entry, depth + 1) for entry in value]
    return value


@cache
def _model() -> type[ConfigFile]:
    from .models import ConfigFile

    return ConfigFile


@cache
def _adapter(key: str) -> TypeAdapter[Any]:
    """The validator of one top-level key, built when the first file has it."""
    from typing import Annotated

    from pydantic import TypeAdapter

    info = _model().model_fields[known_keys()[key]]
    kind: Any = info.annotation
    for more in info.metadata:
        kind = Annotated[kind, more]
    return TypeAdapter(kind)


class _Checker:
    """Checks one file's sections, and repairs what is wrong with them."""

    def __init__(self, report: Report | None, show: Show | None) -> None:
        self.report = report or (lambda keys, message: None)
        self.show = show or short_repr
        self.hints = MOST_HINTS

    def check(self, data: dict[str, Any]) -> dict[str, Any]:
        """The data of a file without its mistakes; changed in place."""
        known = known_keys()
        for key in list(data):
            if key in known:
                self._check_section(key, data)
            else:
                self.report((key,), f'"{key}" is not a key of the configuration{_hint(self._suggest(key, known))}')
        return data

    def _check_section(self, key: str, data: dict[str, Any]) -> None:
        from pydantic import ValidationError

        adapter = _adapter(key)
        try:
            section = adapter.validate_python(data[key], strict=True)
        except ValidationError as errors:
            self._repair(key, data, errors)
            if key not in data or key in _CHECKED_IN_USE:
                return
            try:
                section = adapter.validate_python(data[key], strict=True)
            except ValidationError as remaining:
                if any(error["type"] != "missing" for error in remaining.errors()):  # nothing wrong gets through
                    del data[key]
                return
        self._report_unknown(section, (key,))

    def _repair(self, key: str, data: dict[str, Any], errors: Any) -> None:
        repaired: set[Keys] = set()
        for error in errors.errors(include_url=False):
            below, in_list = _locate(error)
            where = (key, *below)
            if error["type"] == "missing" or where in repaired:  # another file may bring what is missing
                continue
            repaired.add(where)
            self._repair_entry(data, where, error, in_list)

    def _repair_entry(self, data: dict[str, Any], where: Keys, error: Any, in_list: bool) -> None:
        holder: Any = data
        for name in where[:-1]:
            holder = holder[name]
        value = holder[where[-1]]
        path = ".".join(where)
        section = where[2:] if where[0] in ("agent", "mode") else where
        expected, words = _expected(error, in_list=in_list)
        hint = _hint(self._suggest(value, words))
        if section[:1] == ("permission",):
            holder[where[-1]] = "ask"
            self.report(where, f"{path} is {self.show(value)}; use allow, deny or ask{hint}. Until then it asks")
        elif section[:1] == ("tools",) and len(section) == 2:
            holder[where[-1]] = False
            self.report(
                where, f"{path} is {self.show(value)}; it should be {expected}. Until then the tool is switched off"
            )
        else:
            if where[0] not in _CHECKED_IN_USE:
                del holder[where[-1]]
            verb = "use" if words else "it should be"
            self.report(where, f"{path} is {self.show(value)}; {verb} {expected}{hint}. Until then it is left out")

    def _suggest(self, word: Any, known: Iterable[str], cutoff: float = 0.6) -> str:
        """The known word that is most like this one; "" if none is."""
        self.hints -= 1
        if self.hints < 0 or not isinstance(word, str):
            return ""
        anagrams = (name for name in known if name[:1] == word[:1] and sorted(name) == sorted(word))  # bahs for bash
        return next(anagrams, "") or next(iter(near_names(word.replace("-", "_"), known, cutoff)), "")

    def _report_unknown(self, section: Any, where: Keys) -> None:
        """Report keys that no model has, where that is probably a mistake."""
        from pydantic import BaseModel

        from .models import PERMISSIONS, PermissionRules, Section

        if isinstance(section, PermissionRules):
            for key in section.root.keys() - PERMISSIONS.keys():
                self._report_misspelling(key, where, PERMISSIONS)
        elif isinstance(section, Section):
            fields = type(section).model_fields
            for key in section.model_extra or {}:
                self._report_extra(section, key, where)
            for name in section.model_fields_set & fields.keys():
                self._report_unknown(getattr(section, name), (*where, fields[name].alias or name))
        elif isinstance(section, dict):
            for key, value in section.items():
                if isinstance(value, BaseModel | dict):
                    self._report_unknown(value, (*where, key))

    def _report_extra(self, section: BaseModel, key: str, where: Keys) -> None:
        known = type(section).model_fields
        policy = getattr(section, "unknown_keys", None)
        if policy == "typos":
            self._report_misspelling(key, where, known)
        elif policy == "wrong":
            near = self._suggest(key, known, _ALIKE)
            hint = f"did you mean {near}?" if near else f"there are {', '.join(known)}"
            self.report((*where, key), f"{'.'.join((*where, key))} is not known; {hint}")

    def _report_misspelling(self, key: str, where: Keys, known: Iterable[str]) -> None:
        near = self._suggest(key, known, _ALIKE)
        if near:
            self.report((*where, key), f"{'.'.join((*where, key))} is not known (did you mean {near}?)")


def _as_object(permission: Any) -> Any:
    return {"*": permission} if isinstance(permission, str) else permission


def _agent(entry: Mapping[str, Any]) -> dict[str, Any]:
    from .models import AgentEntry

    out = {key: value for key, value in entry.items() if key in AgentEntry.model_fields}
    options = {key: value for key, value in entry.items() if key not in AgentEntry.model_fields}
    if "permission" in out:
        out["permission"] = _as_object(out["permission"])
    if options:
        out["options"] = {**options, **out.get("options", {})}
    steps = out.pop("maxSteps", None)
    if steps is not None:
        out.setdefault("steps", steps)
    tools = out.pop("tools", None)
    if tools is not None:
        out["permission"] = {**tools_to_permission(tools), **out.get("permission", {})}
    return out


# ---------------------------------------------------------------------- wording

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
_ALIKE = 0.85
"""How alike two words must be for one to count as a misspelling of the other; 1 is the same."""


def _locate(error: ErrorDetails) -> tuple[Keys, bool]:
    """The keys down to the entry that is wrong, and whether the fault is one element of that entry's list."""
    from .models import TAG

    keys: list[str] = []
    for part in error["loc"]:
        if isinstance(part, int):
            return tuple(keys), True
        if not part.startswith(TAG):
            keys.append(part)
    return tuple(keys), False


def _expected(error: ErrorDetails, *, in_list: bool) -> tuple[str, list[str]]:
    """The expected kind of an entry, and its allowed values if they are few."""
    if in_list:
        return "a list of texts", []
    from .models import NOT_ONE_OF

    kind = error["type"]
    if kind == NOT_ONE_OF:
        words = [value if isinstance(value, str) else str(value).lower() for value in error["ctx"]["values"]]
        return f"{', '.join(words[:-1])} or {words[-1]}", words
    return _EXPECTED.get(kind, "something else: " + error["msg"]), []


def _hint(near: str) -> str:
    return f" (did you mean {near}?)" if near else ""
