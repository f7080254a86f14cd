"""Magics are awaited exactly where an ``await`` may stand."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.jupyter.magics import input_transformers


async def do_execute(source: str) -> str:
    """Stands for ipykernel's function of this name, which the transformer looks for on the stack."""
    return "".join(input_transformers.await_magics(source.splitlines(keepends=True)))


def transform(source: str) -> str:
    try:
        do_execute(source).send(None)
    except StopIteration as stop:
        return str(stop.value)
    raise AssertionError("not reached")


CALL = "get_ipython().run_line_magic('tool', 'read a.txt')"
AWAITED = "await get_ipython().run_line_magic('tool_awaited', 'read a.txt')"


@pytest.mark.parametrize(
    ("template", "awaited"),
    [
        ("{}\n", True),
        ("r = {}\n", True),
        ("for i in range(3):\n    r = {}\n", True),
        ("if True:\n    try:\n        {}\n    finally:\n        pass\n", True),
        ("with open('x') as f:\n    {}\n", True),
        ("async def f():\n    return {}\n", True),
        ("def f():\n    r = {}\n", False),
        ("f = lambda: {}\n", False),
        ("class A:\n    x = {}\n", False),
        ("class A:\n    async def f(self):\n        {}\n", True),
        ("def f():\n    async def g():\n        {}\n", True),
        ("async def f():\n    def g():\n        {}\n", False),
    ],
)
def test_where(template: str, awaited: bool) -> None:
    after = transform(template.format(CALL))
    assert after == template.format(AWAITED if awaited else CALL)


def test_cell_magic_and_bytes_before_it() -> None:
    source = "é = 'ü'; r = get_ipython().run_cell_magic('tool', 'write a', 'body\\n')\n"
    assert transform(source) == (
        "é = 'ü'; r = await get_ipython().run_cell_magic('tool_awaited', 'write a', 'body\\n')\n"
    )


def test_two_on_one_line_and_a_string_that_looks_like_one() -> None:
    source = f"{CALL}; {CALL}; x = \"get_ipython().run_line_magic('tool', 'x')\"\n"
    assert transform(source) == f"{AWAITED}; {AWAITED}; x = \"get_ipython().run_line_magic('tool', 'x')\"\n"


@pytest.mark.parametrize("name", ["tools", "time", "permissions"])
def test_other_magics_stay(name: str) -> None:
    source = f"get_ipython().run_line_magic('{name}', '')\n"
    assert transform(source) == source


def test_code_with_an_error_stays() -> None:
    source = f"{CALL}\nfor for\n"
    assert transform(source) == source


def test_inside_another_magic_nothing_is_awaited() -> None:
    def run_cell_magic() -> str:
        return "".join(input_transformers.await_magics([CALL + "\n"]))

    async def do_execute() -> str:
        return run_cell_magic()

    with pytest.raises(StopIteration) as stop:
        do_execute().send(None)
    assert stop.value.value == CALL + "\n"


def test_without_a_kernel_nothing_is_awaited() -> None:
    assert input_transformers.await_magics([CALL + "\n"]) == [CALL + "\n"]


@given(st.text(max_size=60), st.integers(0, 3))
def test_any_argument_survives(text: str, indent: int) -> None:
    call = f"get_ipython().run_line_magic('tool', {text!r})"
    source = "".join("    " * i + "if 1:\n" for i in range(indent)) + "    " * indent + f"r = {call}\n"
    after = transform(source)
    tree = compile(after, "x", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Await)]
    assert len(calls) == 1
    value = calls[0].value
    assert isinstance(value, ast.Call) and isinstance(value.args[1], ast.Constant)
    assert value.args[1].value == text


@pytest.mark.parametrize("odd", ["\x0c", "\u2028", "\x85", "\x1c", "\x0b", "é", "\r\n"])
def test_lines_are_counted_as_python_counts_them(odd: str) -> None:
    source = f"x = '''a{odd}b'''\nr = get_ipython().run_line_magic('tool', 'read a')\ny = 2\n"
    assert transform(source) == source.replace("get_ipython", "await get_ipython").replace("'tool'", "'tool_awaited'")


def test_a_call_that_is_awaited_already_gets_no_second_await() -> None:
    source = "r = await get_ipython().run_line_magic('tool', 'read a')\n"
    assert transform(source) == "r = await get_ipython().run_line_magic('tool_awaited', 'read a')\n"
