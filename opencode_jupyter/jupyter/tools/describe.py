"""A variable described: what it is, how large, what is in it, where it comes from. None of its own code is run."""

from __future__ import annotations

import inspect
import itertools
import sys
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from . import libraries
from .paths import Computed
from .types_of import (
    among,
    class_attribute,
    instance_dict,
    is_computed,
    module_of,
    mro,
    namespace,
    slots_of,
    type_name,
)
from .values import HIDDEN, is_secret, short, spelled

DOC_LINES = 12
ATTRIBUTES = 40
NAMES = 60
COUNTED = 10_000
"""Items whose types are counted."""
TEXT = 2_000
"""Characters of a text that are shown."""
_CONTAINERS = (dict, list, tuple, set, frozenset, deque, OrderedDict, defaultdict)
_TEXTS = (str, bytes, bytearray)
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)


@dataclass(slots=True)
class Description:
    """What is said of a value.

    Attributes:
        type: its type's name.
        size: length or shape, short.
        lines: the rest, line by line.
        records: its rows, where it is a table of columns or attributes.
        table: its first rows, as a card draws them (`core.result.TABLES`).
        printed: how many of the lines a person reads beside the table, which says the rest.
    """

    type: str
    size: str = ""
    lines: list[str] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    table: dict[str, Any] | None = None
    printed: int = 0

    def say(self, name: str, value: object) -> None:
        """Add a line ``name: value``."""
        self.lines.append(f"{name}: {value}")


def describe(value: Any, *, name: str = "", rows: int = 5) -> Description:
    """Describe a value.

    Args:
        value: what.
        name: what it goes under, in case that looks like a secret's.
        rows: rows or items of it that are shown.
    """
    kind = type(value)
    if kind is Computed:
        return _computed(value)
    out = Description(type_name(kind), size_of(value))
    if is_secret(name, value):
        out.say("value", HIDDEN)
        return out
    special = _special(value)
    if special is not None:
        special(value, out, rows)
    elif not libraries.describe(value, out, rows):
        _object(value, out)
    return out


def size_of(value: Any) -> str:
    """Length or shape, where it can be known without asking the object; else nothing."""
    kind = type(value)
    if among(kind, (*_CONTAINERS, *_TEXTS, range)):
        return str(len(value))
    base = _plain_base(kind)
    if base is not None:
        return str(base.__len__(value))
    return libraries.shape_of(value)


def _special(value: Any) -> Callable[[Any, Description, int], None] | None:
    kind = type(value)
    if among(kind, _TEXTS):
        return _text
    if among(kind, _CONTAINERS):
        return _container
    if kind is types.ModuleType:
        return _module
    if among(kind, (*_FUNCTIONS, types.MethodType, staticmethod, classmethod)):
        return _function
    if any(base is type for base in mro(kind)):
        return _class
    if spelled(value):
        return lambda value, out, rows: out.say("value", short(value, TEXT))
    return None


# ---------------------------------------------------------------------- Python's own types


def _text(value: Any, out: Description, rows: int) -> None:
    if type(value) is str:
        out.say("lines", value.count("\n") + 1)
        shown = (
            value
            if len(value) <= TEXT
            else f"{value[: TEXT // 2]}\n… {len(value) - TEXT} characters …\n{value[-TEXT // 2 :]}"
        )
        out.lines += ["value:", shown]
    else:
        out.say("value", short(value, TEXT))


