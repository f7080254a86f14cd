"""Shells and interpreters: whether a command gives them a program to run, or names a file of one.

``python3 clean.py`` is what it says; ``python3 -c ...`` and ``python3 < x`` run what no rule for ``python3`` can see.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .word_expansion import Word
from .wrappers import Options, ParsedOptions, parse_options

SHELLS = frozenset("sh bash rbash dash zsh ksh ksh93 ash mksh fish csh tcsh nu elvish yash posh".split())
_BASH = frozenset({"bash", "rbash"})
_POSIX = frozenset({"sh", "dash", "ash"})
_SHELL = Options(
    flags="abefhiklmnprstuvxBCDEHPT",
    valued="oO",
    long_flags=frozenset(
        "login norc noprofile posix restricted verbose version help noediting debugger debug dump-strings "
        "dump-po-strings pretty-print".split()
    ),
    long_valued=frozenset({"rcfile", "init-file"}),
)
_NOT_POSIX = r"\$'|&>|\[\[|(?<!\$)\(\("
"""What bash reads as one thing and a plain ``sh`` as another: ``((rm x))``, ``[[ a || rm x ]]``, ``a &>b rm x``."""
_NOT_BASH = (
    r"(?:^|[\s;&|({])=[\w(/]|(?:^|[;&|({\n])\s*-\s|[*?\])]\(|\$\{\(|~\[|&[!|]|\^\^|<->|\(#|\$[+=~^]"
    r"|\b(?:repeat|noglob|nocorrect|foreach|zmodload|autoload|sched|zle|setopt|unsetopt|TRAP\w+)\b|\bfor\s+[^;\n]*\("
    r"|\b(?:f?path|aliases|commands|functions|precmd|preexec|chpwd|zshexit)(?:\[[^\]]*\])?\+?(?:=|\()"
)
"""What zsh reads as a command and bash does not: ``=rm x``, ``*(e:'rm x':)``, ``repeat 2 rm x``, ``- rm x``."""
_ANY_SHELL = re.compile(r"[\w\s./:,@%+-]*")
"""A text that every shell reads alike."""
STREAM = re.compile(r"-|/dev/(?:stdin|fd/\d+)|/proc/[^/]+/fd/\d+")
"""Names of files that are what the program is fed."""


class Interpreter(NamedTuple):
    """What is known of an interpreter.

    Attributes:
        code: options that bring in a program, or a file to run beside the named one.
        valued: letters that take a value which is no program.
        long_valued: long options that do.
        alone: options with which it needs no program.
    """

    code: str
    valued: str = ""
    long_valued: frozenset[str] = frozenset()
    alone: str = r"--?(?:version|help|v|V|h|\?)|-VV"


def _code(letters: str, long: str = "eval exec print execute command require import", flags: str = "A-Za-z0-9") -> str:
    names = "|".join(long.split())
    return rf"-(?!-)[{flags}]*?[{letters}]|--(?:{names})\b|(?:eval|inspect)$"


_PYTHON = Interpreter(_code("ci", r"ext\w* \w+App\.\w+", "bBdEIOPqRsSuvx"), "WX", frozenset({"check-hash-based-pycs"}))
_NODE = Interpreter(
    _code(
        "epr",
        "eval print require import inspect loader experimental-loader experimental-config-file env-file openssl-config "
        "run",
    ),
    "C",
    frozenset({"conditions"}),
)
_EVAL = Interpreter(r"--?(?:e|E|c|f|g|x|p|eval|evaluate|expression|execute|run|command|batch|init-file)\b|-[ecr].")
_R = Interpreter(r"-[de]\b|--e(?:val)?\b|--debugger", "g", alone=r"-f.*|--file.*|--version|--help|-h")
_R_COMMANDS = frozenset(
    "BATCH build check COMPILE config INSTALL javareconf LINK Rd2pdf Rd2txt Rdconv Rdiff REMOVE Rprof rtags SHLIB "
    "Stangle Sweave texi2dvi".split()
)
"""What ``R CMD`` names other than a program."""
_INTERPRETERS: dict[str, Interpreter] = {
    **dict.fromkeys(("python", "pypy", "ipython", "bpython", "ptpython"), _PYTHON),
    **dict.fromkeys(("node", "nodejs", "deno", "bun", "tsx", "ts-node"), _NODE),
    "perl": Interpreter(r"-[A-Za-z0-9]*?[eEMm]|-[A-Za-z]*dt?:", "I"),
    "ruby": Interpreter(_code("er"), "ICE"),
    "php": Interpreter(_code("rBREdz", r"run define process-\w+ zend-extension"), "cSt"),
    **dict.fromkeys(("R", "Rscript"), _R),
    "pwsh": Interpreter(""),
    "xonsh": Interpreter(_code("c"), "D"),
    **dict.fromkeys(("lua", "luajit"), Interpreter(_code("el"))),
    **dict.fromkeys(("tclsh", "wish"), Interpreter(r"$^", "", frozenset({"encoding"}))),
    **dict.fromkeys(
        (
            "osascript julia octave octave-cli matlab gnuplot ghc runghc runhaskell scala groovy jshell erl "
            "elixir iex guile racket sbcl clisp ocaml swipl sage maxima"
        ).split(),
        _EVAL,
    ),
}
_NAME = re.compile(r"(" + "|".join(map(re.escape, sorted(_INTERPRETERS, key=len, reverse=True))) + r")[\d.]*")
RUNNING_MODULES = frozenset(
    "timeit pdb code trace cProfile profile runpy asyncio IPython ptpython bdb zipfile tarfile pickle sqlite3 "
    "idlelib".split()
)
"""Python's modules that run a program they are given, or write files whose names are in another."""


