"""``python -m bench [NAME ...]``: run the benchmarks (or those named) and print one table."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

from ._measure import Options, Row

BENCHMARKS = (
    "call",
    "peers",
    "shell",
    "growth",
    "load",
    "search",
    "read",
    "spill",
    "sandbox",
    "viewer",
    "codesearch",
    "tools500",
    "agent",
    "opencode",
    "page",
    "sessions",
)
DOCUMENT = Path(__file__).parents[1] / "docs" / "benchmarks.md"
RATIOS = Path(__file__).with_name("ratios.json")
"""The ratio of each row, by what it measures and beside what, as `--keep` saw it last."""
LOST = 1.25
"""A row whose ratio grew by more than this factor is reported."""


def main() -> int:
    """Run, print, write; the exit status is 1 if a target is missed, a row lost or a benchmark fails."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Each number beside a peer's or a limit's.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which to run: {', '.join(BENCHMARKS)} (all)")
    parser.add_argument("--skip", action="append", default=[], choices=BENCHMARKS, help="leave one out")
    parser.add_argument("--megabytes", type=int, default=1000, help="size of the large file (1000)")
    parser.add_argument("--files", type=int, default=50_000, help="files of the searched tree (50000)")
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.relative_to(DOCUMENT.parents[1])} too")
    parser.add_argument("--keep", action="store_true", help=f"keep the ratios in {RATIOS.name}")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    chosen = [name for name in arguments.names or BENCHMARKS if name not in arguments.skip]
    rows: list[Row] = []
    failed = False
    for name in chosen:
        start = time.monotonic()
        print(f"{name} ...", end=" ", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix=f"bench-{name}-") as folder:
            options = Options(Path(folder), arguments.megabytes, arguments.files)
            try:
                rows += importlib.import_module(f"bench.{name}").run(options)
            except Exception as error:
                failed = True
                print(f"failed: {type(error).__name__}: {error}", file=sys.stderr)
                continue
        print(f"{time.monotonic() - start:.0f} s", file=sys.stderr)
    lines = table(rows)
    print("\n".join(lines))
    if arguments.write and not failed:
        _, head, kept = DOCUMENT.read_text(encoding="utf-8").partition("\n## ")  # what was measured once
        DOCUMENT.write_text(document(lines) + head + kept, encoding="utf-8")
    lost = _compare(rows, keep=arguments.keep and not failed)
    print("\n".join(lost), file=sys.stderr)
    return 1 if failed or lost or any(row.met is False for row in rows) else 0


def _compare(rows: list[Row], *, keep: bool) -> list[str]:
    """A line for each row that lost more than a quarter against the ratios kept; `keep` writes today's."""
    before: dict[str, float] = json.loads(RATIOS.read_text(encoding="utf-8")) if RATIOS.exists() else {}
    now = {f"{row.what} / {row.peer.partition(':')[0]}": round(row.ratio, 3) for row in rows if row.ratio is not None}
    if keep:
        RATIOS.write_text(json.dumps(before | now, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return [
        f"slower than kept: {what}: {ratio:g} instead of {before[what]:g}"
        for what, ratio in now.items()
        if ratio > LOST * before.get(what, ratio)
    ]


def table(rows: list[Row]) -> list[str]:
    """The rows as a Markdown table, in columns for a terminal."""
    head = ("what", "ours", "beside", "ratio", "target", "met")
    cells = [
        (
            row.what,
            row.ours,
            row.peer.replace("|", "\\|"),
            "" if row.ratio is None else f"{row.ratio:.2f}",
            row.target,
            {True: "yes", False: "NO", None: ""}[row.met],
        )
        for row in rows
    ]
    widths = [max(len(line[i]) for line in [head, *cells]) for i in range(len(head))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |" for line in [head, *cells]]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    return lines


def document(lines: list[str]) -> str:
    """The page of the docs."""
    load = f"; load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    machine = (
        f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}{load}"
    )
    return (
        "# Benchmarks\n\n"
        "Made by `make bench ARGS=--write`. Every row is held against a peer or a limit of the machine,\n"
        "measured in the same run; a ratio is ours divided by theirs (for speeds the other way round),\n"
        "so less is better.\n\n"
        f"Measured on {machine}.\n\n" + "\n".join(lines) + "\n"
    )


if __name__ == "__main__":
    sys.exit(main())
