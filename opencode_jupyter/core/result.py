"""A tool's result: title, output, metadata, attachments, and rows where the result is a table."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

from .errors import InvalidResultError

if TYPE_CHECKING:
    import pandas

Rows = list[dict[str, Any]]

TABLES = "tables"
"""Metadata key of the tables that a card draws; ``CardTable`` of ``labextension/src/card/types.ts`` describes them."""
RESULT_KEYS = frozenset({"title", "output", "metadata", "attachments"})
"""The keys of a result that is given as a dict."""
PRINTED = "printed"
"""Metadata key of the output that a person reads, where tables and pictures show all the rest of it."""


@dataclass(slots=True)
class Attachment:
    """A file that belongs to a result (an image, a PDF).

    The three ids are filled in by the call pipeline, whatever the tool set (docs/opencode/core.md 1.1).
    """

    mime: str
    url: str
    """Usually a ``data:`` URL; models are sent nothing else."""
    filename: str | None = None
    id: str = ""
    session_id: str = ""
    message_id: str = ""
    extra: dict[str, Any] | None = None
    """Keys that another release wrote and that have no field here."""

    @classmethod
    def from_bytes(cls, data: bytes, mime: str, filename: str | None = None) -> Attachment:
        """An attachment that carries `data` in a base64 ``data:`` URL."""
        return cls(mime, f"data:{mime};base64,{base64.b64encode(data).decode()}", filename)

    @property
    def data(self) -> bytes:
        """The bytes of a ``data:`` URL.

        Raises:
            ValueError: `url` is not a base64 ``data:`` URL.
        """
        head, _, body = self.url.partition(",")
        if not head.startswith("data:") or not head.endswith(";base64"):
            raise ValueError(f"not a base64 data URL: {self.url[:40]}")
        return base64.b64decode(body)

    def to_wire(self) -> dict[str, Any]:
        """OpenCode's file part."""
        part: dict[str, Any] = {
            "id": self.id,
            "sessionID": self.session_id,
            "messageID": self.message_id,
            "type": "file",
            "mime": self.mime,
            "url": self.url,
        }
        if self.filename is not None:
            part["filename"] = self.filename
        return {**self.extra, **part} if self.extra else part


class _Records:
    """The field `ToolResult.records`: those of a value are made when first read, since a frame may be large."""

    @overload
    def __get__(self, result: None, kind: type[ToolResult]) -> None: ...

    @overload
    def __get__(self, result: ToolResult, kind: type[ToolResult]) -> Rows | None: ...

    def __get__(self, result: ToolResult | None, kind: type[ToolResult]) -> Rows | None:
        if result is None:
            return None  # the field's default
        rows: Rows | None = result.__dict__["_records"]
        if rows is None and result.value is not None:
            from .value_tables import rows_of

            rows = result.__dict__["_records"] = rows_of(result.value)
        return rows

    def __set__(self, result: ToolResult, rows: Rows | None) -> None:
        result.__dict__["_records"] = rows


@dataclass
class ToolResult:
    """The outcome of a completed call.

    Attributes:
        title: one line for people.
        output: the text a model reads; cut to the limits of `core.truncation` by the pipeline.
        metadata: open dict; ``truncated`` (bool) and ``outputPath`` (whole output's file) are reserved.
        attachments: files that belong to it.
        records: rows, for tools whose result is a table (glob, grep, todo, lsp, batch) or whose `value` is one.
        value: the object that the tool returned (a data frame, a figure, a dict). It is neither stored nor sent to a
            model; `core.result_values` makes the other fields of it.
    """

    title: str = ""
    output: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    attachments: list[Attachment] = field(default_factory=list)
    records: _Records = _Records()
    value: Any = field(default=None, repr=False, compare=False)

    def without_value(self) -> ToolResult:
        """A copy without the value, which may be large: the form that a session keeps."""
        if self.value is None:
            return self
        return ToolResult(self.title, self.output, self.metadata, self.attachments, self.__dict__["_records"])

    @property
    def output_path(self) -> str | None:
        """The file that holds the whole output, if it was cut."""
        return self.metadata.get("outputPath")

    @property
    def truncated(self) -> bool:
        """True if `output` is less than the whole."""
        return bool(self.metadata.get("truncated"))

    @property
    def df(self) -> pandas.DataFrame:
        """The frame that the tool returned, or a data frame made of `records`.

        Raises:
            ImportError: pandas is not installed.
            ValueError: this result is not a table.
        """
        if self.value is not None:
            from .value_tables import frame_of

            frame: pandas.DataFrame | None = frame_of(self.value)
            if frame is not None:
                return frame
        if self.records is None:
            raise ValueError("this result is not a table; its text is in .output")
        return data_frame(self.records, "result.df", "result.records")

    def __str__(self) -> str:
        return self.output


def data_frame(records: Sequence[Any], name: str, instead: str, **options: Any) -> pandas.DataFrame:
    """Rows as a data frame.

    Args:
        records: the rows.
        name: what a user wrote to have it.
        instead: what gives the rows without pandas.
        options: of `pandas.DataFrame`.

    Raises:
        ImportError: pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(f"{name} needs pandas: pip install pandas (rows without it: {instead})") from error
    return pd.DataFrame(records, **options)


def attachments_of(values: Iterable[Any] | None) -> list[Attachment]:
    """Attachments from what a tool returned: `Attachment` objects or OpenCode's file-part dicts.

    Raises:
        InvalidResultError: an item is neither.
    """
    out: list[Attachment] = []
    for value in values or ():
        if isinstance(value, Attachment):
            out.append(value)
        elif isinstance(value, dict) and "mime" in value and "url" in value:
            out.append(Attachment(str(value["mime"]), str(value["url"]), value.get("filename")))
        else:
            kind = type(value).__name__
            raise InvalidResultError(f"an attachment must be an Attachment or a dict with mime and url, not {kind}")
    return out
