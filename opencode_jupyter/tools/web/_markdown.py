"""HTML as Markdown, spelled as Turndown 7 spells it (ATX headings, ``---``, ``-``, fences, ``*``).

One pass over the tags with a stack of what is open: memory holds the text and at most `DEPTH` elements, nothing is
recursive. An element whose text needs a look when it is whole (emphasis, links, items) has a buffer of its own, all
others write into the one around them.

Different on purpose, each for the reader's sake: tables stay tables; ``pre`` is a fence also without ``code`` in it,
holds all of its text, and breaks lines where elements do; the page's title stands alone, and so does text behind a
list inside an item; links and pictures with ``javascript:`` and ``data:`` URLs lose them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from itertools import repeat

from . import _nesting as nesting
from ._buffer import Buffer
from ._spelling import SPACE, code_span, escape, fence, link, picture
from ._tables import Table
from ._tokens import REFERENCES, attributes, events
from ._tree import CELLS, DEPTH, Open, Tree

TOO_DEEP = f"the page is nested too deeply: what is deeper than {DEPTH} elements has lost its markup"
TAGS = 250_000
"""Elements that become Markdown, at some 10 microseconds each: a long page of 5 MB has half of that."""
TOO_DENSE = f"the page has more than {TAGS} elements: those behind have lost their markup"
INDENTS = 8 << 20
"""Characters that lists and quotes may put before lines in one page."""
BLANKS = 100_000
"""Empty cells that spans may make in one page."""
SLICE = 1 << 16
"""Characters of text that are looked at together."""
_COLLAPSE = re.compile(r"[ \t\r\n]+")
_LANGUAGE = re.compile(r"language-(\S+)")
_WHOLE_NUMBER = re.compile(r"\s*([+-]?[0-9]{1,9})(?:\.0*)?\s*")
_INLINE = ("em", "i", "strong", "b", "code", "a")
_FULL = frozenset(("a", "iframe", "script", "audio", "video"))
"""Elements that count even if nothing stands in them."""


class Writer(Tree):
    """Makes Markdown of one page.

    Attributes:
        dense: whether markup was left out because there was too much of it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.dense = False
        self._indents = INDENTS
        self._blanks = repeat("", BLANKS)
        # white space: None at a line's start, else whether the text before ended in a blank; `_held` then owes it
        self._blank: bool | None = None
        self._held: Buffer | None = None
        self._held_at = -1
        self._keep = False
        self._pre: Open | None = None
        self._in_code = False  # whether a `code` has told the language of `_pre`
        self._ends: dict[str, Callable[[Open], None]] = {
            **dict.fromkeys(nesting.HEADINGS, self._end_heading),
            **dict.fromkeys(_INLINE, self._end_inline),
            **dict.fromkeys(CELLS, self._end_cell),
            "blockquote": self._end_quote,
            "li": self._end_item,
            "pre": self._end_pre,
            "table": self._end_table,
            "tr": self._end_row,
            "template": lambda element: None,
        }

    def convert(self, html: str) -> str:
        """The page in Markdown."""
        fresh, tags = True, TAGS
        if "\0" in html:
            html = html.replace("\0", "")
        for kind, value, rest in events(html):
            if tags < 0 and kind != "text":
                if not self.dense:
                    self.dense = True
                    self.pop_to(1)
                    self.lost.clear()
                if value in nesting.BLOCKS:
                    self.root.buffer.end_line(2)
                continue
            if kind == "text":
                self._text(value, fresh, references=True)
                fresh = False
            elif kind == "open":
                tags -= 1
                fresh = self.open(value, rest) or fresh
            elif kind == "close":
                fresh = self.close(value) or fresh
            else:
                fresh = True
                if rest in ("script", "style"):
                    self._unseen(value)
                elif kind == "raw":
                    self._text(value, True, references=rest in REFERENCES)
        self.pop_to(1)
        self._line_start()
        return self.root.buffer.value().lstrip("\t\r\n").rstrip(SPACE)

    # ---- text

    def _text(self, source: str, fresh: bool, *, references: bool) -> None:
        at = 0
        while at < len(source):
            end = at + SLICE
            if end < len(source):
                end = source.rfind(" ", at + 1, end) + 1 or end
            part = source[at:end]
            at = end
            if references and "&" in part:
                part = unescape(part)
            if self._pre is not None:
                self._raw(part, self._pre)
            else:
                self._run(part, fresh)
            fresh = False

    def _run(self, part: str, fresh: bool) -> None:
        """Running text: white space becomes one blank, or none at the ends of a block."""
        part = _COLLAPSE.sub(" ", part)
        if part[:1] == " " and self._blank is not False and (not self._keep or (self._blank and not fresh)):
            part = part[1:]
        if not part:
            return
        if self.lost:
            self.begin_anew()
        self._settle()
        top = self.stack[-1]
        if top.item or top.more is not None:
            self.child(top)
        text = part if self.places["code"] else escape(part, fresh)
        self._blank = text[-1] == " "
        if self._blank:
            self._held = top.buffer
            text = text[:-1]
        if text:
            top.full = top.full or not text.isspace()
            top.buffer.put(text, text=True)

    def _raw(self, part: str, pre: Open) -> None:
        """Preformatted text."""
        part = part.replace("\r\n", "\n")
        if pre.count < 0:  # the first line end behind the tag is none of the text
            pre.count = 0
            part = part.removeprefix("\n")
        if part:
            self.stack[-1].full = self.stack[-1].full or not part.isspace()
            pre.buffer.put(part)

    def _unseen(self, source: str) -> None:
        """A script: the white space at its ends counts."""
        if self._pre is not None:
            return
        top = self.stack[-1].buffer
        leads = source[0] in " \t\r\n" and (self._blank is False or self._keep)
        if not source.isspace():
            self.stack[-1].full = True
            self._settle()
            if leads:
                top.put(" ", text=True)
        elif not leads:
            return
        self._blank = source[-1] in " \t\r\n"
        self._held = top if self._blank else None

    def _settle(self) -> None:
        """The blank before is followed by something on its line: it stays."""
        if self._held is not None and self._held_at < 0:
            self._held.put(" ", text=True)
        self._held, self._held_at = None, -1

    def _line_start(self) -> None:
        """A line begins or ends here: the blank before goes."""
        if self._held is not None and 0 <= self._held_at < len(self._held.pieces):
            self._held.pieces[self._held_at] = ""
        self._held, self._held_at = None, -1
        self._blank, self._keep = None, False

    # ---- elements

    def child(self, parent: Open) -> None:
        parent.count += 1
        if parent.item:
            parent.item = False
            parent.buffer.end_line(1)
        self._list_ends(parent)

    def _list_ends(self, item: Open) -> None:
        """The list in an item is not the last thing in it."""
        if isinstance(item.more, Buffer):
            item.buffer.follow(item.more, 2)
            item.buffer.end_line(2)
            item.more = None

    def blank_block(self) -> None:
        if self._pre is not None:
            self._new_line(self._pre)
            return
        self._line_start()
        self.stack[-1].buffer.end_line(2)

    def void(self, name: str, source: str, top: Open) -> None:
        top.full = True
        if self._pre is not None:
            if name == "br":
                self._pre.buffer.put("\n")
            return
        if name in ("br", "hr"):
            self._line_start()
            top.buffer.end_line(0 if name == "br" else 2)
            top.buffer.put("  " if name == "br" else "---")
            top.buffer.end_line(1 if name == "br" else 2)
            return
        self._settle()
        self._blank, self._keep = None, True
        image = picture(*attributes(source, "alt", "src", "title")) if name == "img" else ""
        if image:
            top.buffer.put(image)

    def begin(self, name: str, source: str) -> Open:
        top = self.stack[-1]
        block = name in nesting.BLOCKS
        if self._pre is not None:
            if block:
                self._new_line(self._pre)
            elif name == "code" and not self._in_code:
                self._in_code, self._pre.more = True, _language(source)
            return Open(name, "", "", top.buffer, top)
        kind = name if name in self._ends and not self.places["svg"] else ""
        more = self._more(name, kind, source)
        if name == "a" and more is None:
            kind = ""
        own = kind and kind not in ("table", "tr")
        if block:
            self._line_start()
            if name in ("ul", "ol") and top.kind == "li":
                top.more = top.buffer.take()
        elif self._blank is not None:
            self._keep = False
        new = Open(name, source if name in nesting.FORMATTING else "", kind, Buffer() if own else top.buffer, top)
        new.full, new.more = name in _FULL, more
        if block:
            new.mark = top.buffer.mark()
            if not own:
                top.buffer.end_line(2)
        if kind == "pre":
            self._pre, self._in_code, new.count = new, False, -1
        return new

    def _more(self, name: str, kind: str, source: str) -> object:
        """What an element's end needs to know of its tag."""
        if name == "a":
            return link(*attributes(source, "href", "title"))
        if name == "ol":
            return attributes(source, "start")[0]
        if kind in CELLS:
            lost, self.lost = self.lost, []
            return (*attributes(source, "colspan", "rowspan"), lost)
        if kind == "table":
            return Table(self._blanks)
        return _language(source) if kind == "pre" else None

    def end(self, element: Open, above: Open) -> None:
        block = element.name in nesting.BLOCKS
        if element is self._pre:
            self._pre = None
        elif self._pre is not None:
            if block:
                self._new_line(self._pre)
            return
        if not block:
            if self._blank is not None:
                self._keep = False
            if element.kind:
                self._ends[element.kind](element)
                if self._held is element.buffer:  # it goes outside as well
                    self._held, self._held_at = above.buffer, -1
            elif element.name == "title" and not self.places["svg"]:
                above.buffer.soft = 2
            return
        self._line_start()
        if element.full or element.name in ("tr", *CELLS):
            if element.kind:
                self._ends[element.kind](element)
        elif element.mark is not None:
            above.buffer.back(element.mark)
            self._list_ends(above)
        if element.name not in ("li", *CELLS) or not element.full:
            above.buffer.end_line(2)

    def _end_heading(self, element: Open) -> None:
        above = self.stack[-1].buffer
        above.end_line(2)
        above.put_lines("#" * int(element.name[1]) + " " + element.buffer.value())

    def _end_inline(self, element: Open) -> None:
        """White space at its ends goes outside."""
        buffer, above = element.buffer, self.stack[-1].buffer
        content = buffer.value()
        start = content[: len(content) - len(content.lstrip(SPACE))] if buffer.begins else ""
        ends = buffer.ends and not buffer.breaks and len(start) < len(content)
        end = content[len(content.rstrip(SPACE)) :] if ends else ""
        if start:
            above.put(start, text=True)
        if start or end or self._held is buffer:
            content = content.strip(SPACE)
        if not content and self._held is buffer:
            self._held, self._held_at = above, -1
        if element.name == "a":
            made = f"[{content}]({element.more})"
        elif element.name == "code":
            made = code_span(content)
        else:
            mark = "*" if element.name in ("em", "i") else "**"
            made = f"{mark}{content}{mark}" if content.strip(SPACE) else ""
        if made and element.full:
            if self._held is above and self._held_at < 0:  # it may still have to go
                above.put(" ", text=True)
                self._held_at = len(above.pieces) - 1
            above.put(made)
        if end:
            above.put(end, text=True)

    def _indented(self, content: str, indent: str) -> str:
        """Lines with something before each but the first, as long as the page may grow."""
        cost = content.count("\n") * len(indent)
        if cost > self._indents:
            return content
        self._indents -= cost
        return content.replace("\n", "\n" + indent)

    def _end_quote(self, element: Open) -> None:
        above = self.stack[-1].buffer
        above.end_line(2)
        above.put_lines("> " + self._indented(element.buffer.value().strip("\n"), "> "))

    def _end_item(self, element: Open) -> None:
        above = self.stack[-1]
        if isinstance(element.more, Buffer):  # a list is the last in it
            element.buffer.breaks = 0
            element.buffer.follow(element.more, 1)
        content = element.buffer.value()
        content = content.strip("\n") + "\n" * content.endswith("\n")
        prefix = "-   "
        if above.name == "ol":
            start = _WHOLE_NUMBER.fullmatch(str(above.more))
            prefix = f"{above.count + (int(start[1]) - 1 if start else 0)}.  "
        above.buffer.put(prefix + self._indented(content, " " * len(prefix)))
        above.item = True

    def _end_pre(self, element: Open) -> None:
        above = self.stack[-1].buffer
        above.end_line(2)
        above.put(fence(element.buffer.value(), str(element.more)))

    def _new_line(self, pre: Open) -> None:
        """In preformatted text: begin a line, if it has not just begun."""
        if pre.buffer.pieces and not pre.buffer.pieces[-1].endswith("\n"):
            pre.buffer.put("\n")

    def _end_table(self, element: Open) -> None:
        assert isinstance(element.more, Table)
        above = self.stack[-1].buffer
        above.end_line(2)
        above.put_lines(element.more.value())

    def _end_row(self, element: Open) -> None:
        table = self.stack[-1].more
        if isinstance(table, Table):
            table.end_row()

    def _end_cell(self, element: Open) -> None:
        assert isinstance(element.more, tuple)
        columns, rows, self.lost = element.more
        content = element.buffer.value() if element.full else ""
        table = self.stack[self.places["table"][-1]]
        assert isinstance(table.more, Table)
        if element.name == "caption":
            table.buffer.end_line(2)
            table.buffer.put_lines(content)
            table.buffer.end_line(2)
            return
        spans = [int(span) if span.isdecimal() and len(span) < 6 else 1 for span in (columns, rows)]
        table.more.cell(content, *spans, head=element.name == "th")


def _language(source: str) -> str:
    """The language that a class names."""
    found = _LANGUAGE.search(attributes(source, "class")[0])
    return found[1] if found else ""
