"""What a docstring says of the parameters, and that it reaches a tool's schema."""

from __future__ import annotations

import functools
import inspect
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from opencode_jupyter import ToolContext, tool
from opencode_jupyter.core.function_tool import parameter_texts

GOOGLE = """Do it.

More words: with a colon.

Args:
    city: Where, as
        a name.
    days (int, optional): How many: at most 9.

    *rest: The others.

Returns:
    city: not a parameter.
"""
NUMPY = """Do it.

Parameters
----------
city : str
    Where, as
    a name.
days : int, optional
    How many: at most 9.
a, b : float
    Both.

Returns
-------
str
    A text.
"""
SPHINX = """Do it.

:param city: Where, as
    a name.
:param int days: How many: at most 9.
:type days: int
:return: something
"""


@pytest.mark.parametrize(
    ("doc", "more"), [(GOOGLE, {"rest": "The others."}), (NUMPY, {"a": "Both.", "b": "Both."}), (SPHINX, {})]
)
def test_the_three_styles(doc: str, more: dict[str, str]) -> None:
    expected = {"city": "Where, as a name.", "days": "How many: at most 9.", **more}
    assert parameter_texts(inspect.cleandoc(doc)) == expected


@pytest.mark.parametrize(
    "doc",
    [
        "",
        "One line.",
        "Args are many: see below.",
        "Args:",
        "Args:\nnot indented: no entry",
        "Parameters\n----------",
        "Parameters\n----------\nname : str",
        "Note:\n    city: of no section",
        "Args:\n    just words",
    ],
)
def test_docstrings_that_say_nothing(doc: str) -> None:
    assert parameter_texts(doc) == {}


@given(st.text(alphabet="ab:( )-\n\t*Args,Parmt", max_size=200))
def test_any_text_is_read(doc: str) -> None:
    for name, text in parameter_texts(doc).items():
        assert name.isidentifier() or name.isalnum()
        assert text.strip()


def test_it_reaches_the_schema_unless_the_annotation_says_more() -> None:
    @tool
    def weather(
        city: str,
        days: Annotated[int, "of the annotation"] = 1,
        unit: str = Field("c", description="of the default"),
        ctx: ToolContext | None = None,
    ) -> str:
        """The weather.

        Args:
            city: where it is
            days: of the docstring
            unit: of the docstring
            ctx: the context
        """
        return ""

    assert weather.static is not None
    properties = weather.static.parameters["properties"]
    texts = {name: node["description"] for name, node in properties.items()}
    assert texts == {"city": "where it is", "days": "of the annotation", "unit": "of the default"}


def test_of_partials_and_objects() -> None:
    def scale(factor: int, value: int) -> str:
        """Scale.

        Args:
            factor: by what
            value: what
        """
        return str(factor * value)

    class Scale:
        """Scale."""

        def __call__(self, value: int) -> str:
            """Scale one.

            :param value: what
            """
            return str(value)

    for defined in (tool("half")(functools.partial(scale, 2)), tool(Scale)):
        assert defined.static is not None
        assert defined.static.parameters["properties"]["value"]["description"] == "what"


def test_a_text_that_no_parser_expects_gives_nothing() -> None:
    assert parameter_texts("Note: y\nExample::\n    :\n    \n::\n    :\n**kw: z:") == {}
