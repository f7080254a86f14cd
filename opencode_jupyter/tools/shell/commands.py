"""What single commands do: which run other commands, which take paths, which are only known at run time."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from ...core.arity import prefix
from . import assignments, catalog, git_commands, interpreters, programs, startup_files, wrappers
from .arithmetic import Arithmetic
from .paths import Paths
from .shell_requests import ShellRequests
from .word_expansion import Word

DEPTH = 6
"""Commands inside commands that are looked into."""


_ANY = Word("*", "*", glob=True)
HANDED_OVER = 20
"""Words of a program that is not known that are looked up as commands."""
_ESCAPES = "!|;&({ "
"""What may stand before a shell command in a program's own language, as in ``lftp -c '!ls'``."""
_FIND_VALUED = re.compile(
    r"-(?:i?(?:name|path|wholename|regex|lname)|newer\w*|[acm]?(?:min|time)|[acm]newer|type|m(?:ax|in)depth|size|user|group"
    r"|perm)"
)


class Commands:
    """Reads commands by their words.

    Args:
        requests: where findings go.
        paths: where paths go.
        program: reads a text as a program: ``(text, depth, of)``.
        sets: notes that a variable is set: ``(name, text, of)``.
        numbers: what the line calculates.

    Attributes:
        files: what xargs reads are names of files, from a program that lists them.
        piped: what the command prints is read by another.
        lists: it is read as names of files, perhaps.
        inputs: the files that its input comes from.
        checkouts: git commands that change the working tree, each with the sub-command it belongs to.
        revisions: words of git commands that may be revisions.
    """

    def __init__(
        self,
        requests: ShellRequests,
        paths: Paths,
        program: Callable[[str, int, str], None],
        sets: Callable[[str, str, str], None],
        numbers: Arithmetic,
    ) -> None:
        self._requests = requests
        self._paths = paths
        self._program = program
        self._sets = sets
        self._numbers = numbers
        self.files = False
        self.piped = False
        self.lists = False
        self.inputs: list[Word] = []
        self.checkouts: list[tuple[str, str]] = []
        self.revisions: list[str] = []

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
        if head.source in catalog.RESERVED:
            # ``time { rm x; }``: the grammar takes the brace for an argument
            self._requests.opaque(text, f"{head.source} starts a group of commands that could not be parsed", of)
            if len(parts) > 1:
                self.run(parts[1:], text, depth, of, fed=fed, more=more)
            return
        if head.text is None or head.glob or not head.text:
            self._requests.opaque(text, f"which command {head.source} is, is only known at run time", of)
            return
        shown = " ".join(word.shown for word in parts)
        name = os.path.basename(head.text)
        always = " ".join([*prefix([name, *(word.shown for word in parts[1:])]), "*"])
        if shown != of:
            self._requests.add_reading(shown, (always,), of)
        if name != head.text:
            self._requests.add_reading(" ".join([name, *(word.shown for word in parts[1:])]), (always,), of)
        arguments = parts[1:]
        self._note_paths(name, arguments, text, of, fed=fed)
        self._note_assignments(name, arguments, text, of)
        if depth >= DEPTH:
            self._requests.opaque(text, "it nests too deep", of)
            return
        if self._paths.wrote(head) or (
            (name in interpreters.SHELLS or interpreters.interpreter(name) or name in catalog.OPAQUE)
            and any(self._paths.wrote(word) for word in arguments)
        ):
            self._requests.opaque(text, "it runs a file that this same line writes", of)
        elif (file := startup_files.work_file(name, self._paths.written)) is not None:
            self._requests.opaque(text, f"{name} runs {file}, which this same line writes", of)
        self._analyse_inner(name, arguments, text, depth, of, fed=fed, more=more)

    def _note_assignments(self, name: str, arguments: list[Word], text: str, of: str) -> None:
        """The variables that a builtin sets."""
        if name in assignments.DECLARING:
            self.declare(arguments, text, of)
        elif name == "let":
            for word in arguments:
                self._numbers.uses(word.shown, text, of)
        else:
            for word in assignments.names(name, arguments):
                self._subscript(word.shown, text, of)
                if name not in ("test", "[", "unset"):
                    self._sets(word.shown, text, of)

    def _subscript(self, variable: str, text: str, of: str) -> None:
        """``read "a[x]"``: what stands between the brackets is calculated."""
        _, bracket, key = variable.partition("[")
        if bracket and key not in ("@]", "*]"):
            self._numbers.uses(key.partition("]")[0], text, of, keys=self._numbers.is_keyed(variable))

    def declare(self, arguments: list[Word], text: str, of: str) -> None:
        """``declare -i x=1``: variables and what they are."""
        letters = "".join(word.shown for word in arguments if word.shown[:1] in "-+")
        for word in arguments:
            variable, equals, _ = word.shown.partition("=")
            self._numbers.declares(variable.partition("[")[0], letters)
            self._subscript(variable, text, of)
            if equals:
                self._sets(variable, text, of)

    def _note_paths(self, name: str, arguments: list[Word], text: str, of: str, *, fed: bool) -> None:
        """The paths among a command's words, and what it writes."""
        key, own = wrappers.find_wrapper(name, arguments)
        if key:
            inner = wrappers.parse_options(wrappers.WRAPPERS[key], own).rest[wrappers.WRAPPERS[key].words :]
            arguments = arguments[: len(arguments) - len(inner)]
        command, words = git_commands.command(arguments) if name == "git" else ("", [])
        self.revisions += [re.sub(r"^(?:-s|--source=|--sour?c?=)", "", word.shown) for word in words]
        if command == "stash":
            self.revisions.append("stash@{0}")
        if command in git_commands.TREE:
            self.checkouts.append((text, of))
        if name in catalog.EXTRACTORS and command in ("", "apply", "am") and fed:
            arguments = [*arguments, *self.inputs]
            if not any(map(self._paths.exists, arguments)):
                self._requests.opaque(text, f"which files {name} writes is read from its input", of)
        for file in self._paths.look(name, arguments, text=self.piped and name in catalog.NO_PATHS, lists=self.lists):
            if command not in git_commands.READING or not command:
                self._requests.opaque(text, f"it may write {file}, which decides what runs", of)
        creates = re.search(catalog.RECURSIVE.get(name, "$^"), " ".join(["", *(word.shown for word in arguments)]))
        self._paths.replaced |= command in git_commands.TREE or (name in catalog.EXTRACTORS - {"git"} and not creates)
        for file in startup_files.output_files(name, [word.shown for word in arguments]):
            self._paths.write(file)

    def _analyse_inner(
        self, name: str, arguments: list[Word], text: str, depth: int, of: str, *, fed: bool, more: bool
    ) -> None:
        """What a command that runs others runs."""
        fed = fed or (more and not self.files)
        reason = programs.runs(name, arguments, fed=fed) or assignments.runs(name, arguments)
        if name == "git":
            reason = git_commands.runs(arguments, self._paths.is_bare_repository)
        elif reason is None and name in ("set", "shopt"):
            reason = assignments.modes(name, arguments)
        if reason is None and programs.by_arguments(name) and any(map(self._paths.option_like, arguments)):
            reason = f"a wildcard may become an option of {name} that runs a program"
        if reason is not None:
            self._requests.opaque(text, reason, of)
        elif name in catalog.OPAQUE or (name in catalog.OPAQUE_WITH and _has(arguments, catalog.OPAQUE_WITH[name])):
            self._requests.opaque(text, f"what {name} does depends on more than this line", of)
        elif more and programs.by_arguments(name) and (not self.files or self._paths.option_like(_ANY)):
            self._requests.opaque(text, f"what is read may be options of {name} that run a program", of)
        elif name == "eval":
            self._code(arguments[1:] if arguments and arguments[0].text == "--" else arguments, text, depth, of)
        elif name in interpreters.SHELLS:
            self._shell(name, arguments, text, depth, of, more=more)
        elif (wrapper := wrappers.find_wrapper(name, arguments))[0]:
            self._unwrap(*wrapper, text, depth, of, fed=fed, more=more)
        elif (interpreter := interpreters.interpreter(name)) is not None:
            reason_given = interpreters.inline_program(interpreter, arguments)
            reason_given = reason_given or programs.runs_module(arguments, fed=fed)
            if reason_given is not None:
                self._requests.opaque(text, reason_given, of)
        elif name == "find":
            self._find(arguments, text, depth, of)
        elif not programs.is_known(name):
            self._hands_over(arguments, of)

    def _hands_over(self, arguments: list[Word], of: str) -> None:
        """A program that is not known may run its words: those that a rule is against ask."""
        for at, word in enumerate(arguments[:HANDED_OVER]):
            text = word.text or ""
            if text.startswith("-"):
                text = text.partition("=")[2]
            program, _, rest = text.lstrip(_ESCAPES).partition(" ")
            following = [word.shown for word in arguments[at + 1 :]]
            line = [os.path.basename(program), *([rest] if rest else [])]
            path = [os.path.basename(text)]  # the word may be a program's path with spaces in it
            readings = dict.fromkeys(" ".join([*words, *following]) for words in (line, path) if words[0])
            for reading in readings:
                self._requests.suspect(reading, is_program=self._paths.is_program(text), of=of)

    def _code(self, arguments: list[Word], text: str, depth: int, of: str) -> None:
        """``eval`` and ``sh -c``: the words are a program."""
        if any(word.text is None or word.glob for word in arguments):
            self._requests.opaque(text, "the program it runs is not known before", of)
        elif arguments:
            self._program(" ".join(word.shown for word in arguments), depth + 1, of)

    def _shell(self, name: str, arguments: list[Word], text: str, depth: int, of: str, *, more: bool) -> None:
        parsed, code, reason = interpreters.shell_options(arguments)
        if reason is not None:
            self._requests.opaque(text, reason, of)
        elif code is not None:
            if more and not parsed.rest:
                self._requests.opaque(text, "the program it runs is read from its input", of)
            elif code.text is not None and not interpreters.reads_alike(name, code.text):
                self._requests.opaque(text, f"{name} reads such a text in other ways than bash", of)
            self._code([code], text, depth, of)
        elif (
            not parsed.rest
            or any(option == "s" for option, _ in parsed.options)
            or interpreters.STREAM.fullmatch(parsed.rest[0].shown)
            or parsed.rest[0].text is None
        ):
            self._requests.opaque(text, "a shell reads its commands from somewhere else", of)

    def _find(self, arguments: list[Word], text: str, depth: int, of: str) -> None:
        inner: list[Word] | None = None
        for word, before in zip(arguments, ["", *(word.shown for word in arguments)], strict=False):
            if inner is None:
                if word.text is None and not _FIND_VALUED.fullmatch(before) and word.may_be_option("", ""):
                    self._requests.opaque(text, f"what {word.source} makes find do is only known at run time", of)
                elif word.text in catalog.FIND_EXEC:
                    inner = []
                elif word.text in catalog.FIND_WRITES:
                    self._requests.opaque(text, f"find's {word.text} changes files, or takes names from one", of)
            elif word.text in (";", "+"):
                self._run_for_each(inner, depth, of)
                inner = None
            else:
                inner.append(word)
        self._run_for_each(inner or [], depth, of)

    def _run_for_each(self, inner: list[Word], depth: int, of: str) -> None:
        """What find runs for each file."""
        if not inner:
            return
        source = " ".join(word.source for word in inner)
        if "{}" in inner[0].shown or (self._hands_on(inner) and any("{}" in word.shown for word in inner[1:])):
            self._requests.opaque(source, "it runs the files that are found, or text with their names in it", of)
        self.run(inner, source, depth + 1, of)

    def _hands_on(self, inner: list[Word], mark: str = "{}") -> bool:
        """Return whether the first of a command's words that are put together when it runs may be a program."""
        name = os.path.basename(inner[0].shown)
        if name in interpreters.SHELLS:
            parsed, code, reason = interpreters.shell_options(inner[1:])
            return reason is not None or code is None or mark in code.shown or not parsed.rest
        key, arguments = wrappers.find_wrapper(name, inner[1:])
        if key:
            _, rest, code_text = wrappers.unwrap(key, arguments, lambda reason: None)
            return code_text is not None or not rest or mark in rest[0].shown or self._hands_on(rest, mark)
        return interpreters.interpreter(name) is not None and any(mark in word.shown for word in inner[1:2])

    def _unwrap(
        self, key: str, arguments: list[Word], text: str, depth: int, of: str, *, fed: bool, more: bool
    ) -> None:
        """The command inside a wrapper."""
        parsed, inner, code = wrappers.unwrap(key, arguments, lambda reason: self._requests.opaque(text, reason, of))
        for option, value in parsed.options:
            if option in ("=", "process-slot-var"):
                self._sets(value.partition("=")[0], text, of)
        if code is not None:
            self._code([Word(code, None if any(w.text is None for w in arguments) else code)], text, depth, of)
            return
        if key == "coproc" and len(inner) > 1 and inner[1].source in catalog.RESERVED:
            inner = inner[1:]  # its name
        if key == "xargs":
            self._xargs(parsed.options, inner, text, depth, of)
        elif inner:
            self.run(inner, " ".join(w.source for w in inner), depth + 1, of, fed=fed, more=more)
        elif more:
            self._requests.opaque(text, f"what {key} runs is read from its input", of)

    def _xargs(self, options: list[tuple[str, str]], inner: list[Word], text: str, depth: int, of: str) -> None:
        """The command that xargs runs: what it reads comes after the words, or in place of a mark among them."""
        if not inner:
            return  # echo
        mark = ""
        for option, value in options:
            if option in ("I", "i", "replace"):
                mark = value or "{}"
        name = os.path.basename(inner[0].shown)
        key, _ = wrappers.find_wrapper(name, inner[1:])
        if name not in catalog.NO_PATHS | {"wc"} and (
            not self.files or any(option in ("a", "arg-file", "d", "delimiter") for option, _ in options)
        ):
            self._paths.unknown("the input of xargs")
        runs_text = name in interpreters.SHELLS or key or interpreters.interpreter(name) or programs.by_arguments(name)
        marked = mark and any(mark in word.shown for word in inner[1:])
        if mark and (
            mark in inner[0].shown or (marked and runs_text and (not self.files or self._hands_on(inner, mark)))
        ):
            self._requests.opaque(text, "what it runs is read from its input", of)
        self.run(inner, " ".join(w.source for w in inner), depth + 1, of, more=not mark)


def _has(arguments: list[Word], options: str) -> bool:
    """Return whether one of the letters stands among a builtin's options, or may."""
    return any(
        word.text is None or (word.text.startswith("-") and not set(word.text[1:]).isdisjoint(options))
        for word in arguments
    )
