"""Find the text an edit means and replace it: nine strategies, exact first (docs/opencode/tools.md 6.5).

A match that is not exact must resemble what it was asked to replace: a block found by its first and last
line alone is taken only if what lies between them is similar, and no match may be much larger than
`old` (OpenCode 1.18; earlier releases replaced whatever stood between the two lines).
`new` goes in as it is; JavaScript's dollar sequences mean nothing here.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property

from ..core.errors import ToolError
from .closest_text import describe_nearest, line_numbers

WHITE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""What JavaScript's ``trim`` and ``\\s`` take for white space."""
BLOCK_SIMILARITY = 0.65
"""Mean similarity of the inner lines of a block found by its anchors."""
CONTEXT_SHARE = 0.5
"""Share of equal inner lines of a block found by its context."""

MAX_LENGTH = 20_000
"""Longer differing parts are taken for wholly different: about 0.2 s at this length."""

_RUN = re.compile(f"[{WHITE}]+")
_ESCAPE = re.compile(r"""\\([ntr'"`\\\n$])""")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}


class SameTextError(ToolError):
    """The new text is the old one."""

    def __init__(self) -> None:
        super().__init__(
            "No changes to apply: oldString and newString are identical.",
            for_person="Nothing to change: oldString and newString are the same text.",
        )


class NoMatchError(ToolError):
    """`old` is not in the text, not even nearly."""

    def __init__(self, content: str = "", old: str = "") -> None:
        nearest = describe_nearest(content, old)
        super().__init__(
            "Could not find oldString in the file. It must match exactly, including whitespace, indentation, "
            "and line endings.",
            for_person="The text to replace (oldString) is not in the file. "
            + (nearest or "No line is like it.")
            + " Copy it from the file and run the call again.",
        )


class AmbiguousMatchError(ToolError):
    """`old` is there more than once."""

    def __init__(self, content: str = "", candidate: str = "") -> None:
        lines = line_numbers(content, candidate)
        super().__init__(
            "Found multiple matches for oldString. Provide more surrounding context to make the match unique.",
            for_person="The text to replace (oldString) is in the file more than once"
            + (f" (lines {lines})" if lines else "")
            + ". Add the lines around the one you mean, or set replaceAll to true to replace all.",
        )


class DisproportionateMatchError(ToolError):
    """The nearest match is much larger than `old`."""

    def __init__(self, content: str = "", candidate: str = "") -> None:
        line = line_numbers(content, candidate, 1).rstrip(", …")
        size = candidate.count("\n") + 1
        super().__init__(
            "Refusing replacement because the matched span is much larger than oldString. Re-read the file and "
            "provide the full exact oldString for the intended replacement.",
            for_person="Nothing was replaced: what is most like oldString"
            + (f" ({size} lines from line {line})" if line else "")
            + " is much larger than it. Give the whole text to replace as oldString.",
        )


def replace(content: str, old: str, new: str, replace_all: bool = False) -> str:
    """`content` with `old` replaced by `new`, once, or everywhere with `replace_all`.

    Raises:
        ToolError: `old` and `new` are equal, or `old` is empty.
        NoMatchError: nothing matches.
        AmbiguousMatchError: something matches, but never in one place only.
        DisproportionateMatchError: what nearly matches is much larger than `old`.
    """
    if old == new:
        raise SameTextError
    if not old:
        raise ToolError("oldString must not be empty. Provide the text to replace.")
    ambiguous = ""
    tried: set[str] = set()
    text = SearchedText(content)
    for strategy in STRATEGIES:
        for candidate in strategy(text, old):
            if not candidate or candidate in tried:  # the same text again ends the same way
                continue
            tried.add(candidate)
            first = content.find(candidate)
            if first < 0:
                continue
            ambiguous = ambiguous or candidate
            if _disproportionate(candidate, old):
                raise DisproportionateMatchError(content, candidate)
            if replace_all:
                return content.replace(candidate, new)
            if content.rfind(candidate) == first:
                return content[:first] + new + content[first + len(candidate) :]
    if ambiguous:
        raise AmbiguousMatchError(content, ambiguous)
    raise NoMatchError(content, old)


def _disproportionate(candidate: str, old: str) -> bool:
    """OpenCode 1.18's limits: twice the lines (at least three more), four times the length (at least 500 more)."""
    if candidate == old:
        return False
    lines = old.count("\n") + 1
    if candidate.count("\n") + 1 >= max(lines + 3, lines * 2):
        return True
    size = len(_trim(old))
    return lines > 1 and len(_trim(candidate)) > max(size + 500, size * 4)


class SearchedText:
    """The text and its lines in the forms that strategies compare, each made once, when first needed."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def lines(self) -> list[str]:
        """The lines."""
        return self.text.split("\n")

    @cached_property
    def trimmed(self) -> list[str]:
        """The lines without the blanks around them."""
        return [_trim(line) for line in self.lines]

    @cached_property
    def starts(self) -> list[int]:
        """Where each line begins."""
        at, out = 0, []
        for line in self.lines:
            out.append(at)
            at += len(line) + 1
        return out

    def span(self, first: int, last: int) -> str:
        """The exact text of the lines `first` to `last`, without the last one's newline."""
        return self.text[self.starts[first] : self.starts[last] + len(self.lines[last])]


