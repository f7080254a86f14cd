"""Makes ``opencode_jupyter/tools/codeindex/meanings.bin``: where a term points, for codesearch. Not a benchmark.

Usage: ``python -m bench.make_meanings MODEL FOLDER ...``. MODEL is the folder of all-MiniLM-L6-v2 (see `_minilm`), the
others hold Python sources. Needs numpy and scipy; ten minutes on two cores.

Every term begins with the model's vector of its most usual form, brought to fewer dimensions (principal components) and
weighted by how rare it is. Then the terms learn from the functions that have a docstring: the sum of the vectors of a
summary's words must point to the sum of those of its own function's name, signature and code, and away from those of
1023 other functions (InfoNCE). Words that summary and name share are left out most of the time, and the name often, so
that it has to learn what else code for such a thing is made of. They learn in the same way from `techniques.txt`: a way
of asking must point to the names and the code of what it describes, and to the other ways of asking for it. A term has
two vectors, one as said and one as used.

The file: dimensions, a line with the terms, then the vectors as said and as used, one byte for each component.
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from opencode_jupyter.tools.codeindex.extract import BODY_TERMS, pieces
from opencode_jupyter.tools.codeindex.terms import STOP, distinct, parts, terms
from opencode_jupyter.tools.codeindex.vocabulary import techniques

from ._minilm import Model

TABLE = Path(__file__).parents[1] / "opencode_jupyter" / "tools" / "codeindex" / "meanings.bin"
DIMENSIONS, EPOCHS, BATCH = 192, 3, 1024
LARGEST = 500_000
"""Bytes of a file that is read."""
HEADS, CODES = 8, 40
"""Times that a word the model does not know must be in names or summaries, or in code."""
TEMPERATURE, RATE, PULL = 0.07, 2e-3, 2e-3
"""Of the softmax; of learning; back to where a term began."""
NAME_DROPPED, SHARED_DROPPED, SAID_DROPPED, USED_DROPPED = 0.4, 0.6, 0.2, 0.1
TIMES, AS_ASKED = 4, 0.3
"""How often a way of asking is learnt from in an epoch, and how often of that from another way of asking."""
USED = 0.6
"""What a term counts that is used, beside one that is said."""


@dataclass(frozen=True, slots=True)
class Function:
    """The different terms of a function's name, of its summary, and of its signature and code."""

    name: list[str]
    summary: list[str]
    code: list[str]


def read(folders: list[Path]) -> tuple[list[Function], dict[str, Counter[str]]]:
    """All different functions and classes below some folders, and for each term the forms it has in summaries."""
    functions, seen = [], set()
    forms: dict[str, Counter[str]] = defaultdict(Counter)
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        data = path.read_bytes()
        for piece in pieces(path.name, data) if len(data) <= LARGEST else []:
            key = hash((piece.symbol, piece.doc, piece.body))
            if piece.kind not in ("function", "method", "class") or key in seen:
                continue
            seen.add(key)
            summary = piece.doc.partition("\n\n")[0][:600]
            for word in re.findall(r"[A-Za-z][a-z]+", summary):
                if len(found := parts(word.lower())) == 1:
                    forms[found[0]][word.lower()] += 1
            name = [term for term in parts(piece.symbol.rpartition(".")[2]) if term not in STOP]
            used = f"{distinct(piece.signature, 40)} {distinct(piece.body[:8000], BODY_TERMS)}".split()
            functions.append(Function(name, list(dict.fromkeys(terms(summary).split())), list(dict.fromkeys(used))))
    return functions, forms


def described() -> list[Function]:
    """The ways of asking of `techniques.txt`, as summaries of what they describe."""
    chance = random.Random(1)
    out = []
    for names, code, ways in techniques():
        called = [one for name in names if (one := _terms(name))]
        asked = [one for way in ways if (one := _terms(way))]
        for way in asked * TIMES:
            said = way if chance.random() < 0.7 else list(dict.fromkeys(way + chance.choice(asked)))
            others = [one for one in asked if one is not way]
            if others and chance.random() < AS_ASKED:
                out.append(Function(chance.choice(others), said, []))
            else:
                more = chance.choice(called) if chance.random() < 0.5 else []
                name = chance.choice(called[:4] + called)  # the first names are the usual ones
                out.append(Function(name, said, list(dict.fromkeys(_terms(code) + more))))
    return out


def _terms(said: list[str]) -> list[str]:
    return list(dict.fromkeys(term for word in said for term in parts(word) if term not in STOP))


