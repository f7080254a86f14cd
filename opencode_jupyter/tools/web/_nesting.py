"""How HTML's elements nest: which are blocks, which have no content, what ends what (WHATWG HTML 13.1.2, 13.2.6)."""

from __future__ import annotations

VOID = frozenset("area base basefont bgsound br col embed hr img input keygen link meta param source track wbr".split())
"""Elements that have no content."""
BLOCKS = frozenset(
    "address article aside audio blockquote canvas center dd dir div dl dt fieldset figcaption figure footer form h1 h2"
    " h3 h4 h5 h6 header hgroup hr isindex li main menu nav noscript ol output p pre section table td tr ul caption"
    " th".split()
)
"""Elements that stand on lines of their own (Turndown's list, and a table's caption)."""
CLOSES_P = frozenset(
    "address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer form h1 h2 h3"
    " h4 h5 h6 header hgroup hr li dd dt listing main menu nav ol p pre search section summary ul xmp".split()
)
"""Elements that end an open paragraph where they begin."""
SCOPES = frozenset("table td caption button object applet marquee template".split())
"""An end tag reaches no element outside of these."""
SPECIAL = (
    BLOCKS - {"audio", "canvas", "output"}
    | SCOPES
    | frozenset("details summary iframe select textarea title search template".split())
)
"""Elements that an inline end tag reaches not through."""
PASSED_BY_ITEMS = frozenset({"address", "div", "p"})
"""Those of them through which an item still ends the one before."""
FORMATTING = frozenset("a b big code em font i nobr s small strike strong tt u".split())
"""Elements that begin anew in the next block when theirs ended without them."""
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
ENDED_BY_ITS_LIKE = {
    **dict.fromkeys(HEADINGS, frozenset(HEADINGS)),
    "option": frozenset({"option"}),
    "optgroup": frozenset({"option", "optgroup"}),
    **dict.fromkeys(("rt", "rp"), frozenset({"rt", "rp"})),
}
"""What ends where another begins, if it is the innermost."""
TABLE_PARTS = frozenset("caption col colgroup tbody td tfoot th thead tr".split())
ENDS_OTHERS = TABLE_PARTS | {"li", "dd", "dt", "a", "button", *ENDED_BY_ITS_LIKE}
"""Elements whose beginning may end something besides a paragraph."""
IGNORED = frozenset("html head body frameset frame".split())
"""Tags that change nothing here."""
BREAKS_OUT = BLOCKS | frozenset("b big br code em i img s small span strike strong sub sup tt u var".split())
"""HTML elements that end a drawing (``svg``, ``math``) they begin in."""
