"""Describing variables: what is said of them, and that none of their own code is run for it."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import enum
import sys
import types
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.core.errors import ToolError
from opencode_jupyter.jupyter.tools.describe import describe, signature
from opencode_jupyter.jupyter.tools.short_values import DEPTH, is_secret, short
from opencode_jupyter.jupyter.tools.variable_paths import resolve

RAN: list[str] = []


class LoudMeta(type):
    """A metaclass whose every hook tells of itself."""

    def __repr__(cls) -> str:
        RAN.append("meta repr")
        return ""

    def __getattribute__(cls, name: str) -> Any:
        RAN.append(f"meta {name}")
        return type.__getattribute__(cls, name)

    def __instancecheck__(cls, instance: Any) -> bool:
        RAN.append("meta instancecheck")
        return True

    def __subclasscheck__(cls, instance: Any) -> bool:
        RAN.append("meta subclasscheck")
        return True

    def __eq__(cls, instance: object) -> bool:
        RAN.append("meta eq")
        return False

    def __hash__(cls) -> int:
        RAN.append("meta hash")
        return 1


class Loud:
    """It tells of everything that is called."""

    def __init__(self) -> None:
        object.__setattr__(self, "stored", [1, 2])
        object.__setattr__(self, "API_KEY", "sk-123")

    def __getattribute__(self, name: str) -> Any:
        RAN.append(f"getattribute {name}")
        return object.__getattribute__(self, name)

    def __getattr__(self, name: str) -> Any:
        RAN.append(f"getattr {name}")
        raise AttributeError(name)

    @property
    def computed(self) -> int:
        """What it would be."""
        RAN.append("property")
        return 1

    def method(self, a: int, *, b: Any = None) -> None:
        """It does."""

    def _tell(self, *_: Any) -> Any:
        RAN.append("special")
        return NotImplemented

    __repr__ = __str__ = __len__ = __iter__ = __getitem__ = __contains__ = __bool__ = __hash__ = __eq__ = _tell  # type: ignore[assignment]
    __format__ = __dir__ = __sizeof__ = __reduce__ = _tell  # type: ignore[assignment]


class LoudList(list[Any]):
    """A list that is no plain list."""

    def __iter__(self) -> Any:
        RAN.append("iter")
        return iter(())

    def __len__(self) -> int:
        RAN.append("len")
        return 99

    def __repr__(self) -> str:
        RAN.append("repr")
        return ""


class Slotted:
    """Slots."""

    __slots__ = ("empty", "full")


class Colour(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Point:
    x: int
    name: str = "p"


def description_of(value: Any, **options: Any) -> str:
    """A value's whole description."""
    description = describe(value, **options)
    return "\n".join([f"{description.type} ({description.size})", *description.lines])


@pytest.fixture(autouse=True)
def _quiet() -> None:
    RAN.clear()


def loud_things() -> dict[str, Any]:
    frame = pd.DataFrame({"a": [1, 2]})
    objects = np.empty(2, dtype=object)
    frame["o"] = pd.Series([None, None], dtype=object)
    loud = Loud()
    objects[0] = loud = Loud()  # numpy looks for __array__ on it, once
    values = {
        "object": loud,
        "class": Loud,
        "meta": LoudMeta("Made", (), {"x": 1}),
        "of meta": LoudMeta("Made", (), {})(),
        "list": LoudList([1, 2, 3]),
        "in a list": [loud],
        "in a dict": {"k": loud, 1: {2: loud}},
        "in a tuple": ((loud,),),
        "array": objects,
        "method": object.__getattribute__(loud, "method"),
        "partial": types.SimpleNamespace(a=loud),
        "function": lambda x=loud: x,
        "error": ValueError(loud),
    }
    RAN.clear()
    return values


@pytest.mark.parametrize("name", list(loud_things()))
def test_nothing_of_theirs_runs(name: str) -> None:
    value = loud_things()[name]
    text = description_of(value)
    short(value)
    assert RAN == []
    assert text
    assert "sk-123" not in text


def test_an_object_by_what_it_stores() -> None:
    text = description_of(Loud())
    assert "stored: list = [1, 2]" in text
    assert "API_KEY: str = (hidden" in text
    assert "properties (not run): computed" in text
    assert "methods: method" in text
    assert "It tells of everything" in text
    assert "(2)\nderived from: list\n  7\n  8\n" in description_of(LoudList([7, 8]))
    slotted = Slotted()
    slotted.full = 3
    assert "full: int = 3" in description_of(slotted)
    assert "empty" not in description_of(slotted)
    assert "_value_: int = 1" in description_of(Colour.RED)
    assert "name: str = 'p'" in description_of(Point(1))
    assert "arguments: ('why',)" in description_of(ValueError("why"))