def _container(value: Any, out: Description, rows: int) -> None:
    if not value:
        return
    keyed = isinstance(value, dict)
    try:
        items = list(itertools.islice(dict.items(value) if keyed else value, COUNTED))
    except RuntimeError:
        out.lines.append("(another thread is changing it)")
        return
    kinds: dict[str, int] = {}
    for item in items:
        kind = type_name(type(item[1] if keyed else item))
        kinds[kind] = kinds.get(kind, 0) + 1
    common = sorted(kinds.items(), key=lambda pair: -pair[1])
    counted = f" (of the first {COUNTED:,})" if len(value) > COUNTED else ""
    out.say(
        ("values" if keyed else "items") + counted,
        ", ".join(f"{n} {kind}" for kind, n in common[:6]) + (", …" if common[6:] else ""),
    )
    most = max(rows, 10)
    for i, item in enumerate(items[:most]):
        if keyed:
            shown = HIDDEN if is_secret(item[0], item[1]) else short(item[1], 200)
            out.lines.append(f"  {short(item[0])}: {shown}")
        else:
            out.lines.append(
                f"  [{i}] {short(item, 200)}" if type(value) in (list, tuple, deque) else f"  {short(item, 200)}"
            )
    if len(value) > most:
        out.lines.append(f"  … {len(value) - most} more")


def _module(value: types.ModuleType, out: Description, rows: int) -> None:
    own = vars(value)
    for name in ("__name__", "__version__", "__file__"):
        found = own.get(name)
        if type(found) is str:
            out.say(name.strip("_"), found)
    _doc(own.get("__doc__"), out)
    public = sorted(n for n in own if type(n) is str and not n.startswith("_"))
    out.say("names", _listed(public))


def _function(value: Any, out: Description, rows: int) -> None:
    if type(value) in (staticmethod, classmethod, types.MethodType):
        value = value.__func__
    if type(value) is not types.FunctionType:
        text = getattr(value, "__text_signature__", None) if among(type(value), _FUNCTIONS) else None
        if type(text) is str:
            out.say("signature", f"{value.__name__}{text.replace('$', '')}")
        _doc(getattr(value, "__doc__", None) if type(value) in _FUNCTIONS else None, out)
        return
    out.say("signature", signature(value))
    out.say("defined in", f"{value.__code__.co_filename}, line {value.__code__.co_firstlineno}")
    kind = {
        inspect.CO_COROUTINE: "async function",
        inspect.CO_ASYNC_GENERATOR: "async generator",
        inspect.CO_GENERATOR: "generator",
    }
    out.lines += [f"kind: {word}" for flag, word in kind.items() if value.__code__.co_flags & flag]
    _doc(value.__doc__, out)


def signature(function: types.FunctionType) -> str:
    """A function's name and parameters. Annotations are left out: since Python 3.14 reading them runs code."""
    code = function.__code__
    count, named = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    defaults = function.__defaults__ or ()
    parts = []
    for i, name in enumerate(names[:count]):
        place = i - (count - len(defaults))
        parts.append(f"{name}={_default(name, defaults[place])}" if place >= 0 else name)
        if i + 1 == code.co_posonlyargcount:
            parts.append("/")
    at = count + named
    if code.co_flags & inspect.CO_VARARGS:
        parts.append(f"*{names[at]}")
        at += 1
    elif named:
        parts.append("*")
    given = function.__kwdefaults__ or {}
    parts += [f"{n}={_default(n, given[n])}" if n in given else n for n in names[count : count + named]]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        parts.append(f"**{names[at]}")
    return f"{function.__name__}({', '.join(parts)})"


def _default(name: str, value: Any) -> str:
    return HIDDEN if is_secret(name, value) else short(value, 40)


# ---------------------------------------------------------------------- classes and their instances


def _class(value: type, out: Description, rows: int) -> None:
    out.say("class", type_name(value))
    bases = [type_name(base) for base in mro(value)[1:] if base is not object]
    if bases:
        out.say("bases", ", ".join(bases[:10]))
    made = class_attribute(value, "__init__")
    if type(made) is types.FunctionType:
        out.say(
            "made by",
            signature(made)
            .replace("__init__", type_name(value).rpartition(".")[2], 1)
            .replace("(self, ", "(")
            .replace("(self)", "()"),
        )
    _where(value, out)
    _doc(namespace(value).get("__doc__"), out)
    _members(value, out)


