"""Where a line calculates, and whether it does so with anything but numbers that it sets itself.

Bash calculates with more than numbers: where it takes a value for one (``$((x))``, ``${y:x}``, ``${y[x]}``,
``[[ x -eq 1 ]]``) and where it takes one for a name (``${!x}``, ``[[ -v x ]]``), it runs a ``$(command)`` inside the
value. So every variable that is calculated with must be set in the line, and each time to plain digits. ``${x@P}``
reads any value as a prompt, which runs the commands in it too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

AS_PROMPT = "it reads a value as a prompt, and the shell runs the commands in that"
AS_NUMBER = "it calculates with a value only known at run time, and the shell runs commands inside such a value"
PROMPT = re.compile(r"@P\s*\}")

_DIGITS = re.compile(r"[\"']?[+-]?\d*[\"']?")
_COUNT = (
    r"\$\(\s*(?:nproc|(?:[^()`;&|<>{}\n]+\|\s*)+wc -[clmw]+|wc -[clmw]+\s*<\s*[\w./-]+|date '?\+%[sYmdHMjNu]+'?"
    r"|id -[ug]|git rev-list --count [\w./-]+)\s*\)"
)
"""Substitutions that give nothing but a number."""
_HARMLESS = r"\$\{#\w+(?:\[[@*]\])?\}|\$[#?$!]|\$\{[#?$!]\}|\b0[xX][\da-fA-F]+\b|\b\d+#\w+\b"
_OPAQUE = re.compile(r"[`'\\@]|\$\((?!\()|\$\{!|\$\{?[\d*_-]")
_NAME = re.compile(r"[A-Za-z_]\w*")
ASSIGNED = r"([A-Za-z_]\w*)(?:\[[^\]]*\])?\s*(?:\+\+|--|(?:[-+*/%&|^]|<<|>>)?=(?!=))|(?:\+\+|--)\s*([A-Za-z_]\w*)"
_DYNAMIC = frozenset("RANDOM SRANDOM SECONDS LINENO EPOCHSECONDS UID EUID PPID BASHPID HISTCMD OPTIND".split())
"""Numbers of the shell's own; what they are set to is calculated."""
_SET_BY_SHELL = r"_|BASH.*|PWD|OLDPWD|REPLY|OPTARG|MAPFILE|FUNCNAME|DIRSTACK|COPROC|READLINE_.*|COMP_.*"
_COMPARED = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_IN_TEXT = r"(?s)\$\(\((.*?)\)\)|\$\[(.*?)\]|\$\{[^}]*?[\[:]([^}]*)\}|\$\{(![^}]*)\}"


def is_number(text: str) -> bool:
    """Return whether a text is plain digits."""
    return _DIGITS.fullmatch(text) is not None