def test_python_s_own_types() -> None:
    assert description_of(None) == "NoneType ()\nvalue: None"
    assert description_of(3.5).endswith("value: 3.5")
    assert description_of("two\nlines") == "str (9)\nlines: 2\nvalue:\ntwo\nlines"
    assert description_of({"a": 1, "b": "x"}).splitlines() == [
        "dict (2)",
        "values: 1 int, 1 str",
        "  'a': 1",
        "  'b': 'x'",
    ]
    assert description_of([1, "a"]).splitlines() == ["list (2)", "items: 1 int, 1 str", "  [0] 1", "  [1] 'a'"]
    assert "bits" in description_of(10**10_000)
    assert "Counter" in description_of(collections.Counter("aab"))
    moment = datetime.datetime(2020, 1, 2, tzinfo=datetime.timezone.utc)  # noqa: UP017
    assert description_of(moment).endswith("tzinfo=datetime.timezone.utc)")
    assert "version" in description_of(np) and "file" in description_of(np)
    assert "async function" in description_of(_coroutine)
    assert len(description_of("x" * 10**7)) < 5000
    assert len(description_of(list(range(10**6)))) < 1000
    assert len(description_of(dict.fromkeys(range(1000), "y" * 10000))) < 10_000


async def _coroutine() -> None:
    """It awaits."""


def test_signatures() -> None:
    def f(a, /, b, c=1, *args, d, e="x", password="hunter2", **more): ...  # type: ignore[no-untyped-def]

    assert signature(f) == "f(a, /, b, c=1, *args, d, e='x', password=(hidden: its name looks like a secret's), **more)"
    assert signature(lambda *, k: k) == "<lambda>(*, k)"
    assert "made by: Point(x, name='p')" in description_of(Point)
    assert "signature: len(" in description_of(len)


def test_arrays_and_frames() -> None:
    array = np.arange(12.0).reshape(3, 4)
    assert "shape: (3, 4)\ndtype: float64\nmemory: 96 B" in description_of(array)
    assert "  4.0  5.0  6.0   7.0" in description_of(array)
    assert "first values: 0, 1, 2" in description_of(np.arange(10**6))
    assert "value: 3.0" in description_of(np.float64(3))
    description_of(np.zeros(3, dtype=[("a", int), ("b", object)]))
    frame = pd.DataFrame({"n": [1, 2, 3], "s": ["a", None, "c"], "password": ["p1", "p2", "p3"]})
    description = describe(frame, rows=2)
    text = "\n".join(description.lines)
    assert description.size == "3 × 3"
    assert description.records[0] == {"column": "n", "dtype": "int64"}
    assert "  n: int64" in text
    assert "first 2 rows:" in text
    assert "p1" not in text
    assert "RangeIndex of 3, int64" in text
    assert "… 200 more" in description_of(pd.DataFrame(np.zeros((2, 300))))
    assert "0 rows × 0 columns" in description_of(pd.DataFrame())
    assert "name: n" in description_of(frame["n"])
    assert "MultiIndex of 2" in description_of(pd.MultiIndex.from_product([[1], ["a", "b"]]))
    for odd in (pd.Categorical(["a"]), pd.NaT, pd.NA, pd.Timestamp("2020"), pd.array([1, None])):
        assert description_of(odd)
        assert short(odd)


def test_large_containers_are_looked_at_in_part() -> None:
    many = list(range(200_000))
    for value, label in ((many, "items"), (dict.fromkeys(many, 0), "values"), (set(many), "items")):
        text = description_of(value)
        assert f"{label} (of the first 10,000): 10000 int" in text
        assert "… 199990 more" in text
    assert "items: 3 int" in description_of([1, 2, 3])


def test_pandas_own_words() -> None:
    assert "value: 2020-01-02 00:00:00" in description_of(pd.Timestamp("2020-01-02"))
    assert "value: NaT" in description_of(pd.NaT)
    assert "value: <NA>" in description_of(pd.NA)


def test_a_large_frame_is_not_copied() -> None:
    import tracemalloc

    frame = pd.DataFrame(np.zeros((1_000_000, 20)))
    tracemalloc.start()
    try:
        text = description_of(frame)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "153 MB" in text
    assert peak < 2_000_000


def test_classes_that_only_look_like_a_library_s() -> None:
    class Fake:
        shape = property(lambda self: RAN.append("shape"))

    Fake.__module__, Fake.__qualname__, Fake.__name__ = "pandas", "DataFrame", "DataFrame"
    description_of(Fake())
    assert RAN == []


