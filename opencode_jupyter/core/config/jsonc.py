"""JSON as people write it: comments and trailing commas blanked out, so that every character stays where it was; and
where each entry stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

# A string or comment that is not closed goes on to the end of its line or of the text: so none of it is read twice, and
# the time stays in proportion to the text.
_STRING = r"\"(?:[^\"\\\n]|\\.)*+(?:\"|(?=\n)|\Z|\\)|'(?:[^'\\\n]|\\.)*+(?:'|(?=\n)|\Z|\\)"
_COMMENTS = re.compile(_STRING + r"|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_TOML_COMMENTS = re.compile(
    r'"""(?:[^\\]|\\.)*?(?:"""|\Z)'
    r"|'''.*?(?:'''|\Z)"
    r"|\"(?:[^\"\\\n]|\\.)*+(?:\"|(?=\n)|\Z|\\)|'[^'\n]*+(?:'|(?=\n)|\Z)"
    r"|#[^\n]*",
    re.DOTALL,
)
_COMMAS = re.compile(_STRING + r"|,(?=\s*[}\]])", re.DOTALL)
_TOKENS = re.compile(_STRING + r"|[{}\[\],:]|[^\s{}\[\],:\"']+", re.DOTALL)
_NOT_NEWLINE = re.compile(r"[^\n]")

Keys = tuple[str, ...]


def without_comments(text: str, *, toml: bool = False) -> str:
    """The text with blanks in place of its comments."""
    if toml:
        return _TOML_COMMENTS.sub(_blank_hash, text) if "#" in text else text
    return _COMMENTS.sub(_blank_slash, text) if "/" in text else text


def without_trailing_commas(text: str) -> str:
    """A text without comments, with blanks in place of commas before a closing bracket."""
    return _COMMAS.sub(lambda found: " " if found[0] == "," else found[0], text)


def places(text: str) -> Iterator[tuple[Keys, int]]:
    """Every entry of every object, in order: the keys down to it, and where its own key begins.

    An element of a list counts as an entry whose key is its number. The text may be no JSON at all: then the places
    mean little.
    """
    # Of each bracket that is open: whether it is a list, and the key (or number) of the entry that it is at.
    open_: list[tuple[bool, str]] = []
    last: tuple[str, int] = ("", 0)
    for found in _TOKENS.finditer(text):
        piece = found[0]
        if piece in "{[":
            open_.append((piece == "[", "0"))
        elif piece in "}]":
            if open_:
                open_.pop()
        elif piece == "," and open_:
            is_list, key = open_[-1]
            open_[-1] = (is_list, str(int(key) + 1) if is_list else "")
        elif piece == ":" and open_ and not open_[-1][0]:
            open_[-1] = (False, last[0])
            yield tuple(key for _, key in open_), last[1]
        elif piece not in ",:":
            last = (_bare(piece), found.start())


def _bare(piece: str) -> str:
    if piece[0] == '"':
        try:
            return str(json.loads(piece, strict=False))
        except ValueError:
            return piece[1:-1]
    return piece[1:-1] if piece[0] == "'" else piece


def _blank_slash(found: re.Match[str]) -> str:
    return found[0] if found[0][0] != "/" else _NOT_NEWLINE.sub(" ", found[0])


def _blank_hash(found: re.Match[str]) -> str:
    return found[0] if found[0][0] != "#" else " " * len(found[0])
