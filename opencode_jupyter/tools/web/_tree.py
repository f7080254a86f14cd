"""Which elements of a page are open: tags that were left out, or stand where they can't, are made good as in a browser.

A small part of WHATWG HTML 13.2.6, for one pass without a tree: each step takes the same time however deep the page is.
Elements deeper than `DEPTH` are left out; a bold that is closed inside another block ends that block and begins it
anew.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict

from . import _nesting as nesting
from ._buffer import Buffer

DEPTH = 512
"""Elements open at once, as in Chrome."""
LOST = 16
"""Formatting elements that begin anew after a block that they were left open in."""
_ALIKE = 3
"""Of those that are alike (HTML's "Noah's Ark clause")."""
_LISTS = ("ul", "ol")
CELLS = ("td", "th", "caption")
_PLAIN = frozenset(("p", "div", "center", "section", "article"))


class Open:
    """An element that is open.

    Attributes:
        name: of the element.
        source: its attributes, where they may be needed again.
        kind: its name where its end makes more of it than its text, else empty.
        buffer: where its text goes.
        at: its place on the stack.
        scope, special, barrier: places of the nearest elements that stop end tags, inline end tags, and items.
        full: whether anything to be seen is in it.
        mark: where it began in the buffer, if that is the one around it.
        count: elements in it.
        item: whether an item ended in it and nothing came since.
        more: what its kind needs at its end.
    """

    __slots__ = (
        *("at", "barrier", "buffer", "count", "full", "item", "kind", "mark", "more", "name", "scope", "source"),
        "special",
    )

    def __init__(self, name: str, source: str, kind: str, buffer: Buffer, above: Open | None) -> None:
        self.name, self.source, self.kind, self.buffer = name, source, kind, buffer
        self.full = self.item = False
        self.count = 0
        self.mark: tuple[int, int, int] | None = None
        self.more: object = None
        if above is None:
            self.at = self.scope = self.special = self.barrier = 0
            return
        self.at = at = above.at + 1
        self.scope, self.special, self.barrier = above.scope, above.special, above.barrier
        if name in nesting.SPECIAL:
            self.special = at
            if name in nesting.SCOPES:
                self.scope = at
            if name not in nesting.PASSED_BY_ITEMS:
                self.barrier = at


class Tree(ABC):
    """Keeps the stack of open elements; what becomes of them is for a subclass.

    Attributes:
        deep: whether elements were left out because they were nested too deeply.
    """

    def __init__(self) -> None:
        self.deep = False
        self.root = Open("", "", "", Buffer(), None)
        self.stack = [self.root]
        self.places: defaultdict[str, list[int]] = defaultdict(list)
        self.lost: list[tuple[str, str]] = []
        self._left_out: defaultdict[str, int] = defaultdict(int)

    @abstractmethod
    def begin(self, name: str, source: str) -> Open:
        """Make the element that goes on the stack."""

    @abstractmethod
    def end(self, element: Open, above: Open) -> None:
        """Make something of an element that was taken off the stack."""

    @abstractmethod
    def child(self, parent: Open) -> None:
        """Something more stands in an element."""

    @abstractmethod
    def void(self, name: str, source: str, top: Open) -> None:
        """An element without content."""

    @abstractmethod
    def blank_block(self) -> None:
        """A block without content."""

    def open(self, name: str, source: str) -> bool:
        """A start tag; whether it stands for an element."""
        if name in nesting.IGNORED:
            return False
        if name == "image":
            name = "img"
        if len(self.stack) > DEPTH and name not in nesting.VOID:
            self.deep = True
            self._left_out[name] += 1
            if name in nesting.BLOCKS:
                self.blank_block()
            return True
        drawing = self._drawing(name) if self.places["svg"] or self.places["math"] else False
        if name in nesting.CLOSES_P and self.places["p"]:
            self._close_open("p")
        if name in nesting.ENDS_OTHERS and not self._end_others(name):
            return False
        if self.lost and name not in nesting.SPECIAL:
            self.begin_anew()
        top = self.stack[-1]
        self.child(top)
        if name in nesting.VOID:
            self.void(name, source, top)
        elif not (drawing and source.endswith("/")):
            self.push(name, source)
        return True

    def _end_others(self, name: str) -> bool:
        """End what an element of a name does not stand in; whether it may stand here at all."""
        if name == "li":
            self._close_item("li")
        elif name in ("dd", "dt"):
            self._close_item("dd", "dt")
        elif name in ("a", "button"):
            self._close_open(name)
        elif name in nesting.TABLE_PARTS:
            return self._open_in_table(name)
        elif self.stack[-1].name in nesting.ENDED_BY_ITS_LIKE[name]:
            self.pop_to(len(self.stack) - 1)
        return True

    def close(self, name: str) -> bool:
        """An end tag; whether it ends an element."""
        if self._left_out[name]:
            self._left_out[name] -= 1
            return True
        top = self.stack[-1]
        if name == "br":
            self.child(top)
            self.void(name, "", top)
            return True
        alike = nesting.HEADINGS if name in nesting.HEADINGS else (name,)
        place = max((self.places[one][-1] for one in alike if self.places[one]), default=0)
        if name in nesting.FORMATTING:
            return self._close_formatting(name, place)
        if not place or not self._reached(name, place, top):
            if name == "p":
                self.blank_block()
            return name == "p"
        self.pop_to(place)
        return True

    def push(self, name: str, source: str) -> None:
        """Put an element on the stack."""
        element = self.begin(name, source)
        self.places[name].append(element.at)
        self.stack.append(element)

    def pop_to(self, place: int) -> None:
        """End the elements from a place on the stack on; formatting above it is lost, and begins anew later."""
        while len(self.stack) > place:
            element = self.stack.pop()
            self.places[element.name].pop()
            above = self.stack[-1]
            above.full = above.full or element.full
            if element.name in nesting.FORMATTING and len(self.stack) > place and len(self.lost) < LOST:
                lost = (element.name, element.source)
                if self.lost.count(lost) < _ALIKE:
                    self.lost.insert(0, lost)
            self.end(element, above)

    def begin_anew(self) -> None:
        """Open again the formatting that a block's end has cut off."""
        lost, self.lost = self.lost, []
        for name, source in lost:
            if len(self.stack) <= DEPTH:
                self.child(self.stack[-1])
                self.push(name, source)

    def _reached(self, name: str, place: int, top: Open) -> bool:
        """Whether an end tag reaches an element of its name from where it stands."""
        if name == "table":
            return True
        if name in nesting.TABLE_PARTS:
            return bool(self.places["table"]) and place > self.places["table"][-1]
        if name == "li" and any(self.places[one] and self.places[one][-1] > place for one in _LISTS):
            return False
        return place >= top.scope if name in nesting.SPECIAL else place > top.special

    def _drawing(self, name: str) -> bool:
        """Whether a start tag stands in a drawing or formula; one of HTML's own ends that."""
        drawing = self.places["svg"] or self.places["math"]
        if drawing and name in nesting.BREAKS_OUT and not self.places["foreignobject"]:
            self.pop_to(drawing[0])
        return bool(drawing)

    def _close_formatting(self, name: str, place: int) -> bool:
        if place <= self.stack[-1].scope:
            for at in range(len(self.lost) - 1, -1, -1):
                if self.lost[at][0] == name:
                    del self.lost[at]
                    break
            return False
        again = [one.name for one in self.stack[place + 1 :] if one.name in nesting.SPECIAL]
        if not _PLAIN.issuperset(again):
            return False  # it ends with that block
        self.pop_to(place)
        for one in again:
            self.push(one, "")
        return True

    def _close_open(self, name: str) -> None:
        """End what can't hold what begins now."""
        place = self.places[name][-1] if self.places[name] else 0
        if name == "a" and place > self.stack[-1].scope:
            self._close_formatting(name, place)
        elif place and name != "a" and place >= self.stack[-1].scope:
            self.pop_to(place)

    def _close_item(self, *names: str) -> None:
        """End the item before this one."""
        place = max((self.places[name][-1] for name in names if self.places[name]), default=0)
        if place and place >= self.stack[-1].barrier:
            self.pop_to(place)

    def _open_in_table(self, name: str) -> bool:
        """Make room in a table for a row, cell or caption; whether one begins."""
        if not self.places["table"]:
            return False
        table = self.places["table"][-1]
        rows = self.places["tr"]
        if name in ("td", "th") and rows and rows[-1] > table:
            self.pop_to(rows[-1] + 1)
        else:
            self.pop_to(table + 1)
            if name in ("td", "th"):
                self.push("tr", "")
        return name in ("tr", *CELLS) and len(self.stack) <= DEPTH