def test_an_object_of_another_library_is_named_and_nothing_of_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tensor:
        @property
        def shape(self) -> tuple[int, ...]:
            RAN.append("shape")
            return (2, 3)

        def tolist(self) -> list[float]:
            RAN.append("tolist")
            return [1.5]

    torch = types.ModuleType("torch")
    Tensor.__module__, Tensor.__qualname__ = "torch", "Tensor"
    torch.Tensor = Tensor  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    text = description_of(Tensor())
    assert text.startswith("torch.Tensor")
    assert "methods: tolist" in text and "properties (not run): shape" in text
    assert RAN == []


VARIABLES: dict[str, Any] = {
    "df": pd.DataFrame({"price": [1.0], "b": [2]}),
    "d": {"a": [10, 20], 3: "three"},
    "np": np,
    "loud": Loud(),
    "Loud": Loud,
    "slotted": Slotted(),
    "arr": np.arange(6).reshape(2, 3),
    "point": Point(4),
    "i": 1,
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("d['a'][0]", 10),
        ("d[a][1]", 20),
        ("d['a'][i]", 20),
        ("d['a'][-1]", 20),
        ("d[3]", "three"),
        ("point.x", 4),
        ("arr[1, 2]", 5),
        ("arr.shape", (2, 3)),
        ("loud.stored[1]", 2),
        ("i.real", 1),
        ("df.shape", (1, 2)),
        (" d [ 'a' ] ", [10, 20]),
    ],
)
def test_paths(path: str, value: Any) -> None:
    assert resolve(path, VARIABLES) == value
    assert RAN == []


def test_paths_into_frames() -> None:
    for path in ("df.price", "df['price']", "df[price]"):
        assert resolve(path, VARIABLES).tolist() == [1.0]
    assert "computed is a property; it was not run" in description_of(resolve("loud.computed", VARIABLES))
    assert "What it would be." in description_of(resolve("Loud.computed", VARIABLES))
    assert "method(self, a, *, b=None)" in description_of(resolve("loud.method", VARIABLES))
    assert RAN == []


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("dff", "Did you mean df?"),
        ("d['b']", "has no key 'b'"),
        ("d['a'][9]", "index out of range"),
        ("df.prise", "has no attribute prise"),
        ("df['prise']", "Did you mean price?"),
        ("np.arrange", "Did you mean arange"),
        ("loud.nothing", "__getattr__"),
        ("loud[0]", "its own code would have to run"),
        ("loud.computed.x", "computed by code"),
        ("slotted.empty", "is not set"),
        ("f(1)", "would have to be run"),
        ("d[loud]", "has no key 'loud'"),
        ("d[len(d)]", "would have to be run"),
        ("a b", "no variable or path"),
        ("", "no variable or path"),
        ("d.__class__.__mro__[0]", ""),
        ("(" * 5000, "no variable or path"),
    ],
)
def test_paths_that_lead_nowhere(path: str, message: str) -> None:
    with pytest.raises(ToolError) as refused:
        resolve(path, VARIABLES)
    assert message in str(refused.value)
    assert RAN == []


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "apikey", "GITHUB_TOKEN", "db_password", "my_secret", "AWS_KEYS", "pwd", b"X_TOKEN"]
)
def test_secrets(name: Any) -> None:
    assert is_secret(name, "x")
    assert "hunter" not in short({name: "hunter2"})
    assert "hunter" not in description_of({name: "hunter2"})
    if type(name) is str:
        assert "hunter" not in description_of("hunter2", name=name)


@pytest.mark.parametrize("name", ["key", "keys", "monkey", "tokenizer", "keyboard", 3])
def test_no_secrets(name: Any) -> None:
    assert not is_secret(name, "x")
    assert not is_secret("API_KEY", ["not", "a", "text"])
    assert not is_secret("max_tokens", 4096)


nested = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.complex_numbers(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner, inner),
    max_leaves=50,
)


@given(nested, st.integers(20, 200))
def test_short_values_stay_short(value: Any, room: int) -> None:
    assert len(short(value, room)) <= room
    assert description_of(value)


@given(st.text() | st.integers() | st.floats(allow_nan=False) | st.lists(st.integers(), max_size=5))
def test_small_values_are_python_s_own_words(value: Any) -> None:
    if len(repr(value)) <= 60:
        assert short(value) == repr(value)


def test_cycles_and_depth() -> None:
    ring: list[Any] = [1]
    ring.append(ring)
    assert short(ring) == "[1, list of 2]"
    deep: Any = "end"
    for _ in range(100_000):
        deep = [deep]
    assert short(deep).count("[") == DEPTH
    description_of(deep)
    looped: dict[str, Any] = {}
    looped["self"] = looped
    assert "self" in description_of(looped)
