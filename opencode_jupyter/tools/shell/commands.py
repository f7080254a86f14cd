"""What single commands do: which run other commands, which take paths, which can't be told before."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise

from ...core.arity import prefix
from . import programs, tables
from .findings import ShellAsks
from .paths import Paths
from .words import Word

DEPTH = 6
"""Commands inside commands that are looked into."""


class Commands:
    """Reads commands by their words.

    Args:
        asks: where findings go.
        paths: where paths go.
        program: reads a text as a program: ``(text, depth, of)``.
    """

    def __init__(self, asks: ShellAsks, paths: Paths, program: Callable[[str, int, str], None]) -> None:
        self._asks = asks
        self._paths = paths
        self._program = program

    def run(self, parts: list[Word], text: str, depth: int, of: str, *, fed: bool = False, more: bool = False) -> None:
        """A command by its words, whether it stands for itself or inside another.

        Args:
            parts: its words, the program first.
            text: its text.
            depth: how many commands it is inside of.
            of: the sub-command it belongs to, as it is asked for.
            fed: its input comes from a pipe, a file or the text itself.
            more: words that are not known follow (xargs).
        """
        head = parts[0]
        if head.source in tables.RESERVED:
            # ``time { rm x; }``: the grammar takes the brace for an argument
            self._asks.opaque(text, f"{head.source} begins a group of commands that could not be read", of)
            if len(parts) > 1:
                self.run(parts[1:], text, depth, of, fed=fed, more=more)
            return
        if head.text is None or head.glob or not head.text:
            self._asks.opaque(text, f"which command {head.source} is, only running it can tell", of)
            return
        shown = " ".join(word.shown for word in parts)
        name = os.path.basename(head.text)
        always = " ".join([*prefix([name, *(word.shown for word in parts[1:])]), "*"])
        if shown != of:
            self._asks.judge(shown, (always,), of)
        if name != head.text:
            self._asks.judge(" ".join([name, *(word.shown for word in parts[1:])]), (always,), of)
        arguments = parts[1:]
        if name in tables.PATH_COMMANDS or name in tables.WRITERS:
            self._paths.arguments(name, arguments)
        elif name == "dd":
            for word in arguments:
                if word.shown.startswith("of="):
                    self._paths.touch(Word(word.source, None if word.text is None else word.text[3:]))
        if depth >= DEPTH:
            self._asks.opaque(text, "it nests too deep", of)
            return
        if self._paths.wrote(head) or (
            (name in tables.SHELLS or tables.INTERPRETERS.fullmatch(name) or name in tables.OPAQUE)
            and any(self._paths.wrote(word) for word in arguments)
        ):
            self._asks.opaque(text, "it runs a file that this same line writes", of)
        self._inside(name, arguments, text, depth, of, fed=fed, more=more)

    def _inside(
        self, name: str, arguments: list[Word], text: str, depth: int, of: str, *, fed: bool, more: bool
    ) -> None:
        """What a command that runs others runs."""
        reason = programs.runs(name, arguments, fed=fed or more)
        if reason is not None:
            self._asks.opaque(text, reason, of)
        elif name in tables.OPAQUE or (name in tables.OPAQUE_WITH and _has(arguments, tables.OPAQUE_WITH[name])):
            self._asks.opaque(text, f"what {name} does depends on more than this line", of)
        elif name == "eval":
            self._code(arguments, text, depth, of)
        elif name in tables.SHELLS:
            self._shell(arguments, text, depth, of, fed=fed)
        elif found := tables.INTERPRETERS.fullmatch(name):
            inline = tables.INLINE_CODE[found[1]]
            given = _options(arguments)
            if (
                fed
                or (more and not arguments)
                or any(w.text is None or inline.match(w.text) for w in given)
                or (found[1] in ("python", "pypy") and _module(arguments) in tables.RUNNING_MODULES)
            ):
                self._asks.opaque(text, f"it gives {name} a program to run", of)
        elif name == "find":
            self._find(arguments, text, depth, of)
        elif name in tables.WRAPPERS:
            self._unwrap(name, arguments, text, depth, of, fed=fed, more=more)

    def _code(self, arguments: list[Word], text: str, depth: int, of: str) -> None:
        """``eval`` and ``sh -c``: the words are a program."""
        if any(word.text is None or word.glob for word in arguments):
            self._asks.opaque(text, "the program it runs is not known before", of)
        elif arguments:
            self._program(" ".join(word.shown for word in arguments), depth + 1, of)

    def _shell(self, arguments: list[Word], text: str, depth: int, of: str, *, fed: bool) -> None:
        for index, word in enumerate(arguments):
            if word.text is None:
                self._asks.opaque(text, "what it gives the shell is not known before", of)
                return
            if not word.text.startswith(("-", "+")) or word.text in ("-", "--"):
                break
            if not word.text.startswith("--") and "c" in word.text:
                code = next((w for w in arguments[index + 1 :] if not w.source.startswith(("-", "+"))), None)
                self._code([code] if code is not None else [], text, depth, of)
                return
        else:
            fed = fed or not arguments
        if fed or not any(not (w.text or "").startswith("-") for w in arguments):
            self._asks.opaque(text, "a shell reads its commands from somewhere else", of)

    def _find(self, arguments: list[Word], text: str, depth: int, of: str) -> None:
        inner: list[Word] | None = None
        for word in arguments:
            if inner is None:
                if word.text in tables.FIND_EXEC:
                    inner = []
                elif word.text in tables.FIND_WRITES:
                    self._asks.opaque(text, f"find's {word.text} changes files", of)
            elif word.text in (";", "+"):
                if inner:
                    self.run(inner, " ".join(w.source for w in inner), depth + 1, of)
                inner = None
            else:
                inner.append(word)
        if inner:
            self.run(inner, " ".join(w.source for w in inner), depth + 1, of)

    def _unwrap(
        self, name: str, arguments: list[Word], text: str, depth: int, of: str, *, fed: bool, more: bool
    ) -> None:
        """The command inside: after the wrapper's options, their values, and its own words."""
        valued, skip = tables.WRAPPERS[name]
        options = valued.split()
        index = 0
        while index < len(arguments):
            word = arguments[index]
            if word.text is None and not word.source.startswith("-"):
                break
            shown = word.shown
            if name in ("env", "sudo", "doas") and not shown.startswith("-") and "=" in shown:
                if tables.DANGEROUS.fullmatch(shown.partition("=")[0]):
                    self._asks.opaque(text, f"it sets {shown.partition('=')[0]}, which decides what runs", of)
                index += 1
            elif shown.startswith("-") and (shown != "-" or name == "env"):
                if name == "env" and shown.startswith(("-S", "--split-string")):
                    self._asks.opaque(text, "env -S splits a text into a command", of)
                if name == "command" and shown in ("-v", "-V"):
                    return
                index += 2 if shown in options else 1
            elif skip:
                skip -= 1
                index += 1
            else:
                break
        inner = arguments[index:]
        if name == "coproc" and len(inner) > 1 and inner[1].source in tables.RESERVED:
            inner = inner[1:]  # its name
        if name == "xargs":
            self._each(arguments[:index], inner, text, depth, of)
        elif inner:
            self.run(inner, " ".join(w.source for w in inner), depth + 1, of, fed=fed, more=more)
        elif more:
            self._asks.opaque(text, f"what {name} runs is read from its input", of)

    def _each(self, options: list[Word], inner: list[Word], text: str, depth: int, of: str) -> None:
        """The command that xargs runs: what it reads comes behind the words, or in place of a mark among them."""
        if not inner:
            return  # echo
        mark = _mark(options)
        name = os.path.basename(inner[0].shown)
        runs_text = name in tables.SHELLS or name in tables.WRAPPERS or tables.INTERPRETERS.fullmatch(name)
        if mark and (mark in inner[0].shown or (runs_text and any(mark in word.shown for word in inner[1:]))):
            self._asks.opaque(text, "what it runs is read from its input", of)
        self.run(inner, " ".join(w.source for w in inner), depth + 1, of, more=True)


