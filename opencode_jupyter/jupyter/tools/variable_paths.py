"""``df.columns`` or ``d["a"][0]``: the object that such a path names, reached without running code of its own."""

from __future__ import annotations

import ast
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Any

from ...core.errors import ToolError
from ...core.suggestions import did_you_mean
from .type_inspection import (
    Missing,
    class_attribute,
    instance_dict,
    is_computed,
    is_library_type,
    is_one_of,
    module_of,
    mro,
    namespace,
    type_name,
)

FRAMES = {
    ("pandas", "DataFrame"): {"columns", "index", "dtypes", "shape", "size", "ndim"},
    ("pandas", "Series"): {"index", "dtype", "shape", "size", "name", "ndim"},
    ("numpy", "ndarray"): {"T", "dtype", "shape", "size", "ndim", "nbytes", "strides", "itemsize"},
}
"""Computed attributes of known classes: what computes them is the library's, and quick."""
_INDEXED = (list, tuple, str, bytes, bytearray, range, deque)
_KEYED = (dict, OrderedDict, defaultdict)


class Computed:
    """An attribute that code would compute. It is described, not run."""

    def __init__(self, owner: Any, name: str, what: Any) -> None:
        self.owner = owner
        self.name = name
        self.what = what


def resolve(path: str, variables: Mapping[str, Any]) -> Any:
    """The object that a path names; a `Computed` where its last part is one.

    Args:
        path: a variable's name, with ``.attribute`` and ``[index]`` behind it.
        variables: the user's.

    Raises:
        ToolError: there is none, or it could only be reached by running code; says where, and what is near.
    """
    try:
        tree = ast.parse(path.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ToolError(f"{path!r} is no variable or path such as df, model.layers[0] or d['key'].") from None
    return _reach(tree, variables)


def _reach(node: ast.expr, variables: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        value = variables.get(node.id, Missing)
        if value is Missing:
            names = [n for n in variables if type(n) is str and not n.startswith("_")]
            raise ToolError(f"There is no variable {node.id}." + near(node.id, names))
        return value
    if isinstance(node, ast.Attribute):
        return attribute(_inner(node.value, variables), node.attr, ast.unparse(node.value))
    if isinstance(node, ast.Subscript):
        owner = _inner(node.value, variables)
        return item(owner, _key(node.slice, owner, variables), ast.unparse(node.value))
    raise ToolError(
        f"{ast.unparse(node)[:80]!r} would have to be run; inspect takes a variable, with .attribute and [index] "
        "after it. To run code, use the python tool."
    )


def _inner(node: ast.expr, variables: Mapping[str, Any]) -> Any:
    value = _reach(node, variables)
    if type(value) is Computed:  # isinstance would ask the object for its __class__
        raise ToolError(f"{ast.unparse(node)} is computed by code (a property), which inspect does not run.")
    return value


def _key(node: ast.expr, owner: Any, variables: Mapping[str, Any]) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        pass
    if isinstance(node, ast.Name):  # a magic's line takes quotes away: d["a"] comes as d[a]
        if not is_one_of(type(owner), _INDEXED) and node.id not in variables:
            return node.id
        if is_one_of(type(owner), _KEYED) and node.id in dict.keys(owner):
            return node.id
        value = variables.get(node.id, Missing)
        if is_one_of(type(value), (str, int, float, bool, bytes)):
            return value
        return node.id
    raise ToolError(f"[{ast.unparse(node)[:60]}] would have to be run; write the index out, such as [0] or ['key'].")


def attribute(owner: Any, name: str, path: str) -> Any:
    """An object's attribute as it is stored.

    Raises:
        ToolError: it has none of this name.
    """
    kind = type(owner)
    if kind is types.ModuleType:
        value = vars(owner).get(name, Missing)
        if value is not Missing:
            return value
        raise ToolError(f"{path} has nothing named {name}." + near(name, vars(owner)))
    value = _of_library(owner, name)
    if value is not Missing:
        return value
    if any(base is type for base in mro(kind)):
        value = class_attribute(owner, name)
        if value is not Missing:
            return Computed(owner, name, value) if is_computed(value) else value
        raise ToolError(f"{path} has no attribute {name}." + near(name, _names_of(owner)))
    return _of_instance(owner, name, path)


def _of_library(owner: Any, name: str) -> Any:
    for (library, class_name), names in FRAMES.items():
        if name in names and is_library_type(type(owner), library, class_name):
            return getattr(owner, name)
    return _column(owner, name) if is_library_type(type(owner), "pandas", "DataFrame") else Missing


def _of_instance(owner: Any, name: str, path: str) -> Any:
    kind = type(owner)
    of_class, own = class_attribute(kind, name), instance_dict(owner)
    if _is_stored(of_class):
        try:
            return of_class.__get__(owner)
        except AttributeError:
            raise ToolError(f"{path}.{name} is not set.") from None
    if of_class is not Missing and is_computed(of_class) and class_attribute(type(of_class), "__set__") is not Missing:
        return Computed(owner, name, of_class)
    if name in own:
        return own[name]
    if of_class is not Missing:
        return Computed(owner, name, of_class) if is_computed(of_class) else of_class
    more = ""
    if class_attribute(kind, "__getattr__") is not Missing:
        more = f" {type_name(kind)} computes attributes on access (__getattr__), which is not run."
    raise ToolError(f"{path} has no attribute {name}.{more}" + near(name, [*own, *_names_of(kind)]))


def item(owner: Any, key: Any, path: str) -> Any:
    """What an index of a plain container, an array or a frame gives.

    Raises:
        ToolError: it is not there, or looking would run code.
    """
    kind = type(owner)
    try:
        if is_one_of(kind, _INDEXED):
            return owner[key]
        if is_one_of(kind, _KEYED):
            value = dict.get(owner, key, Missing)
            if value is Missing:
                raise ToolError(f"{path} has no key {key!r}." + near(key, dict.keys(owner)))
            return value
        if is_library_type(kind, "numpy", "ndarray"):
            return owner[key]
        if is_library_type(kind, "pandas", "DataFrame"):
            column = _column(owner, key)
            if column is Missing:
                raise ToolError(f"{path} has no column {key!r}." + near(key, owner.columns.tolist()))
            return column
        if is_library_type(kind, "pandas", "Series") and type(key) is int:
            return owner.iloc[key]
    except (IndexError, TypeError, ValueError) as error:
        raise ToolError(f"{path}[{key!r}]: {error}") from None
    raise ToolError(f"{path} is a {type_name(kind)}; to index one, its own code would have to run.")


def near(name: Any, names: Iterable[Any]) -> str:
    """A sentence with the names that look like `name`; empty if none does."""
    if type(name) is not str:
        return ""
    return did_you_mean(name, [candidate for candidate in list(names) if type(candidate) is str])


def _names_of(cls: type) -> list[str]:
    return [name for base in mro(cls) for name in namespace(base) if not name.startswith("_")]


def _is_stored(attribute: Any) -> bool:
    """Whether an attribute of a class is a slot, or a field of one of Python's own C types (``1j.real``)."""
    if type(attribute) is types.MemberDescriptorType:
        return True
    is_field = type(attribute) is types.GetSetDescriptorType
    return is_field and module_of(attribute.__objclass__) in ("builtins", "datetime")


def _column(frame: Any, label: Any) -> Any:
    """A column by its label; compared by Python's own types only, since a label may be any object."""
    for i, name in enumerate(frame.columns.tolist()):
        if type(name) is type(label) and type(name) in (str, int, float, bool) and name == label:
            return frame.iloc[:, i]
    return Missing
