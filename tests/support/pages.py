"""A browser's page as the kernel hears it: the protocol of open notebooks, spoken by what stands for JupyterLab."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import nbformat


class Page:
    """A page with one notebook open in it.

    Args:
        name: the page's id.
        file: the notebook that is open; None if none is.
        root: the server's root as the page says it.

    Attributes:
        cells: what the document holds.
        told: overrides for what `find` tells of the document.
        jobs: what it took, in order.
        error: what it answers to a change instead of making it.
        deaf: operations that it takes and never answers.
    """

    def __init__(self, name: str, file: Path | None, root: Path | str) -> None:
        self.name = name
        self.file = file
        self.root = str(root)
        self.cells: list[dict[str, Any]] = []
        if file is not None and file.exists():
            self.cells = [dict(cell) for cell in nbformat.read(file, as_version=4).cells]
        self.dirty = False
        self.told: dict[str, Any] = {}
        self.jobs: list[dict[str, Any]] = []
        self.error: str | None = None
        self.deaf: set[str] = set()

    def word(self, step: str, id: str, answer: Any = None) -> dict[str, Any]:
        """A message of this page."""
        return {"kind": "notebook", "step": step, "id": id, "page": self.name, **({"answer": answer} if answer else {})}

    def perform(self, job: dict[str, Any]) -> dict[str, Any] | None:
        """Do a job; None where it stays silent."""
        self.jobs.append(copy.deepcopy(job))
        if job["op"] in self.deaf:
            return None
        if job["op"] == "find":
            return {"documents": [self._info()] if self.file is not None else []}
        if self.file is None:
            return {"error": "closed"}
        if job["op"] == "change":
            error = self.error or self._change(job["change"])
            if error:
                return {"error": error}
            self.dirty = True
        head = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}}
        return {"head": head, "cells": copy.deepcopy(self.cells), "dirty": self.dirty}

    def _info(self) -> dict[str, Any]:
        assert self.file is not None
        path = self.file.as_posix()
        root = Path(self.root).expanduser().as_posix()
        info = {"page": self.name, "document": "1", "path": path.removeprefix(root).lstrip("/"), "root": self.root}
        return {**info, "own": False, "dirty": self.dirty, "shared": False, "text": False, **self.told}

    def _change(self, change: dict[str, Any]) -> str | None:
        ids = [cell["id"] for cell in self.cells]
        operation = change["operation"]
        at = ids.index(change["id"]) if change["id"] in ids else None
        if operation != "insert":
            if at is None:
                return "gone"
            expect = change.get("expect")
            if expect and (self.cells[at]["source"], self.cells[at]["cell_type"]) != (expect["source"], expect["type"]):
                return "changed"
        cell = self.cells[at] if at is not None else {"id": change["id"], "metadata": {}, "outputs": []}
        if "source" in change:
            cell = {**cell, "source": change["source"], "cell_type": change["type"]}
        if operation == "replace" and at is not None:
            self.cells[at] = cell
            return None
        rest = [other for index, other in enumerate(self.cells) if index != at]
        if operation != "delete":
            after = change["after"]
            where = [other["id"] for other in rest]
            if after is not None and after not in where:
                return "neighbour"
            rest.insert(where.index(after) + 1 if after is not None else 0, cell)
        self.cells = rest
        return None