def _has(arguments: list[Word], options: str) -> bool:
    """Whether one of the letters stands among a builtin's options, or may."""
    return any(
        word.text is None or (word.text.startswith("-") and not set(word.text[1:]).isdisjoint(options))
        for word in arguments
    )


def _mark(options: list[Word]) -> str:
    """What xargs replaces by what it reads; empty if it puts that at the end."""
    mark = ""
    for index, word in enumerate(options):
        text = word.shown
        if text.startswith("-I"):
            mark = text[2:] or (options[index + 1].shown if index + 1 < len(options) else "{}")
        elif text.startswith("-i"):
            mark = text[2:] or "{}"
        elif text.startswith("--rep"):
            mark = text.partition("=")[2] or "{}"
    return mark


def _module(arguments: list[Word]) -> str:
    """What ``python -m`` runs."""
    for option, following in pairwise([*arguments, Word("", "")]):
        if option.shown == "-m":
            return following.shown
        if option.shown.startswith("-m"):
            return option.shown[2:]
    return ""


def _options(arguments: list[Word]) -> list[Word]:
    """The words an interpreter reads as its own options: those before the first that is none."""
    out = []
    for word in arguments:
        if word.text is not None and not word.text.startswith("-") and word.text != "eval":
            break
        out.append(word)
    return out
