"""A ``?`` at the end of a %tool line belongs to the tool, and everything else stays IPython's."""

from __future__ import annotations

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from opencode_jupyter.jupyter.magics.input_transformers import ToolQuestion


@pytest.mark.parametrize(
    ("cell", "transformed"),
    [
        ("%tool read?", "get_ipython().run_line_magic('tool', 'read?')"),
        ("r = %tool read?", "r = get_ipython().run_line_magic('tool', 'read?')"),
        ("a = b = %tool bash ls a?", "a = b = get_ipython().run_line_magic('tool', 'bash ls a?')"),
        ("r = %tool bash ls b?\nr", "r = get_ipython().run_line_magic('tool', 'bash ls b?')\nr"),
        ("if x:\n    %tool bash ls b?\n    y", "if x:\n    get_ipython().run_line_magic('tool', 'bash ls b?')\n    y"),
        ("%tool bash echo it's ok?", "get_ipython().run_line_magic('tool', \"bash echo it's ok?\")"),
        ("%tool bash a \\\n  b?", "get_ipython().run_line_magic('tool', 'bash a    b?')"),
        ("%tool read a", "get_ipython().run_line_magic('tool', 'read a')"),
        ("%tool?", "get_ipython().run_line_magic('pinfo', '%tool')"),
        ("%tools?", "get_ipython().run_line_magic('pinfo', '%tools')"),
        ("print?", "get_ipython().run_line_magic('pinfo', 'print')"),
        ("s = '''\n%tool read?\n'''", "s = '''\n%tool read?\n'''"),
        ("x = 7 % tool.n", "x = 7 % tool.n"),
    ],
)
def test_transformed(cell: str, transformed: str) -> None:
    manager = TransformerManager()
    manager.token_transformers.append(ToolQuestion)
    assert manager.transform_cell(cell) == transformed + "\n"
