"""Commands that run the command they are given: which words are their options, and where the inner command begins.

Short options may share a dash (``xargs -rn 1 rm``), long ones may be cut short (``env --sp=...``) and take the next
word as their value. An option that is not known here may take a value or not, so what follows it is not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from . import catalog
from .word_expansion import Word


class Options(NamedTuple):
    """A program's options.

    Attributes:
        flags: letters that take no value.
        valued: letters whose value is the rest of the word, or else the next one.
        attached: letters whose value, if any, is the rest of the word.
        long_flags: names that take no value, or only one after ``=``.
        long_valued: names that take a value: after ``=``, or the next word.
        words: how many words of its own come before the inner command.
        assigns: words such as ``A=1`` come before the inner command.
    """

    flags: str = ""
    valued: str = ""
    attached: str = ""
    long_flags: frozenset[str] = frozenset()
    long_valued: frozenset[str] = frozenset()
    words: int = 0
    assigns: bool = False


@dataclass(slots=True)
class ParsedOptions:
    """What the options of a command line are.

    Attributes:
        options: letters, or names of long options, each with its value ("" if it has none).
        rest: the words after them.
        sure: whether each option is known, so that nothing else can be meant.
    """

    options: list[tuple[str, str]] = field(default_factory=list)
    rest: list[Word] = field(default_factory=list)
    sure: bool = True


def _options(
    flags: str = "",
    valued: str = "",
    long: str = "",
    long_valued: str = "",
    words: int = 0,
    *,
    attached: str = "",
    assigns: bool = False,
) -> Options:
    return Options(flags, valued, attached, frozenset(long.split()), frozenset(long_valued.split()), words, assigns)


_RUN = _options(
    "qvn",
    "p",
    "quiet verbose no-project isolated active frozen locked no-sync dev no-dev all-extras all-groups no-default-groups "
    "offline exact no-env-file no-cache refresh preview no-config no-install",
    "with with-requirements with-editable python extra group directory project env-file index-url package",
)
WRAPPERS: dict[str, Options] = {
    "builtin": _options(),
    "busybox": _options(),
    "catchsegv": _options(),
    "chronic": _options("ve"),
    "chroot": _options(long="skip-chdir", long_valued="userspec groups", words=1),
    "chrt": _options(
        "abdfimoprvR", "TPD", "all-tasks batch deadline fifo idle other rr verbose reset-on-fork", "", words=1
    ),
    "command": _options("pvV"),
    "coproc": _options(assigns=True),
    "doas": _options("nLs", "uCa"),
    "env": _options(
        "i0v",
        "uCSa",
        "ignore-environment null debug block-signal default-signal ignore-signal list-signal-handling",
        "unset chdir split-string argv0",
        assigns=True,
    ),
    "exec": _options("cl", "a"),
    "flock": _options(
        "sxeunoFv",
        "wE",
        "shared exclusive unlock nonblock nb close no-fork verbose",
        "timeout wait conflict-exit-code",
        words=1,
    ),
    "gtime": _options("apvq", "fo", "append portability verbose quiet", "format output"),
    "gtimeout": _options("v", "ks", "foreground preserve-status verbose", "kill-after signal", words=1),
    "ifne": _options("n"),
    "ionice": _options("t", "cnpPu", "ignore", "class classdata pid pgid uid"),
    "lckdo": _options("xwsqeEtW", words=1),
    "nice": _options("0123456789", "n", "", "adjustment"),
    "noglob": _options(),
    "nohup": _options(),
    "setsid": _options("cfw", "", "ctty fork wait"),
    "stdbuf": _options("", "ioe", "", "input output error"),
    "strace": _options(
        "cCdfFDhiknNqrtTvVwxyYzZ", "aeEIoOpPsSuXU", "follow-forks quiet", "trace output string-limit user env attach"
    ),
    "sudo": _options(
        "AbBEHKkNnPSsi",
        "ugUpCDRrtTh",
        "askpass background bell preserve-env set-home non-interactive stdin shell login reset-timestamp",
        "user group prompt chdir chroot close-from role type host command-timeout other-user",
        assigns=True,
    ),
    "systemd-inhibit": _options("", "", "list", "what who why mode"),
    "taskset": _options("ac", "", "all-tasks cpu-list", "", words=1),
    "time": _options("apvq", "fo", "append portability verbose quiet", "format output", assigns=True),
    "timeout": _options("v", "ks", "foreground preserve-status verbose", "kill-after signal", words=1),
    "toybox": _options(),
    "unshare": _options(
        "muinpUCTfrc",
        "SGRw",
        "mount uts ipc net pid user cgroup time fork map-root-user map-current-user map-auto mount-proc kill-child "
        "keep-caps propagation",
        "setuid setgid root wd map-user map-group map-users map-groups setgroups monotonic boottime",
    ),
    "watch": _options(
        "bcdegpqtwx",
        "nqs",
        "beep color differences errexit chgexit precise no-title no-wrap exec",
        "interval equexit shotsdir",
    ),
    "xargs": _options(
        "0rtpxo",
        "adEILnPs",
        "null no-run-if-empty verbose interactive exit open-tty show-limits eof replace max-lines",
        "arg-file delimiter max-args max-procs max-chars process-slot-var",
        attached="iel",
    ),
    **dict.fromkeys(("uv run", "pixi run"), _RUN),
    **dict.fromkeys(
        ("conda run", "mamba run", "micromamba run"),
        _options("v", "np", "verbose no-capture-output live-stream dev debug-wrapper-scripts", "name prefix cwd"),
    ),
    **dict.fromkeys(("poetry run", "pipenv run", "pdm run", "hatch run", "rye run", "rye r"), _options("qv")),
    **dict.fromkeys(("bundle exec", "mise exec", "mise x", "asdf exec", "pnpm exec", "yarn exec"), _options()),
    **dict.fromkeys(("npm exec", "npm x"), _options("y", "pc", "yes no", "package call")),
    "direnv exec": _options(words=1),
    "npx": _options("yq", "pc", "yes no quiet no-install", "package call"),
    **dict.fromkeys(("uvx", "uv tool run"), _options("qv", "p", "isolated offline", "from with python")),
    **dict.fromkeys(("bunx", "bun x", "pnpm dlx", "yarn dlx", "pipx run"), _options()),
}
"""Commands whose arguments are another command, by name or by name and sub-command."""


def parse_options(options: Options, arguments: list[Word]) -> ParsedOptions:
    """Tell the options of a command line from the words after them.

    Args:
        options: what is known of the program.
        arguments: its words.
    """
    parsed = ParsedOptions()
    at = 0
    while at < len(arguments):
        word = arguments[at]
        if word.text is None and not word.source.startswith("-"):
            break
        text = word.shown
        if text == "--":
            at += 1
            break
        if options.assigns and "=" in text and not text.startswith("-"):
            parsed.options.append(("=", text))
            at += 1
            continue
        if not text.startswith("-") or text == "-":
            if text == "-" and options.assigns:
                at += 1
                continue
            break
        used = _long(options, text[2:], parsed) if text.startswith("--") else _short(options, text[1:], parsed)
        at += 1
        if used:
            value = arguments[at].shown if at < len(arguments) else ""
            parsed.options[-1] = (parsed.options[-1][0], value)
            at += 1
    while options.assigns and at < len(arguments) and "=" in arguments[at].shown:  # after --
        parsed.options.append(("=", arguments[at].shown))
        at += 1
    parsed.rest = arguments[at:]
    return parsed


def _long(options: Options, text: str, parsed: ParsedOptions) -> bool:
    """Note a long option; True if the next word is its value."""
    name, equals, value = text.partition("=")
    matching = [one for one in options.long_flags | options.long_valued if one.startswith(name)]
    full_name = name if name in matching else matching[0] if matching else name
    parsed.options.append((full_name, value))
    if not matching:
        parsed.sure &= bool(equals)
        return False
    return not equals and full_name in options.long_valued


def _short(options: Options, letters: str, parsed: ParsedOptions) -> bool:
    """Note the options after one dash; True if the next word is the last one's value."""
    for index, letter in enumerate(letters):
        rest = letters[index + 1 :]
        if letter in options.valued:
            parsed.options.append((letter, rest))
            return not rest
        if letter in options.attached:
            parsed.options.append((letter, rest))
            return False
        parsed.options.append((letter, ""))
        if letter not in options.flags:
            parsed.sure = False
    return False


