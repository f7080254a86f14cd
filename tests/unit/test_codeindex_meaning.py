"""Finding code that no word of a question stands in: by descriptions of well-known code, and by where words point."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from opencode_jupyter.tools.codeindex import recall
from opencode_jupyter.tools.codeindex.meaning import MOST_SAID, MOST_USED, Meanings, meanings
from opencode_jupyter.tools.codeindex.question import question
from opencode_jupyter.tools.codeindex.ranking import ranked
from opencode_jupyter.tools.codeindex.store import Store
from opencode_jupyter.tools.codeindex.update import look

PLANTED = """
def luhn_ok(number):
    digits = [int(d) for d in str(number)][::-1]
    return (sum(digits[0::2]) + sum(sum(divmod(2 * d, 10)) for d in digits[1::2])) % 10 == 0

def notify(host, to, subject, text):
    msg = EmailMessage()
    msg["To"], msg["Subject"] = to, subject
    msg.set_content(text)
    with smtplib.SMTP(host) as s:
        s.send_message(msg)

def hav(lat1, lon1, lat2, lon2):
    p1, p2 = math.radians(lat1), math.radians(lat2)
    a = math.sin((p2 - p1) / 2) ** 2 + math.cos(p1) * math.cos(p2) * math.sin(math.radians(lon2 - lon1) / 2) ** 2
    return 6371 * 2 * math.asin(math.sqrt(a))

