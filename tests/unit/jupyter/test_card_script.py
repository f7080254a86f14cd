"""The card's script travels small and whole."""

from __future__ import annotations

import base64
import re
import zlib

from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.jupyter.cards.widget import ESM, pack_script


@given(st.text(min_size=1))
def test_what_is_packed_is_the_script(script: str) -> None:
    data = re.search(r"atob\('([A-Za-z0-9+/=]+)'\)", pack_script(script))
    assert data is not None
    assert zlib.decompress(base64.b64decode(data.group(1)), -zlib.MAX_WBITS).decode() == script


def test_another_script_is_not_taken_for_the_one_a_page_has() -> None:
    keys = {re.search(r"Symbol\.for\('(.*?)'\)", pack_script(script)).group(1) for script in ("a", "b")}  # type: ignore[union-attr]
    assert len(keys) == 2


def test_it_saves_more_than_half() -> None:
    script = ESM.read_text("utf-8")
    assert len(pack_script(script)) < len(script) / 1.9