def find_wrapper(name: str, arguments: list[Word]) -> tuple[str, list[Word]]:
    """The wrapper's key in `WRAPPERS` and its own arguments: ``uv run`` is one, ``uv pip`` none ("")."""
    for count in (2, 1):
        key = " ".join([name, *(word.shown for word in arguments[:count])])
        if len(arguments) >= count and key in WRAPPERS:
            return key, arguments[count:]
    return (name, arguments) if name in WRAPPERS else ("", arguments)


def unwrap(
    key: str, arguments: list[Word], opaque: Callable[[str], None]
) -> tuple[ParsedOptions, list[Word], str | None]:
    """The command inside a wrapper.

    Args:
        key: its key in `WRAPPERS`.
        arguments: its words.
        opaque: receives, in words, what cannot be known.

    Returns:
        Its options, the words of the command inside, and the text it gives to a shell instead, if it does.
    """
    options = WRAPPERS[key]
    parsed = parse_options(options, arguments)
    if not parsed.sure:
        opaque(f"an option of {key} is not known, so the command it runs is unknown")
    for option, value in parsed.options:
        name = value.partition("=")[0].partition("[")[0].rstrip("+")
        if key == "env" and option in ("S", "split-string"):
            opaque("env -S splits a text into a command")
        elif key == "strace" and option in ("o", "output") and value[:1] in ("|", "!"):
            opaque("strace gives its output to a program")
        elif key == "strace" and option in ("E", "env") and re.fullmatch(catalog.DANGEROUS, name):
            opaque(f"it sets {name}, which decides what runs")
        elif key in ("npx", "npm exec", "npm x") and option in ("c", "call"):
            return parsed, [], value
    if key == "command" and any(option in ("v", "V") for option, _ in parsed.options):
        return parsed, [], None
    inner = parsed.rest[options.words :]
    if key == "flock":
        return _locked(parsed, inner)
    if key == "watch" and not any(option in ("x", "exec") for option, _ in parsed.options):
        return parsed, [], " ".join(word.shown for word in inner) if inner else None
    return parsed, _after_dashes(inner), None


def _after_dashes(words: list[Word]) -> list[Word]:
    return words[1:] if words and words[0].shown == "--" else words


def _locked(parsed: ParsedOptions, inner: list[Word]) -> tuple[ParsedOptions, list[Word], str | None]:
    """Flock's ``-c text`` may stand before the file or after it."""
    for words in (parsed.rest, inner):
        if len(words) > 1 and words[0].shown in ("-c", "--command"):
            return parsed, [], words[1].shown
    if ("c", "") in parsed.options or ("command", "") in parsed.options:
        return parsed, [], parsed.rest[0].shown if parsed.rest else ""
    return parsed, _after_dashes(inner), None
