"""How an encoder sees the ways in which people ask for well-known code: a table made once and kept as a file.

The table for the encoder that the extra brings is shipped (``ways.bin``, made by ``bench/make_ways.py``). For another
one it is made in the background at the first search, which takes a minute or two, and kept beside the project's index.

The file: a line with the number of ways, the dimensions of the encoder and those that are kept, and a name that hangs
on the encoder and the ways; then the directions that are kept (half floats), how long each way's vector is in steps
(half floats), and its components, two in a byte, -7 to 7.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import atomic
from .encoder import Encoder
from .products import products

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHIPPED = Path(__file__).with_name("ways.bin")
KEPT = 192
"""Dimensions, at most: nine of the ten nearest ways are the same as with all 384 of the encoder that is shipped for."""
SAMPLE = 10_000
"""Ways that the directions are taken from."""
STEPS = 7
_HEAD = "ways 1"

log = logging.getLogger(__name__)


class Ways:
    """A table of ways of asking.

    Args:
        data: a file's content.

    Raises:
        ValueError: it is cut off, or none.
    """

    def __init__(self, data: bytes) -> None:
        line, _, rest = data.partition(b"\n")
        head = line.decode("ascii", "replace")
        if not head.startswith(_HEAD + " "):
            raise ValueError("this is no table of ways of asking")
        *_, count, full, kept, self.name = head.split(" ")
        self._count, full_size, size = int(count), int(full), int(kept)
        sizes = (2 * full_size * size, 2 * self._count, self._count * ((size + 1) // 2))
        if len(rest) != sum(sizes):
            raise ValueError("the table of ways of asking is cut off")
        self._directions = np.frombuffer(rest, np.float16, full_size * size).astype(np.float32).reshape(full_size, size)
        self._steps = np.frombuffer(rest, np.float16, self._count, sizes[0]).astype(np.float32)
        packed = np.frombuffer(rest, np.uint8, sizes[2], sizes[0] + sizes[1]).reshape(self._count, -1)
        numbers = np.empty((self._count, 2 * packed.shape[1]), np.int8)
        numbers[:, 0::2] = packed >> 4
        numbers[:, 1::2] = packed & 15
        numbers -= STEPS
        self._numbers = numbers[:, :size]

    def near(self, vector: NDArray[Any]) -> NDArray[Any]:
        """For each way, the cosine between it and a text's vector of length 1."""
        direction = vector @ self._directions
        return products(self._numbers, direction) * self._steps


def packed(vectors: NDArray[Any], name: str) -> bytes:
    """The content of a table.

    Args:
        vectors: a row of length 1 for each way.
        name: of the encoder with these ways, see `name_of`.
    """
    size = min(KEPT, vectors.shape[1], len(vectors))
    sample = vectors[:: max(1, len(vectors) // SAMPLE)].astype(np.float32)
    _, kept = np.linalg.eigh(sample.T @ sample)
    directions = kept[:, ::-1][:, :size].astype(np.float16)
    rows = vectors.astype(np.float32) @ directions.astype(np.float32)
    steps = (np.abs(rows).max(1) / STEPS + 1e-6).astype(np.float16)
    numbers = (np.clip(np.rint(rows / steps[:, None].astype(np.float32)), -STEPS, STEPS) + STEPS).astype(np.uint8)
    if size % 2:
        numbers = np.pad(numbers, ((0, 0), (0, 1)))
    pairs = (numbers[:, 0::2] << 4) | numbers[:, 1::2]
    head = f"{_HEAD} {len(vectors)} {vectors.shape[1]} {size} {name}\n"
    data: bytes = head.encode("ascii") + np.ascontiguousarray(directions).tobytes() + steps.tobytes() + pairs.tobytes()
    return data


def name_of(encoder: Encoder, ways: list[str]) -> str:
    """What a table is called: another for each encoder, and after each change of the ways."""
    return f"{encoder.name}-{hashlib.blake2b(chr(10).join(ways).encode(), digest_size=8).hexdigest()}"


def made(encoder: Encoder, ways: list[str], stop: threading.Event | None = None) -> bytes | None:
    """The content of the table, made now; None if `stop` was set before its end."""
    vectors: NDArray[Any] | None = None
    done = 0
    for places, some in encoder.encode_all(ways, stop):
        if vectors is None:
            vectors = np.zeros((len(ways), some.shape[1]), np.float32)
        vectors[places] = some
        done += len(places)
    return packed(vectors, name_of(encoder, ways)) if vectors is not None and done == len(ways) else None


class Learning:
    """The table of an encoder: there at once, or after it was made in the background.

    Args:
        encoder: whose.
        ways: texts.
        folder: where a table that is made is kept.

    Attributes:
        encoder: whose.
        table: None as long as it is not there.
    """

    def __init__(self, encoder: Encoder, ways: list[str], folder: Path) -> None:
        self.encoder = encoder
        self.table: Ways | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        name = name_of(encoder, ways)
        kept = folder / f"ways-{name}.bin"
        for file in (SHIPPED, kept):
            try:
                with file.open("rb") as opened:
                    if opened.readline().rstrip().endswith(name.encode("ascii")):
                        self.table = Ways(file.read_bytes())
                        return
            except (OSError, ValueError):
                continue
        self._thread = threading.Thread(target=self._make, args=(encoder, ways, kept), daemon=True, name="ways")
        self._thread.start()
        atexit.register(self.close)

    def close(self) -> None:
        """Stop making it."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(1)

    def wait(self, seconds: float) -> bool:
        """Wait until it is made; whether it is there."""
        if self._thread is not None:
            self._thread.join(seconds)
        return self.table is not None

    def _make(self, encoder: Encoder, ways: list[str], kept: Path) -> None:
        try:
            data = made(encoder, ways, self._stop)
            if data is not None:
                self.table = Ways(data)
                atomic.write(kept, data)
        except Exception as error:  # what it says has no common type; searches go on without
            log.warning("codesearch goes on without its embedding model: %s", error)