def by_photo(img, box):
    w, h = img.size
    return img.resize((w // box, h // box))
"""


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[tuple[Path, Store]]:
    """A folder of dull functions with the planted ones among them, and its index."""
    folder = tmp_path / "tree"
    folder.mkdir()
    for i in range(40):
        dull = (f"def handle_order_{i}_{j}(order):\n    return order.total + {j}\n\n\n" for j in range(5))
        (folder / f"m{i}.py").write_text("".join(dull))
    (folder / "planted.py").write_text(PLANTED)
    store = Store(tmp_path / "index.db")
    _take_in(store, folder)
    yield folder, store
    store.close()


def _take_in(store: Store, folder: Path) -> None:
    store.begin()
    for path in sorted(folder.glob("*.py")):
        store.put(*look(str(folder), path.name))
    store.commit()


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("is this a valid credit card number", "luhn_ok"),
        ("tell the administrator by electronic mail", "notify"),
        ("how far apart two towns are on the globe", "hav"),
        ("make a picture smaller", "by_photo"),
    ],
)
def test_found_without_a_word_in_common(tree: tuple[Path, Store], query: str, wanted: str) -> None:
    assert wanted in [hit.symbol for hit in ranked(tree[1], query, 3)]


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("does a phrase read the same backwards", "palindrom"),
        ("wait longer after each failed attempt", "retri"),
        ("how far a portfolio sank from its best level", "draw"),
    ],
)
def test_a_question_knows_what_it_describes(query: str, name: str) -> None:
    described = question(query).hints
    assert any(name in words for hint in described[:2] for words in hint.names), described
    assert all(0 < hint.worth <= 1.2 for hint in described)


def _sum(table: Meanings, said: list[str], used: list[str]) -> list[int]:
    """The sum of some vectors, read from the table byte by byte."""
    data = (Path(recall.__file__).with_name("meanings.bin")).read_bytes()
    _, names, numbers = data.split(b"\n", 2)
    terms = names.decode().split()
    total = [0] * table.size
    for term, half in [*((one, 0) for one in said), *((one, 1) for one in used)]:
        at = (half * len(terms) + terms.index(term)) * table.size
        for i, number in enumerate(numbers[at : at + table.size]):
            total[i] += number - 256 if number > 127 else number
    return total


def test_a_sum_of_long_integers_is_the_sum_of_the_vectors() -> None:
    table = meanings()
    said, used = ["password", "send", "mail"], ["smtp", "file", "open", "name"]
    total = _sum(table, said, used)
    shift = max(0, max(map(abs, total)).bit_length() - 7)
    vector = np.frombuffer(table.vector([*said, "nosuchtermanywhere"], used), np.int8)
    assert vector.tolist() == [one >> shift for one in total]
    assert table.vector(["nosuchtermanywhere"], []) == bytes(table.size)
    assert table.direction([("nosuchtermanywhere", 1.0)]) is None


def test_no_sum_overflows() -> None:
    """As many terms as are taken, all pointing the same way as far as they can."""
    for number in (127, -127):
        table = Meanings(b"64\naa\n" + number.to_bytes(1, "big", signed=True) * 128)
        vector = np.frombuffer(table.vector(["aa"] * 1000, ["aa"] * 1000), np.int8)
        assert set(vector.tolist()) == {number * (MOST_SAID + MOST_USED) >> 8}


def test_how_near_pieces_are_is_the_cosine_of_their_vectors(tree: tuple[Path, Store]) -> None:
    store = tree[1]
    direction = question("send an email").direction
    assert direction is not None
    store.recall.follow(store.connection)
    rows = store.connection.execute("SELECT id, symbol FROM pieces WHERE kind = 'function'").fetchall()
    numbers = [number for number, _ in rows]
    found = store.recall.nearness(direction, [*numbers, 10**9])
    assert sorted(found) == sorted(numbers)
    vectors = {}
    for first, blob in store.connection.execute("SELECT first, vectors FROM meanings"):
        matrix = np.frombuffer(blob, np.int8).reshape(-1, meanings().size).astype(float)
        vectors |= {first + i: row for i, row in enumerate(matrix)}
    for number in numbers[::20]:
        cosine = vectors[number] @ direction / np.linalg.norm(vectors[number])
        assert found[number] == pytest.approx(cosine, abs=1e-4)


def test_a_table_cut_off_is_told() -> None:
    with pytest.raises(ValueError, match="cut off"):
        Meanings(b"64\naa bb\n" + bytes(100))


@pytest.mark.parametrize("popcount", [True, False])
def test_the_nearest_are_found_in_every_numpy(
    tree: tuple[Path, Store], monkeypatch: pytest.MonkeyPatch, popcount: bool
) -> None:
    if popcount and not hasattr(np, "bitwise_count"):
        pytest.skip("numpy 1 counts no bits")
    monkeypatch.setattr(recall, "HAS_POPCOUNT", popcount)
    folder, store = tree
    direction = question("send an email").direction
    assert direction is not None

    def nearest() -> set[str]:
        store.recall.follow(store.connection)
        found = store.recall.nearest(direction, 5)
        assert len(found) == 5
        marks = ",".join("?" * len(found))
        return {row[0] for row in store.connection.execute(f"SELECT symbol FROM pieces WHERE id IN ({marks})", found)}

    assert "notify" in nearest()
    (folder / "planted.py").write_text("def post_letter(smtp, mail):\n    smtp.sendmail(mail)\n")
    _take_in(store, folder)
    assert "post_letter" in nearest()
    store.begin()
    store.forget(["planted.py"])
    store.commit()
    assert "post_letter" not in nearest()
    assert store.connection.execute("SELECT count(*) FROM meanings").fetchone()[0] == 40


def test_what_differs_in_numbers_alone_comes_last(tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    for i in range(30):
        (folder / f"copy{i}.py").write_text(
            f'def load_table_{i}(path):\n    """Load table {i} from disk."""\n    pass\n'
        )
    (folder / "other.py").write_text('def fetch(place):\n    """Get rows kept elsewhere."""\n    return place\n')
    store = Store(tmp_path / "index.db")
    _take_in(store, folder)
    found = [hit.symbol for hit in ranked(store, "load the rows of a table", 5)]
    assert "fetch" in found[:4]
    assert len({name for name in found if name.startswith("load_table")}) >= 2
    store.close()
