"""Rows of an evaluation in a file, one a line, kept as soon as they are there: the next run goes on from them."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from ...core.errors import ToolError

VERSION = 1


class Journal:
    """A file of rows.

    A line that a crash cut off is left out when it is read, and the next row begins a new line.

    Raises:
        ToolError: the file can't be read, or is none of an evaluation.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).expanduser().absolute()
        self.rows: dict[str, dict[str, Any]] = {}
        self._torn = False
        try:
            data = self.path.read_bytes() if self.path.exists() else b""
        except OSError as error:
            raise ToolError(f"the evaluation's file can't be read: {error}") from error
        self._new = not data
        self._torn = bool(data) and not data.endswith(b"\n")
        lines = data.split(b"\n")
        for number, line in enumerate(lines, 1):
            with contextlib.suppress(ValueError):
                row = json.loads(line)
                if number == 1 and not (isinstance(row, dict) and row.get("evaluation") == VERSION):
                    raise ToolError(
                        f"{self.path} is not a file of an evaluation (of this release); choose another path="
                    )
                if isinstance(row, dict) and isinstance(row.get("key"), str):
                    self.rows[row["key"]] = row
                continue
            if number == 1 and line:
                raise ToolError(f"{self.path} is not a file of an evaluation; choose another path=")

    def add(self, row: dict[str, Any]) -> None:
        """Keep a row: it is on the disk when this returns.

        Raises:
            ToolError: it can't be written.
        """
        lines = [json.dumps({"evaluation": VERSION})] if self._new else [""] if self._torn else []
        lines.append(json.dumps(row, default=str, ensure_ascii=False))
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                file.write(("\n".join(lines) + "\n").encode("utf-8", "surrogatepass"))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise ToolError(f"the evaluation's row can't be kept in {self.path}: {error}") from error
        self._new = self._torn = False
        self.rows[row["key"]] = row
