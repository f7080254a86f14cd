"""Descriptions of variables: type, size, content, origin. None of their own code is run."""

from __future__ import annotations

import inspect
import itertools
import sys
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from . import pandas_numpy
from .short_values import HIDDEN, is_secret, is_short, short, short_or_hidden
from .type_inspection import (
    class_attribute,
    instance_dict,
    is_computed,
    is_one_of,
    module_of,
    mro,
    namespace,
    slots_of,
    type_name,
)
from .variable_paths import Computed

DOC_LINES = 12
ATTRIBUTES = 40
NAMES = 60
COUNTED = 10_000
"""Items whose types are counted."""
TEXT = 2_000
"""Characters of a text that are shown."""
ITEM = 200
"""Characters of an item that are shown."""
_BASES = (dict, list, tuple, set, frozenset, deque)
_CONTAINERS = (*_BASES, OrderedDict, defaultdict)
_TEXTS = (str, bytes, bytearray)
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)
_WRAPPERS = (staticmethod, classmethod, types.MethodType)
_KINDS = {
    inspect.CO_COROUTINE: "async function",
    inspect.CO_ASYNC_GENERATOR: "async generator",
    inspect.CO_GENERATOR: "generator",
}


@dataclass(slots=True)
class Description:
    """The description of a value.

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

    def add(self, name: str, value: object) -> None:
        """Add a line ``name: value``."""
        self.lines.append(f"{name}: {value}")


def describe(value: Any, *, name: str = "", rows: int = 5) -> Description:
    """Describe a value.

    Args:
        value: the value.
        name: its name, in case that looks like a secret's.
        rows: rows or items of it that are shown.
    """
    kind = type(value)
    if kind is Computed:
        return _computed(value)
    out = Description(type_name(kind), size_of(value))
    if is_secret(name, value):
        out.add("value", HIDDEN)
    elif is_one_of(kind, _TEXTS):
        _text(value, out)
    elif is_one_of(kind, _CONTAINERS):
        _container(value, out, max(rows, 10))
    elif kind is types.ModuleType:
        _module(value, out)
    elif is_one_of(kind, (*_FUNCTIONS, *_WRAPPERS)):
        _function(value, out)
    elif is_one_of(type, mro(kind)):
        _class(value, out)
    elif is_short(value):
        out.add("value", short(value, TEXT))
    elif not pandas_numpy.describe(value, out, rows):
        _object(value, out)
    return out


def size_of(value: Any) -> str:
    """Length or shape, where it is known without running the object's code; else ""."""
    kind = type(value)
    if is_one_of(kind, (*_TEXTS, range)):
        return str(len(value))
    base = _container_base(kind)
    return pandas_numpy.shape_of(value) if base is None else str(base.__len__(value))


def _container_base(kind: type) -> Any:
    """The builtin container that a class is or derives from; its C code can be asked past the class's own."""
    return next((base for base in _BASES if is_one_of(base, mro(kind))), None)


# ---------------------------------------------------------------------- Python's own types


def _text(value: Any, out: Description) -> None:
    if type(value) is not str:
        out.add("value", short(value, TEXT))
        return
    out.add("lines", value.count("\n") + 1)
    omitted = len(value) - TEXT
    middle = f"{value[: TEXT // 2]}\n… {omitted} characters …\n{value[-TEXT // 2 :]}"
    out.lines += ["value:", value if omitted <= 0 else middle]


def _container(value: Any, out: Description, most: int) -> None:
    if not value:
        return
    base = _container_base(type(value))
    counts: dict[str, int] = {}
    try:
        for item in itertools.islice(_items(value, base), COUNTED):
            kind = type_name(type(item[1] if base is dict else item))
            counts[kind] = counts.get(kind, 0) + 1
    except RuntimeError:
        out.lines.append("(another thread is changing it)")
        return
    common = sorted(counts.items(), key=lambda pair: -pair[1])
    counted = f" (of the first {COUNTED:,})" if len(value) > COUNTED else ""
    kinds = ", ".join(f"{count} {kind}" for kind, count in common[:6]) + (", …" if common[6:] else "")
    out.add(("values" if base is dict else "items") + counted, kinds)
    _add_items(value, base, out, most, numbered=is_one_of(base, (list, tuple, deque)))


def _items(value: Any, base: Any) -> Iterator[Any]:
    """Items past the class's own code; keys with values of a dictionary."""
    return iter(dict.items(value)) if base is dict else iter(base.__iter__(value))


def _add_items(value: Any, base: Any, out: Description, most: int, *, numbered: bool = False) -> None:
    for index, item in enumerate(itertools.islice(_items(value, base), most)):
        if base is dict:
            out.lines.append(f"  {short(item[0])}: {short_or_hidden(item[0], item[1], ITEM)}")
        else:
            out.lines.append(f"  [{index}] {short(item, ITEM)}" if numbered else f"  {short(item, ITEM)}")
    omitted = base.__len__(value) - most
    if omitted > 0:
        out.lines.append(f"  … {omitted} more")


def _module(value: types.ModuleType, out: Description) -> None:
    own = vars(value)
    for name in ("__name__", "__version__", "__file__"):
        text = own.get(name)
        if type(text) is str:
            out.add(name.strip("_"), text)
    _doc(own.get("__doc__"), out)
    out.add("names", _join_names(sorted(name for name in own if type(name) is str and not name.startswith("_"))))