def _trim(text: str) -> str:
    return text.strip(WHITE)


def simple(_content: SearchedText, find: str) -> Iterator[str]:
    """The text itself."""
    yield find


def line_trimmed(content: SearchedText, find: str) -> Iterator[str]:
    """Lines that are equal without the blanks around them."""
    target = [_trim(line) for line in _lines_without_empty_last(find)]
    for first in _find_runs(content.trimmed, target):
        yield content.span(first, first + len(target) - 1)


def block_anchor(content: SearchedText, find: str) -> Iterator[str]:
    """Blocks whose first and last lines are equal and whose inner lines are similar."""
    if find.count("\n") < 2:
        return
    target = [_trim(line) for line in _lines_without_empty_last(find)]
    slack = max(1, len(target) // 4)
    blocks = [
        (first, last)
        for first, last in _find_anchored_blocks(content.trimmed, target[0], target[-1])
        if abs(last - first + 1 - len(target)) <= slack
    ]
    best, best_score = None, -1.0
    for first, last in blocks:
        score = _inner_similarity(content.trimmed[first : last + 1], target)
        if score > best_score:
            best, best_score = (first, last), score
    if best is not None and best_score >= BLOCK_SIMILARITY:
        yield content.span(*best)


def _inner_similarity(block: Sequence[str], target: Sequence[str]) -> float:
    compared = min(len(block), len(target)) - 2
    if compared <= 0:
        return 1.0
    total = 0.0
    for index in range(1, compared + 1):
        if block[index] or target[index]:  # two empty lines say nothing
            total += similarity(block[index], target[index])
    return total / compared


def whitespace_normalised(content: SearchedText, find: str) -> Iterator[str]:
    """Text that is equal once each run of blanks is one."""
    target = _normalised(find)
    if not target:
        return
    normal = [_normalised(line) for line in content.lines]
    words = re.compile(f"[{WHITE}]+".join(re.escape(word) for word in target.split(" ")))
    for line, text in zip(content.lines, normal, strict=True):
        if text == target:
            yield line
        elif target in text:
            match = words.search(line)
            if match:
                yield match[0]
    count = find.count("\n") + 1
    if count > 1:
        joined, starts, ends = _join_words(normal)
        for first in range(len(normal) - count + 1):
            start, end = starts[first], ends[first + count - 1]
            if end - start == len(target) and joined.startswith(target, start):
                yield content.span(first, first + count - 1)


def _join_words(lines: Sequence[str]) -> tuple[str, list[int], list[int]]:
    """Normalised lines as one text, with where each line's words begin and the words up to it end."""
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    at = 0
    for line in lines:
        starts.append(at)
        if line:
            parts.append(line)
            at += len(line) + 1
        ends.append(at - 1)
    return " ".join(parts), starts, ends


def indentation_flexible(content: SearchedText, find: str) -> Iterator[str]:
    """Lines that are equal without the indentation that they share."""
    target = dedent(find.split("\n"))
    keys = [line.lstrip(WHITE) or line for line in content.lines]
    for first in _find_runs(keys, [line.lstrip(WHITE) or line for line in target]):
        if dedent(content.lines[first : first + len(target)]) == target:
            yield content.span(first, first + len(target) - 1)


def dedent(lines: Sequence[str]) -> list[str]:
    """Lines without the indentation that they share."""
    indents = [len(line) - len(line.lstrip(WHITE)) for line in lines if _trim(line)]
    smallest = min(indents, default=0)
    return [line[smallest:] if _trim(line) else line for line in lines]


def escape_normalised(content: SearchedText, find: str) -> Iterator[str]:
    """Text that is equal once its escapes are characters."""
    target = unescaped(find)
    if target in content.text:
        yield target
    if "\\" not in content.text:
        return
    count = target.count("\n") + 1
    # A backslash at a line's end eats itself, but only inside a window: each line is unescaped with its newline.
    pieces = [unescaped(line + "\n") for line in content.lines]
    joined, at, starts = "".join(pieces), 0, []
    for piece in pieces:
        starts.append(at)
        at += len(piece)
    for first in range(len(pieces) - count + 1):
        last = first + count - 1
        tail = unescaped(content.lines[last])
        body = starts[last] - starts[first]
        fits = body + len(tail) == len(target) and target.endswith(tail)
        if fits and joined.startswith(target[:body], starts[first]):
            yield content.span(first, last)


def trimmed_boundary(content: SearchedText, find: str) -> Iterator[str]:
    """Text that is equal without the blanks at its ends, and the lines around it."""
    target = _trim(find)
    if target == find or not target:
        return
    count = find.count("\n") + 1
    at = content.text.find(target)
    while at >= 0:
        yield target
        after = at + len(target)
        first = bisect_right(content.starts, at) - 1
        last = bisect_right(content.starts, after) - 1
        # Windows of as many lines as `find` has, with nothing but blank lines around the match.
        high = last - count + 1
        while high < first and high + count < len(content.lines) and not content.trimmed[high + count]:
            high += 1
        low = first
        while low > max(0, last - count + 1) and not content.trimmed[low - 1]:
            low -= 1
        for start in range(low, min(high, first, len(content.lines) - count) + 1):
            window = content.span(start, start + count - 1)
            if _trim(window) == target:
                yield window
        at = content.text.find(target, after)


def context_aware(content: SearchedText, find: str) -> Iterator[str]:
    """Blocks whose first and last lines are equal and half of whose inner lines are."""
    if find.count("\n") < 2:
        return
    target = [_trim(line) for line in _lines_without_empty_last(find)]
    for first, last in _find_anchored_blocks(content.trimmed, target[0], target[-1]):
        if last - first + 1 != len(target):
            continue
        inner = [
            (mine, theirs)
            for mine, theirs in zip(content.trimmed[first + 1 : last], target[1:-1], strict=True)
            if mine or theirs
        ]
        equal = sum(mine == theirs for mine, theirs in inner)
        if not inner or equal / len(inner) >= CONTEXT_SHARE:
            yield content.span(first, last)


def multi_occurrence(content: SearchedText, find: str) -> Iterator[str]:
    """The text itself, wherever it occurs."""
    if find in content.text:
        yield find


STRATEGIES = (
    simple,
    line_trimmed,
    block_anchor,
    whitespace_normalised,
    indentation_flexible,
    escape_normalised,
    trimmed_boundary,
    context_aware,
    multi_occurrence,
)


def _normalised(text: str) -> str:
    return _trim(_RUN.sub(" ", text))


def unescaped(text: str) -> str:
    """Text whose escapes are replaced by the characters they stand for."""
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), text)


