"""awk and sed: whether their little programs only look at text, or run commands and write files."""

from __future__ import annotations

import re

from .words import Word

_AWK = re.compile(r"system|getline|ARGV|@|print.*(?:>|(?<!\|)\|(?!\|))", re.DOTALL)
"""What an awk program needs to run a command or to write a file; before a ``print``, ``>`` and ``|`` compare."""
_AWK_VALUED = frozenset({"-F", "-v", "--field-separator", "--assign"})
_ADDRESS = r"(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n]|\\.)*/[IM]*)"
_SED_ADDRESS = re.compile(rf"(?:{_ADDRESS}(?:\s*,\s*[+~]?{_ADDRESS})?\s*)?!*\s*")
_SED_PLAIN = re.compile(r"[pPdDgGhHnNxz=lqQ{}]|[qQl]\s*\d+|:[^;\n]*|[btT][^;\n}]*|#[^\n]*|[aic]\\?[^\n]*")
_SED_FLAGS = re.compile(r"[gpiImM0-9]*")


def awk(arguments: list[Word]) -> str | None:
    """Why an awk command may do more than read, in words; None if it does not."""
    at = 0
    while at < len(arguments):
        word = arguments[at]
        if word.text is None:
            return f"the program that {word.source} passes to awk is only known at run time"
        if word.text in _AWK_VALUED:
            at += 2
        elif word.text.startswith(("-F", "-v")):
            at += 1
        elif word.text.startswith("-") and word.text != "-":
            return f"awk {word.text} can bring in a program from elsewhere"
        else:
            break
    if at < len(arguments) and _AWK.search(arguments[at].text or ""):
        return "this awk program can run commands or write files"
    return None


def sed(arguments: list[Word]) -> str | None:
    """Why a sed command may do more than edit text, in words; None if it does not."""
    programs: list[str] = []
    first: str | None = None
    take = skip = False
    for word in arguments:
        text = word.text
        if text is None:
            if take or (first is None and not programs):
                return f"the program {word.source} gives sed, only running it can tell"
            continue
        if take:
            programs.append(text)
            take = False
        elif skip:
            skip = False
        elif re.fullmatch(r"-[nErsuz]*l|--l[a-z-]*", text):
            skip = True
        elif re.match(r"--(?:fi|f$)|-[nEersuzi]*f", text) and not text.startswith("-i"):
            return "sed takes its program from a file"
        elif re.fullmatch(r"-[nErsuz]*e|--ex?p?r?e?s?s?i?o?n?", text):
            take = True
        elif text.startswith("--e") and "=" in text:
            programs.append(text.partition("=")[2])
        elif text.startswith("-e"):
            programs.append(text[2:])
        elif first is None and not text.startswith("-"):
            first = text
    if not programs and first is not None:
        programs = [first]
    if all(map(_harmless, programs)):
        return None
    return "this sed program can run commands or write files, or can't be read"


def _harmless(program: str) -> bool:
    """Whether a sed program is made of commands that only change text."""
    at = 0
    while at < len(program):
        if program[at] in "; \t\n":
            at += 1
            continue
        address = _SED_ADDRESS.match(program, at)
        at = address.end() if address else at
        if at >= len(program):
            return True
        end = _substituted(program, at) if program[at] in "sy" else None
        if end is None:
            plain = _SED_PLAIN.match(program, at) if program[at] not in "sy" else None
            if plain is None or plain.end() == at:
                return False
            end = plain.end()
        at = end
        if at < len(program) and program[at] not in "; \t\n}{" and program[at - 1] not in "{}":
            return False
    return True


def _substituted(program: str, at: int) -> int | None:
    """Where ``s/a/b/flags`` ends; None if it is none, or its flags do more than choose."""
    if at + 1 >= len(program) or program[at + 1] in "\\\n":
        return None
    mark, position = program[at + 1], at + 2
    for _ in range(2):
        while position < len(program) and program[position] != mark:
            position += 2 if program[position] == "\\" else 1
        position += 1
    if position > len(program):
        return None
    flags = _SED_FLAGS.match(program, position)
    return flags.end() if flags else position
