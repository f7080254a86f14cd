"""codesearch with a sentence encoder: the extra's own, another one, none, and broken ones."""

from __future__ import annotations

import json
import logging
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from opencode_jupyter.tools.codeindex import encoder as encoders
from opencode_jupyter.tools.codeindex import hints, ways
from opencode_jupyter.tools.codeindex.encoder import VARIABLE, Encoder, encoder
from opencode_jupyter.tools.codeindex.question import question
from opencode_jupyter.tools.codeindex.ways import Learning, Ways, made, name_of, packed

SAID = ["how alike two strings are", "string similarity", "banana bread", "read a file", "open and load a document"]


@pytest.fixture(scope="module")
def installed() -> Encoder:
    """The one that the extra brings."""
    found = encoder()
    assert found is not None
    return found


@pytest.fixture
def folder(tmp_path: Path, installed: Encoder) -> Path:
    """An encoder as they are published: the same model in a folder, with its tokenizer in a file of its own."""
    files = encoders._installed()
    assert files is not None
    made_of = tmp_path / "published"
    (made_of / "onnx").mkdir(parents=True)
    shutil.copy(files[0], made_of / "onnx" / "model.onnx")
    installed._tokenizer.save(str(made_of / "tokenizer.json"))
    return made_of


def chosen(monkeypatch: pytest.MonkeyPatch, value: str) -> Encoder | None:
    """The encoder that a process would take with the variable set so."""
    monkeypatch.setenv(VARIABLE, value)
    return encoder.__wrapped__()


def test_it_tells_what_is_meant(installed: Encoder) -> None:
    vectors = np.stack([installed.encode(text) for text in SAID])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    near = vectors @ vectors.T
    assert near[0, 1] > near[0, 2] + 0.3
    assert near[3, 4] > near[3, 2] + 0.3


@pytest.mark.parametrize("text", ["", " ", "\ud800", "\0", "x" * 100_000, "wort " * 5000, "日本語", "[MASK] [CLS]"])
def test_any_text_has_a_vector(installed: Encoder, text: str) -> None:
    assert np.isfinite(installed.encode(text)).all()


def test_many_at_once_are_as_each_alone(installed: Encoder) -> None:
    found = {place: row for places, rows in installed.encode_all(SAID) for place, row in zip(places, rows, strict=True)}
    for place, text in enumerate(SAID):
        # weights of a byte: what is beside a text in a batch moves it a little
        assert found[place] @ installed.encode(text) > 0.98


def test_the_shipped_table_is_of_these_ways_and_this_encoder(installed: Encoder) -> None:
    """If this fails, `techniques.txt` was changed: ``python -m bench.make_ways`` makes the table again."""
    head = ways.SHIPPED.read_bytes().split(b"\n", 1)[0].decode()
    assert head.endswith(name_of(installed, hints.ways_of_asking()))


def test_the_shipped_table_says_what_the_encoder_says(installed: Encoder) -> None:
    texts = hints.ways_of_asking()
    near = Ways(ways.SHIPPED.read_bytes()).near(installed.encode("a word with the fewest letters changed"))
    some = list(range(0, len(texts), 997))
    asked = installed.encode("a word with the fewest letters changed")
    exact = [float(installed.encode(texts[place]) @ asked) for place in some]
    assert np.corrcoef(near[some], exact)[0, 1] > 0.95


@pytest.mark.parametrize(("count", "full"), [(3, 384), (500, 64), (1000, 33), (1, 5)])
def test_a_table_keeps_how_near_things_are(count: int, full: int) -> None:
    rows = np.random.default_rng(count).normal(size=(count, full))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    data = packed(rows, "some-name")
    table = Ways(data)
    assert table.name == "some-name"
    assert np.abs(table.near(rows[0]) - rows @ rows[0]).max() < 0.12
    assert table.near(rows[0]).argmax() == 0
    for cut in (data[:-1], data + b"x", data[: len(data) // 2]):
        with pytest.raises(ValueError, match="cut off"):
            Ways(cut)
    with pytest.raises(ValueError, match="no table"):
        Ways(b"something else\n" + data)


def test_another_one_learns_in_the_background(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: Encoder
) -> None:
    other = chosen(monkeypatch, str(folder))
    assert other is not None
    assert other.name != installed.name
    assert other.encode(SAID[0]) @ installed.encode(SAID[0]) == pytest.approx(1, abs=1e-4)
    kept = tmp_path / "data" / "code-index"
    learning = Learning(other, SAID, kept)
    assert learning.wait(30)
    assert learning.table is not None
    assert learning.table.near(other.encode("baking a cake")).argmax() == 2
    assert [file.name for file in kept.iterdir()] == [f"ways-{name_of(other, SAID)}.bin"]
    again = Learning(other, SAID, kept)
    assert again.table is not None, "it is not made a second time"
    next(kept.iterdir()).write_bytes(next(kept.iterdir()).read_bytes()[:-1])
    assert Learning(other, SAID, kept).wait(30), "a table that is cut off is made anew"


def test_learning_can_be_stopped(installed: Encoder, tmp_path: Path) -> None:
    learning = Learning(installed, [f"the way number {i}" for i in range(50_000)], tmp_path)
    assert learning.table is None
    begun = time.monotonic()
    learning.close()
    assert time.monotonic() - begun < 2
    assert learning._thread is not None
    learning._thread.join(5)
    assert not learning._thread.is_alive()
    assert list(tmp_path.iterdir()) == []


def test_the_first_token_counts_where_its_publisher_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mean = chosen(monkeypatch, str(folder))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    first = chosen(monkeypatch, str(folder))
    assert mean is not None
    assert first is not None
    assert mean.name != first.name
    assert first.encode(SAID[0]) @ mean.encode(SAID[0]) < 0.99


def test_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(monkeypatch, "off") is None
    assert chosen(monkeypatch, " OFF ") is None


def test_what_is_no_encoder_is_told(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    assert chosen(monkeypatch, str(tmp_path / "nowhere")) is None
    assert "does not hold model.onnx and tokenizer.json" in caplog.text
    (folder / "onnx" / "model.onnx").write_bytes(b"not a model")
    assert chosen(monkeypatch, str(folder)) is None
    assert caplog.text.count("goes on without an embedding model") == 2


def test_a_model_that_was_tampered_with_is_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(encoders, "_DIGEST", "0" * 64)
    assert chosen(monkeypatch, "") is None
    assert "is not the file that is known" in caplog.text


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("how well a binary classifier separates the two classes across all cutoffs", {"auc"}),
        ("write numbers in ancient Latin numerals", {"roman"}),
        ("test whether a location lies inside a zone outline", {"point", "polygon"}),
    ],
)
def test_questions_are_understood_by_it(tmp_path: Path, query: str, name: set[str]) -> None:
    learning = hints.learn(tmp_path)
    assert learning is not None
    assert learning.table is not None
    assert any(name <= words for hint in question(query).hints for words in hint.names)


def test_made_by_hand_as_in_the_background(installed: Encoder, tmp_path: Path) -> None:
    learning = Learning(installed, SAID, tmp_path)
    assert learning.wait(30)
    assert made(installed, SAID) == next(tmp_path.iterdir()).read_bytes()
