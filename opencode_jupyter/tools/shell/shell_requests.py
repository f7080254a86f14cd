"""The permission requests that a shell command needs, as its analysis finds them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ...core.permission.rules import NOT_ANALYSED


class Reading(NamedTuple):
    """Another reading of a command, for the rules to judge.

    Attributes:
        pattern: the reading.
        always: what to remember if a person allows it for the session.
        of: the sub-command it is a reading of, as it stands in `ShellRequests.patterns`. A rule for exactly that text
            settles it.
        suspected: it may be no command at all. A rule that is against it makes the sub-command ask: any rule but one
            for everything, or that one too if it names a program.
        is_program: its first word is the name of a program.
    """

    pattern: str
    always: tuple[str, ...] = ()
    of: str = ""
    suspected: bool = False
    is_program: bool = False


@dataclass(slots=True)
class ShellRequests:
    """What to request for a command.

    Attributes:
        directories: folders outside the project that it touches.
        unknown: paths that only running it can tell, as written.
        patterns: its sub-commands, as OpenCode asks for them.
        always: what a person may remember for them.
        readings: other readings of the sub-commands.
        reads: files inside the project or outside that its words name.
        reasons: in words, why there is more to it than the patterns show.
    """

    directories: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    patterns: list[str] = field(default_factory=list)
    always: list[str] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def add_reading(self, pattern: str, always: tuple[str, ...], of: str = "") -> None:
        """Add another reading."""
        reading = Reading(pattern, always, of)
        if pattern and pattern not in self.patterns and reading not in self.readings:
            self.readings.append(reading)

    def suspect(self, pattern: str, *, is_program: bool, of: str) -> None:
        """Add words that a program may run as a command."""
        self.readings.append(Reading(pattern, (), of, suspected=True, is_program=is_program))

    def opaque(self, text: str, reason: str, of: str = "") -> None:
        """Add a reading that no rule for a command's first word covers."""
        pattern = NOT_ANALYSED + text
        self.add_reading(pattern, exact_rule(pattern), of or text)
        add(self.reasons, [reason])


def add(target: list[str], values: Iterable[str]) -> None:
    """Append those that are not there yet."""
    target += [value for value in dict.fromkeys(values) if value not in target]


def exact_rule(pattern: str) -> tuple[str, ...]:
    """The pattern as a rule that covers it alone; none if it has characters that a rule reads as wildcards."""
    return () if "*" in pattern or "?" in pattern else (pattern,)