class Learner:
    """The vectors of terms, and how they learn.

    Attributes:
        said: the vectors of terms as they are said.
        used: those of terms as code uses them.
    """

    def __init__(self, model: Model, functions: list[Function], forms: dict[str, Counter[str]]) -> None:
        heads = Counter(term for one in functions for term in {*one.name, *one.summary})
        codes = Counter(term for one in functions for term in {*one.name, *one.code})
        for word in model.numbers:
            if re.fullmatch("[a-z]{3,}", word) and len(found := parts(word)) == 1 and not forms[found[0]]:
                forms[found[0]][word] = 0
        known = {
            term for term, found in forms.items() if heads[term] >= HEADS or not model.numbers.keys().isdisjoint(found)
        }
        known |= {term for term, count in codes.items() if count >= CODES}
        self.terms = sorted(t for t in known - STOP if t.isascii() and t.isalpha() and 2 <= len(t) <= 24)
        self._places = {term: place for place, term in enumerate(self.terms)}
        usual = [forms[term].most_common(1)[0][0] if forms.get(term) else term for term in self.terms]
        vectors = model.vectors(usual)
        often = np.array([heads[term] for term in self.terms], np.float32)
        inside = np.array([codes[term] for term in self.terms], np.float32)
        vectors -= (vectors * (often[:, None] + 1)).sum(0) / (often + 1).sum()
        spread = (vectors * np.minimum(often, 50)[:, None]).T @ vectors
        vectors = vectors @ np.linalg.eigh(spread)[1][:, ::-1][:, :DIMENSIONS]
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-6

        def rarity(counts: Any) -> Any:
            found = np.log(1 + len(functions) / (counts + 30))
            return (found / found.max())[:, None]

        self.said = (vectors * rarity(often)).astype(np.float32)
        self.used = (vectors * rarity(inside) * 0.35).astype(np.float32)
        self._random = np.random.default_rng(0)

    def _matrix(self, lists: list[list[str]]) -> Any:
        found = [[self._places[term] for term in one if term in self._places] for one in lists]
        ends = np.cumsum([0, *map(len, found)])
        flat = np.fromiter((place for one in found for place in one), np.int32, ends[-1])
        return sp.csr_matrix((np.ones(len(flat), np.float32), flat, ends), (len(lists), len(self.terms)))

    def learn(self, functions: list[Function]) -> None:
        """Learn from functions that have a summary."""
        told = [one for one in functions if len(one.summary) >= 2]
        summaries, names, codes = (
            self._matrix(lists) for lists in zip(*((o.summary, o.name, o.code) for o in told), strict=True)
        )
        began = self.said.copy(), self.used.copy()
        first = [np.zeros_like(self.said), np.zeros_like(self.said)]  # Adam's two moments
        second = [np.zeros_like(self.said), np.zeros_like(self.said)]
        step = 0
        for _ in range(EPOCHS):
            order = self._random.permutation(len(told))
            for at in range(0, len(order) - BATCH, BATCH):
                batch = order[at : at + BATCH]
                slopes = self._slopes(summaries[batch].copy(), names[batch].copy(), codes[batch].copy())
                step += 1
                for i, slope in enumerate(slopes):
                    vectors = (self.said, self.used)[i]
                    first[i] += 0.1 * (slope - first[i])
                    second[i] += 0.01 * (slope * slope - second[i])
                    size = np.sqrt(second[i] / (1 - 0.99**step)) + 1e-6
                    vectors[:] -= RATE * first[i] / (1 - 0.9**step) / size + PULL * (vectors - began[i])

    def _slopes(self, summary: Any, name: Any, code: Any) -> tuple[Any, Any]:
        """How the loss of one batch rises with the vectors as said and as used."""
        chance = self._random.random
        rows = np.repeat(np.arange(BATCH), np.diff(summary.indptr))
        shared = np.asarray(name.astype(bool)[rows, summary.indices]).ravel()
        summary.data *= chance(len(rows)) > np.where(shared, SHARED_DROPPED, SAID_DROPPED)
        name.data *= np.repeat(chance(BATCH) >= NAME_DROPPED, np.diff(name.indptr))
        code.data *= chance(len(code.data)) > USED_DROPPED
        asked, there = summary @ self.said, name @ self.said + code @ self.used
        asked_size = np.linalg.norm(asked, axis=1, keepdims=True) + 1e-6
        there_size = np.linalg.norm(there, axis=1, keepdims=True) + 1e-6
        asked, there = asked / asked_size, there / there_size
        nearness = asked @ there.T / TEMPERATURE
        wrong = sum(_softmax(nearness, axis) for axis in (0, 1)) / 2
        wrong[np.arange(BATCH), np.arange(BATCH)] -= 1
        wrong /= TEMPERATURE * BATCH
        up, down = wrong @ there, wrong.T @ asked
        up = (up - asked * (up * asked).sum(1, keepdims=True)) / asked_size
        down = (down - there * (down * there).sum(1, keepdims=True)) / there_size
        return summary.T @ up + name.T @ down, code.T @ down

    def write(self) -> None:
        """Write the table."""
        used = self.used * USED
        scale = 127 / np.percentile(np.abs(np.concatenate([self.said, used])), 99.95)
        parts = [np.clip(np.rint(one * scale), -127, 127).astype(np.int8).tobytes() for one in (self.said, used)]
        TABLE.write_bytes(f"{DIMENSIONS}\n{' '.join(self.terms)}\n".encode("ascii") + b"".join(parts))


def _softmax(values: Any, axis: int) -> Any:
    found = np.exp(values - values.max(axis, keepdims=True))
    return found / found.sum(axis, keepdims=True)


def main() -> None:
    """Write the table."""
    functions, forms = read([Path(folder) for folder in sys.argv[2:]])
    asked = described()
    for names, _, ways in techniques():
        for word in (word for said in (*names, *ways) for word in said):
            if len(found := parts(word)) == 1:
                forms[found[0]][word] += 1
    learner = Learner(Model(Path(sys.argv[1])), functions + asked, forms)
    learner.learn(functions + asked)
    learner.write()


if __name__ == "__main__":
    main()
