r"""Text as a person may safely read it: nothing hidden, no escape sequences, nothing that misleads the eye.

A command that a person is asked to allow must read as it will run (docs/opencode/agents.md 6.7).
"""

from __future__ import annotations

import re

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
_MISLEADING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u061c\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
# each way through it ends somewhere: what begins a string always takes it, or its end would be looked for from every
# such beginning, and 40 KB of them would hold up the kernel for minutes
_ANSI = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b[\\]PX^_]|[\x90\x9d])[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)?"
    "|\x1b[ -/]*[0-Z\\\\^-~]|\x1b\\[?[0-?]*[ -/]*$|\x1b"
)
_ENDS = re.compile(r"(?<!\r)\r+\n")


def visible(text: str) -> str:
    """`text` with every control, bidirectional and unseen character escaped: for what a person judges by."""
    return _INVISIBLE.sub(escape, text)


def visible_line(text: str) -> str:
    """The same in one line."""
    return visible(text).replace("\n", "⏎").replace("\t", " ")


def terminal_text(text: str) -> str:
    """Output as a terminal leaves it: no ANSI escapes, and of a line that was written over the last state."""
    text = _ANSI.sub("", text)
    if "\r" in text:
        # line by line: one expression for it all would take the square of a long line's length
        text = "\n".join(line[line.rfind("\r", 0, -1) + 1 :] for line in _ENDS.sub("\n", text).split("\n"))
    return text


def readable(text: str) -> str:
    """The same, and what misleads the eye escaped."""
    return _MISLEADING.sub(escape, terminal_text(text))


def escape(match: re.Match[str]) -> str:
    r"""A character as ``\xNN``, ``\uNNNN`` or ``\u{N…}``."""
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\u{{{code:x}}}"
