"""HTML as Markdown: what Turndown 7.2.5 makes of the same page, but for white space; and what it does not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencode_jupyter.tools.web._html_converter_process import PLAIN, markdown

# fmt: off
# ruff: noqa: Q003, E501
LIKE_TURNDOWN: dict[str, list[tuple[str, str]]] = {
    "headings and rules": [
        ("<h1>One</h1><h2>Two</h2><h6>Six</h6>", "# One\n\n## Two\n\n###### Six"),
        ("<h1>a <em>b</em></h1>", "# a *b*"),
        ("<h1></h1>x", "x"),
        ("<h3><br>a</h3>", "###   \na"),
        ("a<hr>b", "a\n\n---\n\nb"),
        ("<h1>a<h2>b", "# a\n\n## b"),
        ("<h1>a</h2>b", "# a\n\nb"),
        ("<h2><p>x</p></h2>y", "## \n\nx\n\ny"),
        ("<hr><hr>", "---\n\n---"),
    ],
    "paragraphs and breaks": [
        ("<p>a<p>b", "a\n\nb"),
        ("a<br>b", "a  \nb"),
        ("a <br> b", "a  \nb"),
        ("a<br><br>b", "a  \n  \nb"),
        ("<p>a</p>\n\n\n<p>b</p>", "a\n\nb"),
        ("<div>a<div>b</div>c</div>", "a\n\nb\n\nc"),
        ("a<p></p>b", "a\n\nb"),
        ("a</p>b", "a\n\nb"),
        ("a</br>b", "a  \nb"),
        ("<p>&nbsp;</p>x", "x"),
        ("<p>x&nbsp;</p>y", "x\u00a0\n\ny"),
        ("<div><p>x</p>&nbsp;</div>y", "x\n\n\u00a0\n\ny"),
        ("<section>a</section><article>b</article>", "a\n\nb"),
        ("<dl><dt>t<dd>d<dt>u<dd>e</dl>", "t\n\nd\n\nu\n\ne"),
        ("<figure><img src=i><figcaption>c</figcaption></figure>", "![](i)\n\nc"),
        ("<details><summary>s</summary>text</details>", "stext"),
        ("<p>a<div>b</div>c</p>d", "a\n\nb\n\nc\n\nd"),
    ],
    "white space": [
        ("a\n b\t c", "a b c"),
        ("<b>a</b> <i>b</i>", "**a** *b*"),
        ("<b>a </b>b", "**a** b"),
        ("a<b> b</b>", "a **b**"),
        ("a <b> b </b> c", "a **b** c"),
        ("<b>a </b> <i> b</i>", "**a** *b*"),
        ("<b> </b>", ""),
        ("a<b> </b>c", "a c"),
        ("<i><b>a </b></i>b", "***a*** b"),
        ("a <!-- c --> b", "a b"),
        ("x<script>y</script> z", "x z"),
        ("<b>&nbsp;a&nbsp;</b>c", "\u00a0**a**\u00a0c"),
        ("a <img src=i> b", "a ![](i) b"),
        ("<p> a </p> <p> b </p>", "a\n\nb"),
        ("a &#32; b", "a b"),
        ("<span> a </span>b", "a b"),
        ("<p>a <b>b </b></p>", "a **b**"),
        ("a\u2003b", "a\u2003b"),
        ("<textarea>\n a\n b</textarea>", "a b"),
    ],
    "escapes": [
        ("*a* _b_ `c` [d] \\e", "\\*a\\* \\_b\\_ \\`c\\` \\[d\\] \\\\e"),
        ("- a", "\\- a"),
        ("+ a", "\\+ a"),
        ("+a", "+a"),
        ("= a", "\\= a"),
        ("==a", "\\==a"),
        ("# a", "\\# a"),
        ("####### a", "####### a"),
        ("#a", "#a"),
        ("> a", "\\> a"),
        ("~~~a", "\\~~~a"),
        ("1. a", "1\\. a"),
        ("12. a", "12\\. a"),
        ("1.a", "1.a"),
        ("a - b 1. c # d", "a - b 1. c # d"),
        ("<p>-a</p><p>1. b</p>", "\\-a\n\n1\\. b"),
        ("a<b>- b</b>", "a**\\- b**"),
        ("&lt;b&gt; &amp;amp;", "<b> &amp;"),
        ("a_b_c", "a\\_b\\_c"),
        ("<p>!x</p>|y|", "!x\n\n|y|"),
        ("a<!-- -->- b", "a\\- b"),
        ("a < b &lt; - c", "a < b < - c"),
    ],
    "emphasis": [
        ("<b><i>a</i></b>", "***a***"),
        ("<b></b>", ""),
        ("<b><br></b>", ""),
        ("<em>a<br>b</em>", "*a  \nb*"),
        ("<b><p>a</p></b>", "**\n\na\n\n**"),
        ("<p><b>a<p>b", "**a**\n\n**b**"),
        ("<b><i>a</b>b</i>", "***a****b*"),
        ("a<sup>2</sup>", "a2"),
        ("<b>*</b>", "**\\***"),
    ],
    "code": [
        ("<code>a</code>", "`a`"),
        ("<code>a_b*c</code>", "`a_b*c`"),
        ("<code>a`b</code>", "``a`b``"),
        ("<code>`a`</code>", "`` `a` ``"),
        ("<code>``</code>", "` `` `"),
        ("<code> a </code>b", "`a` b"),
        ("<code>a\nb</code>", "`a b`"),
        ("<code></code>x", "x"),
        ("<a href=x><code>f()</code></a>", "[`f()`](x)"),
        ("<kbd>a_b</kbd>", "a\\_b"),
    ],
    "blocks of code": [
        ("<pre><code>a\n  b\n</code></pre>", "```\na\n  b\n```"),
        ("<pre><code class='x language-py y'>a</code></pre>", "```py\na\n```"),
        ("<pre><code>\na\n\n</code></pre>", "```\n\na\n\n```"),
        ("<pre><code>```\na\n```</code></pre>", "````\n```\na\n```\n````"),
        ("<pre><code>````</code></pre>", "`````\n````\n`````"),
        ("<pre><code>&lt;b&gt; <span>x</span> *</code></pre>", "```\n<b> x *\n```"),
        ("a<pre><code>b</code></pre>c", "a\n\n```\nb\n```\n\nc"),
        ("<pre></pre>x", "x"),
        ("<p>a<pre><code>b</code></pre>", "a\n\n```\nb\n```"),
    ],
    "lists": [
        ("<ul><li>a</li><li>b</li></ul>", "-   a\n-   b"),
        ("<ul>\n<li>a\n<li>b\n</ul>", "-   a\n-   b"),
        ("<ol><li>a<li>b</ol>", "1.  a\n2.  b"),
        ("<ol start=9><li>a<li>b</ol>", "9.  a\n10.  b"),
        ("<ol start=-1><li>a<li>b</ol>", "-1.  a\n0.  b"),
        ("<ul><li>a<ul><li>b</ul></ul>", "-   a\n    -   b"),
        ("<ol><li>a<ol><li>b</ol><li>c</ol>", "1.  a\n    1.  b\n2.  c"),
        ("<ul><li><p>a</p></li><li><p>b</p></li></ul>", "-   a\n    \n-   b"),
        ("<ul><li>a<p>b</p></li></ul>", "-   a\n    \n    b"),
        ("<ul><li>a<ul><li>b</ul><p>c</ul>", "-   a\n    \n    -   b\n    \n    c"),
        ("<ul></ul>x", "x"),
        ("<ul><ul><li>a</ul></ul>", "-   a"),
        ("<li>a<li>b", "-   a\n-   b"),
        ("<ul><li><pre><code>a\nb</code></pre></ul>", "-   ```\n    a\n    b\n    ```"),
        ("<ul><li>a<br>b</ul>", "-   a  \n    b"),
        ("<ul><li>a<blockquote>b</blockquote></ul>", "-   a\n    \n    > b"),
        ("x<ul><li>a</ul>y", "x\n\n-   a\n\ny"),
        ("<ol><li>1<li>2<li>3<li>4<li>5<li>6<li>7<li>8<li>9<li>10<p>x</ol>", "1.  1\n2.  2\n3.  3\n4.  4\n5.  5\n6.  6\n7.  7\n8.  8\n9.  9\n10.  10\n     \n     x"),
        ("<ul><li><div>a</div><div>b</div></ul>", "-   a\n    \n    b"),
        ("<menu><li>a</menu>", "-   a"),
        ("<ul><li><img src=i></ul>", "-   ![](i)"),
    ],
    "quotes": [
        ("<blockquote>a</blockquote>", "> a"),
        ("<blockquote><p>a<p>b</blockquote>", "> a\n> \n> b"),
        ("<blockquote>a<blockquote>b</blockquote>c</blockquote>", "> a\n> \n> > b\n> \n> c"),
        ("<blockquote><ul><li>a<li>b</ul></blockquote>", "> -   a\n> -   b"),
        ("<blockquote></blockquote>x", "x"),
        ("<blockquote>a<br>b</blockquote>", "> a  \n> b"),
        ("<blockquote><pre><code>a\n\nb</code></pre></blockquote>", "> ```\n> a\n> \n> b\n> ```"),
    ],
    "links and pictures": [
        ("<a href=x>a</a>", "[a](x)"),
        ("<a href=x title=t>a</a>", "[a](x \"t\")"),
        ("<a href=x title='q \"w\"'>a</a>", "[a](x \"q \\\"w\\\"\")"),
        ("<a href='a b'>a</a>", "[a](<a b>)"),
        ("<a>a</a>", "a"),
        ("<a href=''>a</a>", "a"),
        ("<a name=x></a>a", "a"),
        ("<a href=x></a>a", "[](x)a"),
        ("<a href=x> a </a>b", "[a](x) b"),
        ("<a href=x>a<br>b</a>", "[a  \nb](x)"),
        ("<a href=x>a<a href=y>b", "[a](x)[b](y)"),
        ("<a href='?a=1&amp;b=2&copy=3&lt=4'>a</a>", "[a](?a=1&b=2&copy=3&lt=4)"),
        ("<a href=x title='a\n\n b'>c</a>", "[c](x \"a\nb\")"),
        ("<a HREF=x>A</A>", "[A](x)"),
        ("<a href=x href=y>a</a>", "[a](x)"),
        ("<img src=i>", "![](i)"),
        ("<img src=i alt='a_b' title=t>", "![a\\_b](i \"t\")"),
        ("<img alt=a>", ""),
        ("<img src='a b' alt=''>", "![](<a b>)"),
        ("<a href=x><img src=i></a>", "[![](i)](x)"),
        ("<image src=i>", "![](i)"),
    ],
    "other elements": [
        ("<script>a</script><style>b</style><meta c><link d>x", "x"),
        ("<noscript><p>a</p></noscript>b", "a\n\nb"),
        ("<iframe src=x>a</iframe>b", "ab"),
        ("<template>a</template>b", "b"),
        ("<svg><title>a</title><path d=x/></svg>b", "ab"),
        ("<select><option>a<option>b</select>", "ab"),
        ("<button>a</button>b", "ab"),
        ("<label>a</label><input>b", "ab"),
        ("<object>o</object><video>v</video>", "ov"),
        ("<td>x</td>y", "xy"),
        ("<title>T</title><p>x", "T\n\nx"),
        ("<html><head><title>T</title></head><body><h1>H</h1></body></html>", "T\n\n# H"),
        ("&#x80;&notit;&hearts;&#0;", "\u20ac\u00acit;\u2665\ufffd"),
        ("<p title='>'>x", "x"),
        ("<!doctype html><!-- a --><p>x", "x"),
        ("<!-->x", "x"),
        ("<!--->y", "y"),
        ("x</p", "x"),
        ("x</", "x"),
    ],
}
ON_PURPOSE = [
    # html-to-markdown: as sensible as what Turndown writes, or more
    ("<h2>T <a class=h href=#t></a></h2>", "## T"),
    ("a</foo>- b", "a\\- b"),
    ("<b>a</b><strong>b</strong>", "**ab**"),
    ("<i>a</i><em>b</em>", "*ab*"),
    ("<b><b>a</b></b>", "**a**"),
    ("<u>a</u><s>b</s><small>c</small>", "a~~b~~c"),
    ("<code><em>a</em></code>", "`a`"),
    ("<code>a<br>b</code>", "`a`  \n`b`"),
    ("<code><a href=x>f</a></code>", "[`f`](x)"),
    ("<pre><code class=lang-py>a</code></pre>", "```py\na\n```"),
    ("<pre><code> </code></pre>x", "```\n \n```\n\nx"),
    ("<ul><li></li><li>x</li></ul>", "-\n- x"),
    ("<ul><li><input type=checkbox> a</ul>", "- [ ] a"),
    ("<a href='a(b)'>a</a>", "[a](a(b))"),
    ("<a href='<x>'>a</a>", "[a](<x>)"),
    ("<a href=x><h2>a</h2></a>", "## [a](x)"),
    ("<xmp><b>x</b></xmp>", "```\n<b>x</b>\n```"),
    ("<ruby>a<rt>b</ruby>", "a(b)"),
    # tables stay tables, unless they lay out a page
    ("<table><tr><th>A<th>B<tr><td>1|2<td>a<br>b</table>", "| A | B |\n| --- | --- |\n| 1\\|2 | a<br>b |"),
    ("<table><thead><tr><th>A<tbody><tr><td>1<tfoot><tr><td>2</table>x", "| A |\n| --- |\n| 1 |\n| 2 |\n\nx"),
    ("<table><tr><td colspan=2>x<tr><td rowspan=2>y<td>z<tr><td>q</table>", "| x |  |\n| --- | --- |\n| y | z |\n|  | q |"),
    ("<table><caption>c</caption><tr><td>a<td>b</table>", "*c*\n\n| a | b |\n| --- | --- |"),
    ("<table><tr><td>a<td>b</tr>before</table>", "before\n\n| a | b |\n| --- | --- |"),
    ("<table><tr><td>x</table>", "x"),
    ("<table><tr><td><pre>a\nb</pre><td>x</table>", "```\na\nb\n```\n\nx"),
    ("<table><tr><td>a<table><tr><td>b<td>c</table><td>x</table>", "a\n\n| b | c |\n| --- | --- |\n\nx"),
    ("<table><tr><td><td></table>x", "x"),
    ("<ul><li><table><tr><td>a<td>b</table></ul>", "-   | a | b |\n    | --- | --- |\n    "),
    # preformatted text is a block of code, with all of its text and its lines
    ("<pre>a_b\n# c\n</pre>", "```\na_b\n# c\n```"),
    ("<pre class=language-sh>a</pre>", "```sh\na\n```"),
    ("<pre><code>a</code>\n<code>b</code></pre>", "```\na\nb\n```"),
    ("<pre><code>a<br>b<div>c</div><div>d\n</div>e</code></pre>", "```\na\nb\nc\nd\ne\n```"),
    # nothing that is apart is glued together
    ("<title>T</title><a href=x>y</a>", "T\n\n[y](x)"),
    ("<ul><li>a<ul><li>b</ul> tail</ul>", "-   a\n    \n    -   b\n    \n    tail"),
    ("<ol start=x><li>a</ol>", "1.  a"),
    # what runs something, or is data
    ("<a href=javascript:x()>a</a>", "a"),
    ("<a href='\u0001 java\nscript&colon;x()'>a</a>", "a"),
    ("<a href='&#106;avascript:x()'>a</a><a href=VBScript:x>b</a>", "ab"),
    ("<a href='data:text/html,x'>a</a>", "a"),
    ("<code>&lt;a href=\"javascript:e()\"&gt;</code>", "`<a href=\"javascript:e()\">`"),
    ("<img src='data:image/png;base64,AA' alt='a b'>", "a b"),
    # a bold that is closed in another block
    ("<b>a<p>b</b>c</p>d", "**a**\n\n**b**c\n\nd"),
    ("<a b='>x", "x"),
]
# fmt: on


def convert(html: str) -> str:
    return markdown(html)[0]


def marks(text: str) -> str:
    """The text without its white space: the library indents lists by two or three characters, Turndown by four."""
    return "".join(text.split())


@pytest.mark.parametrize("group", LIKE_TURNDOWN)
def test_like_turndown(group: str) -> None:
    cases = [(html, marks(markdown)) for html, markdown in LIKE_TURNDOWN[group]]
    assert [(html, marks(convert(html))) for html, _ in cases] == cases


@pytest.mark.parametrize(("html", "markdown"), ON_PURPOSE)
def test_other_than_turndown_on_purpose(html: str, markdown: str) -> None:
    assert marks(convert(html)) == marks(markdown)


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<ul><li>a<ul><li>b</ul><li>c</ul>", "- a\n    - b\n- c"),
        ("<ol><li>a<p>b</p><pre>c\nd</pre></ol>", "1. a\n\n    b\n\n    ```\n    c\n    d\n    ```"),
        ("<p>a\n b<br>c</p><p>d", "a b  \nc\n\nd"),
        ("a <b> b </b>c", "a **b** c"),
        ("<pre>a\n  b\n\nc</pre>", "```\na\n  b\n\nc\n```"),
        ("<pre>1\n2</pre>|<td><pre>f():\n  x</pre>", "```\n1\n2\n```\n\n|\n\n```\nf():\n  x\n```"),
        ("<blockquote><p>a<p>b</blockquote>", "> a\n>\n> b"),
    ],
)
def test_white_space(html: str, markdown: str) -> None:
    assert convert(html) == markdown


def test_code_beside_its_line_numbers_keeps_its_lines() -> None:
    html = "<table><tr><td class=linenos><pre>1\n2</pre></td><td><div><pre>f():\n  x\n</pre></div></td></tr></table>"
    assert convert(html) == "```\n1\n2\n```\n\n```\nf():\n  x\n```"


@pytest.mark.parametrize(
    "html",
    [
        "<<!-- -->a href=javascript:x>y</a>",
        "<textarea><a href=javascript:x>y</a></textarea>",
        "<iframe><a href=javascript:x>y</a></iframe>",
        "<title><a href=javascript:x>y</a></title>",
        "<a <a href=javascript:x>y</a>",
        "<svg><a href=javascript:x>y</a></svg>",
        "<a href='javascript:x' href=y>z</a>",
    ],
)
def test_no_link_that_runs_something_gets_through(html: str) -> None:
    assert "](" not in convert(html)


def test_what_is_nested_too_deeply_keeps_its_text() -> None:
    out, note = markdown(
        "<blockquote><ul><li><i>" * 9000 + "in" + "</i></li></ul></blockquote>" * 9000 + "<h1>out</h1>"
    )
    assert (out, note) == ("in\n\nout", PLAIN)


def test_spans_do_not_multiply_a_page() -> None:
    out = convert("<table>" + "<tr><td colspan=1000 rowspan=60000>x<td>y" * 10_000)
    assert out.count("x") == out.count("y") == 10_000
    assert len(out) < 1 << 20


def test_a_long_text() -> None:
    words = "one &amp; two\n" * 30_000
    assert convert(f"<p>{words}</p>") == " ".join(["one & two"] * 30_000)


# fmt: off
PARTS = (
    "<p>", "</p>", "<b>", "</b>", "<i>", "</i>", "<a href=x>", "</a>", "<ul>",
    "</ul>", "<ol start=7>", "</ol>", "<li>", "</li>", "<table>", "</table>", "<tr>", "<td colspan=2>",
    "</td>", "<pre>", "</pre>", "<code>", "</code>", "<br>", "<hr>", "<h2>", "</h2>",
    "<blockquote>", "</blockquote>", "<img src=y>", "<svg>", "</svg>", "<path/>", "<div>", "</div>", "<dt>",
    "<dd>", "<!-- c -->", "<script>s</script>", " ", "\n", "&nbsp;", "<", "&amp;", "*",
    "`", "1. ", "<caption>", "<option>", "<button>", "</button>", "<template>", "</template>", "<title>",
    "</title>",
)
# fmt: on


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=40))
def test_no_page_fails_and_text_is_kept_in_its_order(parts: list[str]) -> None:
    """Words between any tags come out once each, but for those in a template, which no browser shows."""
    parts = [part for part in parts if part != "<" and "template" not in part and part != "<title>"]
    html = "".join(f"{part}word{at}." for at, part in enumerate(parts))
    out = convert(html)
    for at in range(len(parts)):
        assert out.count(f"word{at}.") == 1
    if not any(part.startswith(("<t", "</t", "<caption")) for part in parts):  # a table's loose text goes before it
        places = [out.index(f"word{at}.") for at in range(len(parts))]
        assert places == sorted(places)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=60))
def test_any_tags_give_clean_lines(parts: list[str]) -> None:
    out = convert("".join(parts))
    assert out == out.strip("\t\r\n")
    assert "\0" not in out
    assert "before" in convert("before" + "".join(parts))


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_a_page(html: str) -> None:
    assert isinstance(convert(html), str)
