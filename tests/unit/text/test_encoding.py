"""Nothing of a file is lost between reading and writing it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.core.errors import ToolError
from opencode_jupyter.text.encoding import decode, encode, printable, to_newline


@given(st.binary(max_size=60) | st.sampled_from([b"\xef\xbb\xbf", b"\xef\xbb\xbfa", b"\xef\xbb\xbf\xff"]))
def test_any_bytes_come_back(data: bytes) -> None:
    text = decode(data)
    assert encode(text.text, bom=text.bom) == data
    text.shown.encode("utf-8")


def test_byte_order_mark() -> None:
    text = decode(b"\xef\xbb\xbfa")
    assert (text.text, text.bom, text.exact) == ("a", True, True)
    assert encode("\ufeffa", bom=True) == b"\xef\xbb\xbfa"


def test_other_encodings_are_kept_not_guessed() -> None:
    text = decode("café\n".encode("latin-1"))
    assert not text.exact
    assert text.shown == "caf\ufffd\n"
    assert encode(text.text.replace("caf", "Caf")) == b"Caf\xe9\n"


def test_half_a_character_is_refused() -> None:
    with pytest.raises(ToolError, match=r"character 1 is U\+D83D"):
        encode("a\ud83d")
    assert printable("a\ud83d") == "a\ufffd"


@pytest.mark.parametrize(("data", "newline"), [(b"a\nb", "\n"), (b"a\r\nb\n", "\r\n"), (b"", "\n"), (b"a\rb", "\n")])
def test_newline(data: bytes, newline: str) -> None:
    assert decode(data).newline == newline


def test_to_newline() -> None:
    assert to_newline("a\nb\r\nc\r", "\r\n") == "a\r\nb\r\nc\r"
    assert to_newline("a\nb\r\nc\r", "\n") == "a\nb\nc\r"
