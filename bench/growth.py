"""Work on long texts grows in proportion to them: ten times the text takes about ten times as long."""

from __future__ import annotations

import gc
from collections.abc import Callable

from opencode_jupyter.core.secrets import Masker
from opencode_jupyter.text.patch import Chunk, Line, apply_chunks

from ._measure import Options, Row, best

LIMIT = 2.0
"""How often ten times the shorter text's time the longer one may take."""


def run(_options: Options) -> list[Row]:
    """The rows of the table."""
    secret = "s3cr3t-0123456789abcdef"
    masker = Masker({f"{n:02}{secret}": f"N{n}" for n in range(20)})
    rows = [_row("a patch of 10,000 chunks", _patch, 1_000)]
    lines = (("plain lines", "an ordinary line of a log, 2026-11-23\n"), ("half secrets", f"a {secret[:10]} b"))
    for name, line in lines:
        rows.append(_row(f"1 MB of {name} searched for secrets", _mask(masker, line), 100_000))
    return rows


def _row(what: str, prepare: Callable[[int], Callable[[], object]], size: int) -> Row:
    gc.collect()
    short, long = best(5, prepare(size), prepare(size * 10))
    ratio = long / (short * 10)
    beside = f"ten times a tenth of it: {short * 10_000:.0f} ms"
    return Row(what, f"{long * 1000:.0f} ms", beside, ratio, f"linear: at most {LIMIT:g}", ratio <= LIMIT)


def _patch(count: int) -> Callable[[], object]:
    text = "".join(f"  head {n}\n    body\n\n" for n in range(count))
    chunks = [Chunk((Line(" ", f"head {n}"), Line("-", "    body"), Line("+", f"    new {n}"))) for n in range(count)]
    return lambda: apply_chunks(text, chunks, "f")


def _mask(masker: Masker, line: str) -> Callable[[int], Callable[[], object]]:
    return lambda size: lambda: masker.text(line * (size // len(line)))
