"""Input transformers of magics: an ``await`` before them, a ``?`` at their end left to ``%tool``.

IPython has already turned ``%tool x`` into ``get_ipython().run_line_magic('tool', 'x')`` when this runs. Where an
``await`` may stand (module level, or inside an ``async def``) the call becomes
``await get_ipython().run_line_magic('tool_awaited', …)``.
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from collections.abc import Iterable
from types import FrameType
from typing import Any

from IPython.core.inputtransformer2 import TokenTransformBase, assemble_continued_line, find_end_of_continued_line

AWAITED = {"tool": "tool_awaited", "agent": "agent_awaited"}
"""Magic -> the magic that gives an awaitable."""
CALLS = ("run_line_magic", "run_cell_magic")
NESTED = frozenset({"run_line_magic", "run_cell_magic", "run_cell", "_run_cell", "safe_execfile_ipy", "complete"})
"""Functions of IPython that transform code to run it themselves, where an ``await`` can't be served."""


def await_magics(lines: list[str]) -> list[str]:
    """Rewrite the lines of a transformed cell; lines without magics of ours are returned unchanged."""
    source = "".join(lines)
    if not any(f"('{magic}'" in source for magic in AWAITED) or _is_nested():
        return lines
    try:
        tree = compile(source, "<cell>", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except (SyntaxError, ValueError):
        return lines
    finder = _Finder()
    finder.visit(tree)
    return _rewrite(source, finder) if finder.magic_calls else lines


def _is_nested() -> bool:
    """Whether a magic or `run_cell` inside a running cell asked for the transformation."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_name
        if name == "do_execute":
            return False
        if name in NESTED:
            return True
        frame = frame.f_back
    return True  # no kernel above: a terminal, whose loop does not run between cells


class _Finder(ast.NodeVisitor):
    """Finds calls of our magics where ``await`` is allowed."""

    def __init__(self) -> None:
        self.magic_calls: list[tuple[ast.Call, str]] = []
        self.awaited: set[ast.expr] = set()
        """Calls after an ``await`` of the user's."""
        self._allowed = [True]

    def _inside(self, nodes: Iterable[ast.AST], allowed: bool) -> None:
        self._allowed.append(allowed)
        for node in nodes:
            self.visit(node)
        self._allowed.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """A plain function: its body can't await."""
        self._inside(node.body, False)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        """An async function: its body can."""
        self._inside(node.body, True)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """A class body can't, its async methods can."""
        self._inside(node.body, False)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """A lambda can't."""
        self._inside([node.body], False)

    def visit_Await(self, node: ast.Await) -> None:
        """Note what is awaited already."""
        self.awaited.add(node.value)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Note a call of one of our magics."""
        function = node.func
        if (
            self._allowed[-1]
            and isinstance(function, ast.Attribute)
            and function.attr in CALLS
            and isinstance(function.value, ast.Call)
            and isinstance(function.value.func, ast.Name)
            and function.value.func.id == "get_ipython"
            and node.args
            and isinstance(node.args[0], ast.Constant)
            and node.args[0].value in AWAITED
            and not _empty_body(node)
        ):
            self.magic_calls.append((node, node.args[0].value))
        self.generic_visit(node)


def _empty_body(node: ast.Call) -> bool:
    """A cell magic without a body, which IPython refuses; its error should name the magic that was typed."""
    body = node.args[2] if len(node.args) > 2 else None
    return isinstance(body, ast.Constant) and body.value == ""


def _rewrite(source: str, finder: _Finder) -> list[str]:
    # Lines as Python counts them (str.splitlines knows more ends); ast counts columns in bytes.
    rows = [line.encode() for line in re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", source)]
    for node, magic in sorted(finder.magic_calls, key=lambda f: (f[0].lineno, f[0].col_offset), reverse=True):
        row = rows[node.lineno - 1]
        head, rest = row[: node.col_offset], row[node.col_offset :]
        name = node.args[0]
        if name.lineno != node.lineno:
            continue
        start = name.col_offset - node.col_offset
        end = (name.end_col_offset or 0) - node.col_offset
        rest = rest[:start] + repr(AWAITED[magic]).encode() + rest[end:]
        rows[node.lineno - 1] = head + (b"" if node in finder.awaited else b"await ") + rest
    return [row.decode() for row in rows]


class ToolQuestion(TokenTransformBase):
    """Keeps a ``?`` at the end of a ``%tool`` line, which IPython takes for a question about the line's last name.

    ``%tool read?`` asks for the tool's help, and ``%tool bash ls a?`` is a command with a wildcard. The line is turned
    into the magic's call before IPython's own help sees it.
    """

    priority = 4
    """Before ``HelpEnd`` (5), which begins at the line's first token too: the earlier column would come first."""

    def __init__(self, start: tuple[int, int], magic: int) -> None:
        super().__init__(start)  # type: ignore[no-untyped-call]
        self.magic = magic
        """Column of the ``%``."""

    @classmethod
    def find(cls, tokens_by_line: list[list[Any]]) -> ToolQuestion | None:
        """The first line of a cell that begins with ``%tool NAME`` (or assigns it) and ends with ``?``."""
        for line in tokens_by_line:
            if len(line) < 4 or line[-2].string != "?":
                continue
            at = next((i for i, t in enumerate(line) if t.type not in (tokenize.INDENT, tokenize.DEDENT)), 0)
            for i in range(at, len(line) - 3):
                first = i == at or line[i - 1].string == "="
                if (
                    first
                    and line[i].string == "%"
                    and line[i + 1].string in ("tool", "tool_awaited")
                    and line[i + 2].string != "?"
                ):
                    return cls(line[at].start, line[i].start[1])
        return None

    def transform(self, lines: list[str]) -> list[str]:
        """The cell with that line as a call."""
        end = find_end_of_continued_line(lines, self.start_line)
        text = assemble_continued_line(lines, (self.start_line, self.magic), end)
        name, _, rest = text[1:].strip().partition(" ")
        head = lines[self.start_line][: self.magic]
        call = f"{head}get_ipython().run_line_magic({name!r}, {rest.strip()!r})\n"
        return [*lines[: self.start_line], call, *lines[end + 1 :]]
