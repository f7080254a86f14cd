"""What a new rule does to the decisions of the rules around it: does it decide, and does anything else change."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..permission import Rule, evaluate
from ..wildcard import match

_WORK = 1_000_000
"""Steps for a comparison of two patterns; longer ones are taken to overlap."""


def overruling_rule(after: Sequence[Rule], new: Rule) -> Rule | None:
    """The rule that decides in place of `new`; None if its action holds for its pattern."""
    index = _last_index(after, new)
    for rule in reversed(after[index + 1 :]):
        if rule.action != new.action and match(new.permission, rule.permission) and covers(rule.pattern, new.pattern):
            return rule
    decider = evaluate(new.permission, new.pattern, after)
    return None if decider.action == new.action else decider


def changed_rule(before: Sequence[Rule], after: Sequence[Rule], new: Rule) -> Rule | None:
    """A rule of `before` or `after` that decides something else now, outside of what `new` is about; None if none.

    It errs on the safe side: a rule may be named though another one covers it up.
    """
    for rules, others in ((before, after), (after, before)):
        for index, rule in enumerate(rules):
            if not _is_same_rule(rule, new) and rule not in others and not _is_covered(rules, index):
                return rule
    positions = {_key(rule): i for i, rule in reversed(list(enumerate(after)))}
    common = [r for r in before if not _is_same_rule(r, new) and r in after]
    for i, rule in enumerate(common):
        for later in common[i + 1 :]:
            if (
                rule.action != later.action
                and positions[_key(rule)] > positions[_key(later)]
                and overlap(rule.permission, later.permission)
                and overlap(rule.pattern, later.pattern)
            ):
                return rule
    return None


def undone_deny(before: Sequence[Rule], after: Sequence[Rule], new: Rule) -> Rule | None:
    """A rule that denies, is in force, and would be overruled by `new` for a part of what it denies; None if none."""
    if new.action == "deny":
        return None
    index_after, index_before = _last_index(after, new), _last_index(before, new)
    for index, rule in enumerate(before):
        if rule.action != "deny" or not overlap(new.permission, rule.permission):
            continue
        later = [r for r in before[index + 1 :] if match(new.permission, r.permission)]
        if index < index_before or any(covers(r.pattern, rule.pattern) for r in later):
            continue  # overruled already, or repeated
        position = max((i for i, r in enumerate(after) if r == rule), default=-1)
        if position < index_after and overlap(new.pattern, rule.pattern):
            return rule
    return None


def overlap(first: str, second: str) -> bool:
    """Return whether some text fits both patterns. For very long patterns: perhaps."""
    if first == second or match(first, second) or match(second, first):
        return True
    return any(_pieces_overlap(a, b) for a in _pattern_forms(first) for b in _pattern_forms(second))


def covers(wide: str, narrow: str) -> bool:
    """Return whether every text that fits `narrow` fits `wide`. False if that is hard to decide."""
    if wide in ("*", narrow):
        return True
    # A star or blank of `narrow`, read as text, is taken by a star of `wide` alone if that has no other blanks.
    return "?" not in wide and all(match(form, wide) for form in _pattern_forms(narrow))


def _key(rule: Rule) -> tuple[str, str, str]:
    return rule.permission, rule.pattern, rule.action


def _is_same_rule(rule: Rule, new: Rule) -> bool:
    return rule.permission == new.permission and rule.pattern == new.pattern


def _last_index(rules: Sequence[Rule], new: Rule) -> int:
    return max((i for i, r in enumerate(rules) if _is_same_rule(r, new)), default=-1)


def _is_covered(rules: Sequence[Rule], index: int) -> bool:
    """Return whether a later rule speaks of all that this one speaks of."""
    rule = rules[index]
    return any(r.permission in (rule.permission, "*") and r.pattern in (rule.pattern, "*") for r in rules[index + 1 :])


def _pattern_forms(pattern: str) -> list[str]:
    pattern = pattern.replace("\\", "/")
    if sys.platform == "win32":
        pattern = pattern.lower()
    return [pattern, pattern[:-2]] if pattern.endswith(" *") else [pattern]  # a tail " *" optional


def _pieces_overlap(first: str, second: str) -> bool:
    if len(first) * len(second) > _WORK:
        return True
    # row[j]: the pieces of `first` so far and the first j of `second` can stand for the same text.
    row = [True]
    for char in second:
        row.append(row[-1] and char == "*")
    for piece in first:
        new = [row[0] and piece == "*"]
        for j, other in enumerate(second):
            if "*" in (piece, other):
                # A star stands for nothing, or for one piece more of the other pattern.
                new.append(new[j] or row[j + 1])
            else:
                new.append(row[j] and (piece == other or "?" in (piece, other)))
        row = new
    return row[-1]
