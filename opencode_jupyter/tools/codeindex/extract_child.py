"""A child of `build_child`: takes files apart. Reads batches from stdin, answers each on stdout; ends when stdin ends.

A batch is ``(root, [(path, digest), ...])`` and its answer a list of `update.Update`, both marshalled behind their
length as 8 bytes.
"""

from __future__ import annotations

import gc
import importlib
import marshal
import sys
from pathlib import Path
from typing import Any, BinaryIO


def load(name: str) -> Any:
    """A module of this folder, without the package around it (whose imports take longer than the work)."""
    tools = str(Path(__file__).resolve().parents[1])
    if tools not in sys.path:
        sys.path.append(tools)  # last, so that a module beside us named as one of the standard library hides nothing
    return importlib.import_module(f"{Path(__file__).resolve().parent.name}.{name}")


def send(sink: BinaryIO, message: Any) -> None:
    """Write a message."""
    data = marshal.dumps(message)
    sink.write(len(data).to_bytes(8, "little") + data)
    sink.flush()


def receive(source: BinaryIO) -> Any:
    """Read a message; None at the end."""
    head = source.read(8)
    if len(head) < 8:
        return None
    data = source.read(int.from_bytes(head, "little"))
    return marshal.loads(data)  # noqa: S302 - from our own parent or child


def main() -> None:
    """Answer until there is nothing more."""
    look = load("update").look
    gc.disable()  # nothing made here has cycles
    while (batch := receive(sys.stdin.buffer)) is not None:
        root, wanted = batch
        send(sys.stdout.buffer, [look(root, path, digest) for path, digest in wanted])


if __name__ == "__main__":
    main()
