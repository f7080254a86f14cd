"""The descriptions of parameters in a docstring, in Google's, NumPy's or Sphinx's style."""

from __future__ import annotations

import logging
import re

from docstring_parser.google import DEFAULT_SECTIONS, GoogleParser, Section, SectionType
from docstring_parser.numpydoc import NumpydocParser
from docstring_parser.rest import parse as parse_sphinx

log = logging.getLogger(__name__)
_KEYWORDS = [Section(title, "param", SectionType.MULTIPLE) for title in ("Keyword Args", "Keyword Arguments")]
_PARSERS = (GoogleParser([*DEFAULT_SECTIONS, *_KEYWORDS]).parse, NumpydocParser().parse, parse_sphinx)


def parameter_texts(doc: str) -> dict[str, str]:
    """Each parameter's text, its lines joined; empty for a docstring without any.

    Args:
        doc: as `inspect.getdoc` gives it, without the indentation of the code.
    """
    texts: dict[str, str] = {}
    for parse in _PARSERS:
        try:
            parameters = parse(f"\n{doc}").params
        except Exception as error:  # also what the library raises for a text it did not expect: IndexError, for one
            log.debug("not a docstring of this style: %s", error)
            continue
        for parameter in parameters:
            text = " ".join((parameter.description or "").split())
            names = re.findall(r"\w+", parameter.arg_name) if text and parameter.args[0] != "attribute" else []
            texts |= {name: text for name in names if name not in texts}
    return texts
