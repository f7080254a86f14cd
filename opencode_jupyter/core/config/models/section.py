"""Base classes of the models of a config file."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

Unknown = Literal["wrong", "typos", "free"]
"""What is said of a key that a model does not have: always something, only if it looks like one it has, nothing."""

TAG = "\0"
"""Begins the names of the members of a union, which pydantic puts into an error's place; no key of a file has it."""

Count = Annotated[int, Field(gt=0)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Milliseconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Texts = list[str]


class Section(BaseModel):
    """An object of a config file. Every entry optional: several files add up to one configuration.

    Keys that it does not name are kept. Its validator is built when the first file has such an object.
    """

    model_config = ConfigDict(extra="allow", defer_build=True)
    unknown: ClassVar[Unknown] = "typos"


def doc(description: str, **more: Any) -> Any:
    """An entry that optional, and what it is for."""
    return Field(None, description=description, **more)
