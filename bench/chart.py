"""A bar for each kept ratio: ``python -m bench.chart`` writes docs/pictures/benchmarks.svg."""

from __future__ import annotations

import json
from pathlib import Path

from .__main__ import RATIOS

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "benchmarks.svg"


def main() -> None:
    """Draw the ratios on a logarithmic scale: left of the line ours takes less, right of it more."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    ratios = {what: ratio for what, ratio in json.loads(RATIOS.read_text(encoding="utf-8")).items() if ratio > 0}
    with mpl.rc_context({"font.size": 8, "svg.hashsalt": "benchmarks", "axes.spines.top": False}):
        figure, axes = plt.subplots(figsize=(9, 0.24 * len(ratios) + 0.8), layout="constrained")
        bars = axes.barh(list(ratios), list(ratios.values()), color="#2f7de1")
        axes.bar_label(bars, fmt="%.2g", padding=2)
        axes.set(xscale="log", xlabel="ours divided by the other (less is better)")
        axes.axvline(1, color="black", linewidth=1)
        axes.invert_yaxis()
        figure.savefig(PICTURE, metadata={"Date": None})
    print(PICTURE)


if __name__ == "__main__":
    main()