def _lines_without_empty_last(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def _find_anchored_blocks(lines: Sequence[str], head: str, tail: str) -> Iterator[tuple[int, int]]:
    """Each line equal to `head` with the nearest line at distance 2 or more equal to `tail`."""
    tails = [index for index, line in enumerate(lines) if line == tail]
    for first, line in enumerate(lines):
        if line == head:
            position = bisect_right(tails, first + 1)
            if position == len(tails):
                return
            yield first, tails[position]


def _find_runs(lines: Sequence[str], target: Sequence[str]) -> Iterator[int]:
    """Where `target` stands in `lines` as consecutive items, overlaps too; linear (Knuth, Morris, Pratt)."""
    if not target:
        return
    fall = [0] * len(target)
    matched = 0
    for index in range(1, len(target)):
        while matched and target[index] != target[matched]:
            matched = fall[matched - 1]
        if target[index] == target[matched]:
            matched += 1
        fall[index] = matched
    matched = 0
    for index, line in enumerate(lines):
        while matched and line != target[matched]:
            matched = fall[matched - 1]
        if line == target[matched]:
            matched += 1
        if matched == len(target):
            yield index - matched + 1
            matched = fall[matched - 1]


# ---------------------------------------------------------------------- how much one line resembles another


def similarity(a: str, b: str) -> float:
    """1 for equal texts, 0 for texts with nothing in common: ``1 - distance / longer length``."""
    longest = max(len(a), len(b))
    return 1.0 if longest == 0 else 1.0 - distance(a, b) / longest


def distance(a: str, b: str) -> int:
    """Insertions, deletions and substitutions between `a` and `b`.

    Beyond `MAX_LENGTH` differing characters the answer is the largest possible one, so a caller that
    looks for resemblance errs on the side of "different".
    """
    if a == b:
        return 0
    start = _common_prefix(a, b)
    a, b = a[start:], b[start:]
    end = _common_prefix(a[::-1], b[::-1])
    if end:
        a, b = a[:-end], b[:-end]
    if not a or not b or max(len(a), len(b)) > MAX_LENGTH:
        return max(len(a), len(b))
    return _bit_parallel(a, b)


def _common_prefix(a: str, b: str) -> int:
    low, high = 0, min(len(a), len(b))
    while low < high:  # bisection over slices: comparisons run at memcmp's speed
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _bit_parallel(a: str, b: str) -> int:
    """One column of the distance table a step, its differences held in the bits of two integers (Hyyrö 2003)."""
    positions: dict[str, int] = {}
    for index, character in enumerate(a):
        positions[character] = positions.get(character, 0) | (1 << index)
    mask = (1 << len(a)) - 1
    top = 1 << (len(a) - 1)
    plus, minus, score = mask, 0, len(a)
    for character in b:
        equal = positions.get(character, 0)
        diagonal = (((equal & plus) + plus) ^ plus) | equal | minus
        horizontal_plus = minus | (~(diagonal | plus) & mask)
        horizontal_minus = plus & diagonal
        if horizontal_plus & top:
            score += 1
        elif horizontal_minus & top:
            score -= 1
        horizontal_plus = (horizontal_plus << 1) | 1
        plus = ((horizontal_minus << 1) | ~(diagonal | horizontal_plus)) & mask
        minus = horizontal_plus & diagonal & mask
    return score