def _function(value: Any, out: Description) -> None:
    function = value.__func__ if type(value) in _WRAPPERS else value
    if type(function) is types.FunctionType:
        code = function.__code__
        out.add("signature", signature(function))
        out.add("defined in", f"{code.co_filename}, line {code.co_firstlineno}")
        out.lines += [f"kind: {word}" for flag, word in _KINDS.items() if code.co_flags & flag]
        _doc(function.__doc__, out)
    elif is_one_of(type(function), _FUNCTIONS):
        text = getattr(function, "__text_signature__", None)
        if type(text) is str:
            out.add("signature", f"{function.__name__}{text.replace('$', '')}")
        _doc(function.__doc__, out)


class _Default:
    """A parameter's default with a text for its ``repr``."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def signature(function: types.FunctionType) -> str:
    """A function's name and parameters. Annotations are left out: since Python 3.14 reading them runs code."""
    code = function.__code__
    defaults = function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
    texts = [_Default(short_or_hidden(name, value, 40)) for name, value in zip(names, defaults, strict=True)]
    bare = types.FunctionType(code, {}, function.__name__, tuple(texts), function.__closure__)
    keyword_only = function.__kwdefaults__ or {}
    bare.__kwdefaults__ = {name: _Default(short_or_hidden(name, value, 40)) for name, value in keyword_only.items()}
    return f"{function.__name__}{inspect.signature(bare)}"


# ---------------------------------------------------------------------- classes and their instances


def _class(value: type, out: Description) -> None:
    name = type_name(value)
    out.add("class", name)
    bases = [type_name(base) for base in mro(value)[1:] if base is not object]
    if bases:
        out.add("bases", ", ".join(bases[:10]))
    init = class_attribute(value, "__init__")
    if type(init) is types.FunctionType:
        _, _, parameters = signature(init).partition("(")
        out.add("made by", f"{name.rpartition('.')[2]}({parameters.removeprefix('self').removeprefix(', ')}")
    _where(value, out)
    _doc(namespace(value).get("__doc__"), out)
    _members(value, out)


def _object(value: Any, out: Description) -> None:
    kind = type(value)
    base = _container_base(kind)
    if base is not None:
        out.add("derived from", base.__name__)
        _add_items(value, base, out, 10)
    if is_one_of(BaseException, mro(kind)):
        out.add("arguments", short(BaseException.__dict__["args"].__get__(value), ITEM))
    stored = {**slots_of(value), **instance_dict(value)}
    attributes = {name: item for name, item in stored.items() if type(name) is str and name[:2] != "__"}
    _where(kind, out)
    _doc(class_attribute(kind, "__doc__"), out)
    if attributes:
        out.lines.append("attributes:")
    for name, item in list(attributes.items())[:ATTRIBUTES]:
        record = {"attribute": name, "type": type_name(type(item)), "value": short_or_hidden(name, item, 120)}
        out.lines.append(f"  {name}: {record['type']} = {record['value']}")
        out.records.append(record)
    if len(attributes) > ATTRIBUTES:
        out.lines.append(f"  … {len(attributes) - ATTRIBUTES} more")
    _members(kind, out)


def _members(cls: type, out: Description) -> None:
    methods: list[str] = []
    computed: list[str] = []
    for base in mro(cls):
        if module_of(base) == "builtins" or len(methods) > NAMES:
            continue
        for name, member in namespace(base).items():
            if name.startswith("_"):
                continue
            if is_one_of(type(member), (types.FunctionType, staticmethod, classmethod)):
                methods.append(name)
            elif type(member) is not types.MemberDescriptorType and is_computed(member):
                computed.append(name)
    for title, names in (("methods", methods), ("properties (not run)", computed)):
        if names:
            out.add(title, _join_names(list(dict.fromkeys(names))))


def _computed(value: Computed) -> Description:
    kind = type(value.what)
    what = "a property" if kind is property else f"computed by a {type_name(kind)}"
    out = Description(type_name(kind), "", [f"{value.name} is {what}; it was not run."])
    getter = value.what.fget if kind is property else None
    if type(getter) is types.FunctionType:
        out.add("defined in", f"{getter.__code__.co_filename}, line {getter.__code__.co_firstlineno}")
        _doc(getter.__doc__, out)
    return out


def _where(cls: type, out: Description) -> None:
    module = module_of(cls)
    if module in ("builtins", ""):
        return
    for member in namespace(cls).values():
        if type(member) is types.FunctionType and type(member.__module__) is str and member.__module__ == module:
            line = namespace(cls).get("__firstlineno__")
            out.add("defined in", member.__code__.co_filename + (f", line {line}" if type(line) is int else ""))
            return
    imported = sys.modules.get(module)
    file = vars(imported).get("__file__") if type(imported) is types.ModuleType else None
    if type(file) is str:
        out.add("defined in", file)


def _doc(text: Any, out: Description) -> None:
    if type(text) is not str or not text.strip():
        return
    lines = inspect.cleandoc(text).splitlines()
    out.lines += ["doc:", *(f"  {line}" for line in lines[:DOC_LINES])]
    if len(lines) > DOC_LINES:
        out.lines.append(f"  … {len(lines) - DOC_LINES} more lines")


def _join_names(names: list[str]) -> str:
    more = f", … {len(names) - NAMES} more" if len(names) > NAMES else ""
    return ", ".join(names[:NAMES]) + more