def _object(value: Any, out: Description) -> None:
    kind = type(value)
    base = _plain_base(kind)
    if base is not None:
        out.say("derived from", base.__name__)
        plain = list(itertools.islice(dict.items(value), 10)) if base is dict else None
        items = plain if plain is not None else list(itertools.islice(base.__iter__(value), 10))
        for item in items:
            if plain is not None:
                shown = HIDDEN if is_secret(item[0], item[1]) else short(item[1], 200)
                out.lines.append(f"  {short(item[0])}: {shown}")
            else:
                out.lines.append(f"  {short(item, 200)}")
        count = base.__len__(value)
        if count > 10:
            out.lines.append(f"  … {count - 10} more")
    if among(BaseException, mro(kind)):
        out.say("arguments", short(BaseException.__dict__["args"].__get__(value), 200))
    own = {n: v for n, v in {**slots_of(value), **instance_dict(value)}.items() if type(n) is str and n[:2] != "__"}
    _where(kind, out)
    _doc(class_attribute(kind, "__doc__"), out)
    if own:
        out.lines.append("attributes:")
    for name, found in list(own.items())[:ATTRIBUTES]:
        shown = HIDDEN if is_secret(name, found) else short(found, 120)
        out.lines.append(f"  {name}: {type_name(type(found))} = {shown}")
        out.records.append({"attribute": name, "type": type_name(type(found)), "value": shown})
    if len(own) > ATTRIBUTES:
        out.lines.append(f"  … {len(own) - ATTRIBUTES} more")
    _members(kind, out)


def _members(cls: type, out: Description) -> None:
    methods: list[str] = []
    computed: list[str] = []
    for base in mro(cls):
        if module_of(base) == "builtins" or len(methods) > NAMES:
            continue
        for name, found in namespace(base).items():
            if name.startswith("_"):
                continue
            if among(type(found), (types.FunctionType, staticmethod, classmethod)):
                methods.append(name)
            elif type(found) is not types.MemberDescriptorType and is_computed(found):
                computed.append(name)
    if methods:
        out.say("methods", _listed(list(dict.fromkeys(methods))))
    if computed:
        out.say("properties (not run)", _listed(list(dict.fromkeys(computed))))


def _computed(value: Computed) -> Description:
    kind = type(value.what)
    what = "a property" if kind is property else f"computed by a {type_name(kind)}"
    out = Description(type_name(kind), "", [f"{value.name} is {what}; it was not run."])
    if kind is property:
        getter = value.what.fget
        if type(getter) is types.FunctionType:
            out.say("defined in", f"{getter.__code__.co_filename}, line {getter.__code__.co_firstlineno}")
            _doc(getter.__doc__, out)
    return out


def _plain_base(kind: type) -> Any:
    """The builtin container that a class derives from, if it does; its C code can be asked past the class's own."""
    if among(kind, (*_CONTAINERS, *_TEXTS)) or libraries.known(kind):
        return None
    return next((base for base in (dict, list, tuple, set, frozenset, deque) if among(base, mro(kind))), None)


def _module_name(function: types.FunctionType) -> str:
    name = function.__module__
    return name if type(name) is str else ""


def _where(cls: type, out: Description) -> None:
    if module_of(cls) in ("builtins", ""):
        return
    for found in namespace(cls).values():
        if type(found) is types.FunctionType and _module_name(found) == module_of(cls):
            line = namespace(cls).get("__firstlineno__")
            out.say("defined in", found.__code__.co_filename + (f", line {line}" if type(line) is int else ""))
            return
    module = sys.modules.get(module_of(cls))
    file = vars(module).get("__file__") if type(module) is types.ModuleType else None
    if type(file) is str:
        out.say("defined in", file)


def _doc(text: Any, out: Description) -> None:
    if type(text) is not str or not text.strip():
        return
    lines = inspect.cleandoc(text).splitlines()
    out.lines += ["doc:", *(f"  {line}" for line in lines[:DOC_LINES])]
    if len(lines) > DOC_LINES:
        out.lines.append(f"  … {len(lines) - DOC_LINES} more lines")


def _listed(names: list[str]) -> str:
    more = f", … {len(names) - NAMES} more" if len(names) > NAMES else ""
    return ", ".join(names[:NAMES]) + more
