"""Attributes of types, read without running code of metaclasses or properties."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable
from typing import Any

_MRO = type.__dict__["__mro__"]
_DICT = type.__dict__["__dict__"]
_QUALNAME = type.__dict__["__qualname__"]
_MODULE = type.__dict__["__module__"]

Missing = object()
"""Stands for a missing attribute."""


def is_one_of(kind: type, types_: Iterable[object]) -> bool:
    """Whether a type is one of these. ``in`` would ask its metaclass, which may compare and hash as it likes."""
    return any(kind is member for member in types_)


def mro(cls: type) -> tuple[type, ...]:
    """The classes of a class, in order."""
    classes: tuple[type, ...] = _MRO.__get__(cls)
    return classes


def namespace(cls: type) -> types.MappingProxyType[str, Any]:
    """A class's own ``__dict__``."""
    members: types.MappingProxyType[str, Any] = _DICT.__get__(cls)
    return members


def module_of(cls: type) -> str:
    """The module a class says it is from; empty if it says nothing usable."""
    try:
        module = _MODULE.__get__(cls)
    except AttributeError:
        return ""
    return module if type(module) is str else ""


def type_name(cls: type) -> str:
    """``module.Class``; builtins and the notebook's own classes without a module."""
    name = _QUALNAME.__get__(cls)
    module = module_of(cls)
    return name if module in ("", "builtins", "__main__") else f"{module}.{name}"


def is_library_type(cls: type, library: str, name: str) -> bool:
    """Whether this is exactly the class ``library.name``. A library that is not imported is left so."""
    module = sys.modules.get(library)
    return type(module) is types.ModuleType and vars(module).get(name, Missing) is cls


def class_attribute(cls: type, name: str) -> Any:
    """An attribute of a class or one of its bases as it stands there, or `Missing`."""
    for base in mro(cls):
        attribute = namespace(base).get(name, Missing)
        if attribute is not Missing:
            return attribute
    return Missing


def instance_dict(value: Any) -> dict[str, Any]:
    """An object's own attributes; empty if it has none, or a class of it makes them up."""
    for base in mro(type(value)):
        descriptor = namespace(base).get("__dict__", Missing)
        if descriptor is Missing:
            continue
        if type(descriptor) is types.GetSetDescriptorType:
            own = descriptor.__get__(value)
            return own if type(own) is dict else {}
        return {}
    return {}


def slots_of(value: Any) -> dict[str, Any]:
    """The values of an object's slots that are set."""
    out: dict[str, Any] = {}
    for base in mro(type(value)):
        for name, member in namespace(base).items():
            if type(member) is types.MemberDescriptorType and module_of(base) != "builtins":
                try:
                    out.setdefault(name, member.__get__(value))
                except AttributeError:
                    continue
    return out


def is_computed(attribute: Any) -> bool:
    """Whether an attribute of a class is one that code computes (a property, another descriptor)."""
    plain = (types.FunctionType, classmethod, staticmethod, types.BuiltinFunctionType, types.MethodDescriptorType)
    kind = type(attribute)
    if is_one_of(kind, (*plain, types.WrapperDescriptorType, types.ClassMethodDescriptorType)):
        return False
    return class_attribute(kind, "__get__") is not Missing