def interpreter(name: str) -> str | None:
    """Which interpreter a program is; None if it is none."""
    match = _NAME.fullmatch(name)
    return match[1] if match else None


def inline_program(name: str, arguments: list[Word]) -> str | None:
    """Why an interpreter may run more than a file its command names, in words; None if it does not.

    Args:
        name: the interpreter (`interpreter`).
        arguments: its words.
    """
    known = _INTERPRETERS[name]
    reason = f"it passes {name} a program to run"
    if name == "R" and [word.text for word in arguments[:1]] == ["CMD"]:
        return None if len(arguments) > 1 and arguments[1].text in _R_COMMANDS else "R CMD runs a program"
    at, sure = 0, True
    while at < len(arguments):
        word = arguments[at]
        text = word.text
        if text is None or re.match(known.code, text.replace("_", "-") if known is _NODE else text):
            return reason
        if text == "--":
            at += 1
            break
        if re.fullmatch(known.alone, text):
            return None
        if not text.startswith("-") or text == "-":
            break
        module = re.fullmatch(r"-[bBdEiIOPqRsSuvx]*m(.*)", text) if known is _PYTHON else None
        if module:
            what = module[1] or (arguments[at + 1].shown if at + 1 < len(arguments) else "")
            return reason if what in RUNNING_MODULES or not what else None
        is_long = text.startswith("--")
        letter = "" if is_long else next((char for char in text[1:] if char in known.valued), "")
        if letter:
            at += 2 if text.endswith(letter) else 1
        elif text[2:] in known.long_valued:
            at += 2
        else:
            sure = False  # it may take the next word as its value
            at += 1
    rest = arguments[at:]
    if not rest or rest[0].text is None or STREAM.fullmatch(rest[0].text):
        return None if rest == [] and known.code == "" else reason
    if not sure and any(w.text is None or (w.text.startswith("-") and re.match(known.code, w.text)) for w in rest[1:]):
        return reason
    return None


def module(arguments: list[Word]) -> list[Word]:
    """The module that ``python -m`` runs, and its words; empty if there is none."""
    before = ""
    for at, word in enumerate(arguments):
        if match := re.fullmatch(r"-[bBdEiIOPqRsSuvx]*m(.*)", word.shown):
            rest = arguments[at + 1 :]
            return [Word(match[1], match[1]), *rest] if match[1] else rest
        if not word.shown.startswith("-") and before not in ("-W", "-X", "--check-hash-based-pycs"):
            break
        before = word.shown
    return []


def coverage(arguments: list[Word]) -> str | None:
    """Why a coverage command may run more than a file or a module it names, in words; None if it does not."""
    shown = [word.shown for word in arguments]
    inner = arguments[shown.index("-m") + 1 :] if "-m" in shown else module(arguments[1:])
    return f"it passes {inner[0].shown} a program to run" if inner and inner[0].shown in RUNNING_MODULES else None


def shell_options(arguments: list[Word]) -> tuple[ParsedOptions, Word | None, str | None]:
    """A shell's options, the program text it is given with ``-c``, and why that is not known, in words.

    The text is None if there is no ``-c``.
    """
    plus = [Word(w.source, "-" + w.text[1:]) if w.text and w.text.startswith("+") else w for w in arguments]
    wants, code = False, None
    rest = list(plus)
    parsed = ParsedOptions()
    while rest:
        word = rest[0]
        if word.text is None:
            return parsed, None, "what it passes to the shell is only known at run time"
        if word.text in ("--", "-"):
            rest = rest[1:]
            break
        if not word.text.startswith("-"):
            break
        rest = rest[1:]
        name = word.text.lstrip("-").partition("=")[0]
        if word.text.startswith("--") or name in _SHELL.long_valued | _SHELL.long_flags:  # one dash will do
            long_option = parse_options(_SHELL, [Word(word.source, "--" + word.text.lstrip("-"))])
            parsed.options += long_option.options
            parsed.sure &= long_option.sure
            if long_option.options and long_option.options[0][0] in _SHELL.long_valued:
                if "=" not in word.text:
                    rest = rest[1:]
                return parsed, None, "it makes the shell run a file first"
            continue
        for letter in word.text[1:]:
            if letter == "c":  # the text is the first word that is no option; each o takes one before it
                wants = True
            elif letter in _SHELL.valued:
                rest = rest[1:]
            parsed.options.append((letter, ""))
    parsed.rest = rest
    if wants:
        code = rest[0] if rest else Word("", "")
    return parsed, code, None


def reads_alike(name: str, text: str) -> bool:
    """Return whether a shell runs nothing for a text but what bash would."""
    if name == "zsh":
        return not re.search(_NOT_BASH, text)
    if name in _BASH or _ANY_SHELL.fullmatch(text):
        return True
    return name in _POSIX and not re.search(_NOT_POSIX, text)


# ---------------------------------------------------------------------- awk and sed


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
    parse_options = skip = False
    for word in arguments:
        text = word.text
        if text is None:
            if parse_options or (first is None and not programs):
                return f"the program {word.source} gives sed, only running it can tell"
            continue
        if parse_options:
            programs.append(text)
            parse_options = False
        elif skip:
            skip = False
        elif re.fullmatch(r"-[nErsuz]*l|--l[a-z-]*", text):
            skip = True
        elif re.match(r"--(?:fi|f$)|-[nEersuzi]*f", text) and not text.startswith("-i"):
            return "sed takes its program from a file"
        elif re.fullmatch(r"-[nErsuz]*e|--ex?p?r?e?s?s?i?o?n?", text):
            parse_options = True
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
    """Return whether a sed program is made of commands that only change text."""
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