class Arithmetic:
    """Gathers what a line sets and what it calculates with; `findings` compares the two.

    Args:
        command: the whole line.
    """

    def __init__(self, command: str) -> None:
        self._functions = re.search(r"\(\s*\)|\bfunction\b", command) is not None
        self._numbers: set[str] = set()
        self._others: set[str] = set()
        self._integers: set[str] = set(_DYNAMIC)
        self._keyed: set[str] = set()
        self._uses: list[tuple[set[str] | None, bool, str, str]] = []

    def counts(self, written: str) -> bool:
        """Return whether a substitution gives nothing but a number."""
        return not self._functions and re.fullmatch(_COUNT, written) is not None

    def sets(self, name: str, *, number: bool = False) -> None:
        """A variable is set: to plain digits, or to something else."""
        (self._numbers if number else self._others).add(name)

    def declares(self, name: str, letters: str) -> None:
        """A variable is declared with these options."""
        if "i" in letters:
            self._integers.add(name)
        if "A" in letters:
            self._keyed.add(name)

    def is_keyed(self, name: str) -> bool:
        """Return whether a variable, or an element of one, is of an array with texts as keys."""
        return name.partition("[")[0] in self._keyed

    def uses(self, text: str, written: str, of: str, *, keys: bool = False) -> None:
        """A text is calculated.

        Args:
            text: what is calculated.
            written: what it is part of, for the request.
            of: the sub-command it belongs to.
            keys: it may be no more than the key of an array.
        """
        for match in re.finditer(ASSIGNED, text):
            self._numbers.add(match[1] or match[2])
        text = text.replace('"', "") if self._functions else re.sub(_COUNT, "0", text.replace('"', ""))
        text = re.sub(_HARMLESS, "0", text)
        self._uses.append((None if _OPAQUE.search(text) else set(_NAME.findall(text)), keys, written, of))

    def findings(self) -> Iterator[tuple[str, str]]:
        """What is calculated from more than plain digits, with the sub-command it belongs to."""
        for names, keys, written, of in self._uses:
            known = self._others.__contains__ if keys else self._is_unknown
            if names is None or any(known(name) for name in names):
                yield written, of
        for name in self._integers & self._others:
            yield name, ""

    def _is_unknown(self, name: str) -> bool:
        ours = name in self._numbers or name in _DYNAMIC
        return not ours or name in self._others or re.fullmatch(_SET_BY_SHELL, name) is not None

    def value(self, nodes: list[Node], source: Callable[[Node], str]) -> bool:
        """Return whether a variable's value is a number, or an array of them."""
        return all(self._is_value(node, source) for node in nodes)

    def _is_value(self, node: Node, source: Callable[[Node], str]) -> bool:
        inner = [child for child in node.children if child.is_named]
        if node.type == "array":
            return all(self._is_value(child, source) for child in inner)
        written = source(node)
        if node.type == "string" and len(inner) == 1 and written == f'"{source(inner[0])}"':
            return self._is_value(inner[0], source)
        return node.type == "arithmetic_expansion" or is_number(written) or self.counts(written)

    def look(self, node: Node, parent: Node | None, source: Callable[[Node], str], of: str) -> None:
        """Note what one node calculates."""
        written, children = source(node), node.children
        match node.type:
            case "arithmetic_expansion":
                self.uses(written[written.startswith("$((") + 2 :], written, of)
            case "compound_statement" if children and children[0].type == "((":
                self.uses(written, written, of)
            case "c_style_for_statement":
                body = next((c for c in children if c.type in ("do_group", "compound_statement")), None)
                head = written if body is None else written[: len(written) - len(source(body))]
                self.uses(re.sub(r"^for|;\s*(?:do)?\s*$", "", head), written, of)
            case "subscript" if (text := written.partition("[")[2][:-1]) not in ("@", "*"):
                self.uses(text, written, of, keys=source(children[0]) in self._keyed)
            case "array":
                keyed = parent is not None and source(parent.children[0]) in self._keyed
                for key in re.findall(r"(?:^\(|\s)\[([^\]]*)\]\+?=", written):
                    self.uses(key, written, of, keys=keyed)
            case "test_command":
                if re.search(r"(?<![\w-])-[vR]\s+(?!\w+(?:\s|\]|$))", written):
                    self._uses.append((None, False, written, of))
                if children[0].type == "[[":
                    self._compared(node, source, of)
            case "expansion":
                self._expands(node, source, of)
            case "heredoc_body":
                for match in re.finditer(_IN_TEXT, written):
                    self.uses(next(filter(None, match.groups()), ""), match[0], of)

    def _expands(self, node: Node, source: Callable[[Node], str], of: str) -> None:
        """``${!x}`` takes a value for a name, ``${x:y}`` calculates."""
        written, types = source(node), [child.type for child in node.children]
        if "!" in types[:2] and not re.fullmatch(r"\$\{!\w+(?:[*@]|\[[@*]\])\}", written):
            self._uses.append((None, False, written, of))
        elif ":" in types:
            self.uses("".join(map(source, node.children[types.index(":") + 1 : -1])), written, of)

    def _compared(self, test: Node, source: Callable[[Node], str], of: str) -> None:
        """``[[ a -eq b ]]`` calculates both sides."""
        written, stack = source(test), list(test.children)
        operators = len(re.findall(r"(?<![\w-])-(?:eq|ne|lt|le|gt|ge)(?![\w-])", written))
        while stack:
            node = stack.pop()
            stack += node.children
            texts = [source(child) for child in node.children]
            if _COMPARED & set(texts):
                operators -= 1
                for text in texts:
                    if text not in _COMPARED:
                        self.uses(text, written, of)
        if operators > 0:
            self._uses.append((None, False, written, of))
