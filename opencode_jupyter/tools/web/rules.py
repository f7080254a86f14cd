"""What permission rules say of a URL: whether one names its host, and whether a redirect needs another word.

A host that is not public is only reached when a rule of the permission `webfetch` names it: one that allows or asks
and whose pattern has the host in full, not behind a ``*``. These name 127.0.0.1:

    http://127.0.0.1:8000/*      that port        http://127.0.0.1:*     any port
    127.0.0.1:8000               that port        127.0.0.1              any port, both schemes

The host is compared whole, so ``http://10.0.0.1*`` names 10.0.0.1 and neither 10.0.0.11 nor 10.0.0.1.evil.org.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ...core.context import ToolContext
from ...core.errors import ToolError
from ...core.permission import Rule
from ...core.wildcard import match
from .address import METADATA_NAMES, Address, is_metadata, not_public
from .target import PORTS, Target, parse

PERMISSION = "webfetch"
_STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}
_PATTERN = re.compile(r"(?:(https?|\*)://)?(\[[0-9a-f:.]+\]|[^\[\]:/?*#@\\\s]+)(.*)", re.IGNORECASE | re.DOTALL)


def names(pattern: str, target: Target) -> bool:
    """Return whether a rule's pattern names the target's host in full, and fits its port and path."""
    found = _PATTERN.fullmatch(pattern)
    if found is None:
        return False
    scheme, host, rest = (found[1] or "*").lower(), found[2], found[3]
    if scheme not in ("*", target.scheme):
        return False
    try:
        if parse(f"{target.scheme}://{host}").host != target.host:
            return False
    except ToolError:
        return False
    if not rest:
        return found[1] is None or target.port == PORTS[target.scheme]
    if re.fullmatch(r":[0-9]+", rest):
        rest += "/*"  # an origin stands for all that is there
    forms = [f":{target.port}{target.path}"]
    if target.port == PORTS[target.scheme]:
        forms.append(target.path)
    return any(match(form, rest) for form in forms)


def named(rules: Iterable[Rule], target: Target) -> bool:
    """Return whether one of the rules names the target."""
    return any(
        rule.action != "deny" and match(PERMISSION, rule.permission) and names(rule.pattern, target) for rule in rules
    )


class Visit:
    """The asks and checks of one fetch.

    Args:
        ctx: the call.
        metadata: of its asks, besides the URL.
    """

    def __init__(self, ctx: ToolContext, metadata: dict[str, object]) -> None:
        self._ctx = ctx
        self._metadata = metadata

    async def ask(self, target: Target) -> None:
        """Ask for a URL, as it is written and, where rules or eyes could be misled by that, in its one spelling.

        Raises:
            PermissionDeniedError: a rule forbids it, or a person does; see `ToolContext.ask`.
        """
        patterns = [target.given]
        if self._action(target.url) > self._action(target.given) or target.authority not in target.given.lower():
            patterns.append(target.url)
        await self._ctx.ask(PERMISSION, patterns, ["*"], {"url": target.given, **self._metadata})

    async def ask_redirect(self, before: Target, after: Target) -> None:
        """Ask again where a redirect leads to another host, or to a place that the rules treat more strictly."""
        same = before.host == after.host and (before.port == after.port or _upgraded(before, after))
        if not same or self._action(after.url) > self._action(before.url):
            await self.ask(after)

    def check(self, target: Target, address: Address) -> None:
        """Let an address of the target pass, or not.

        Raises:
            ToolError: it is not public and no rule names the host.
        """
        why = not_public(address)
        if target.address is None and target.host in METADATA_NAMES:
            why = why or "a cloud metadata host"
        if why is None:
            return
        if self._named(target):
            known = target.address is not None or target.host in METADATA_NAMES
            if known or not is_metadata(address):
                return
            raise ToolError(
                f"Refused: {target.host} leads to {address}, {why}. Only a rule that names this very address opens it."
            )
        place = "is" if target.address is not None else f"leads to {address},"
        raise ToolError(
            f"Refused: {target.host} {place} {why}. webfetch goes to public addresses only, unless a rule names the "
            f'host: %permissions allow webfetch "{target.scheme}://{target.authority}/*"'
        )

    def _rules(self) -> tuple[Sequence[Rule], list[Rule]]:
        call = self._ctx.workspace.calls.get(self._ctx.call_id)
        return (call.ruleset if call is not None else []), self._ctx.workspace.permissions.approved

    def _named(self, target: Target) -> bool:
        return any(named(rules, target) for rules in self._rules())

    def _action(self, url: str) -> int:
        rules, _ = self._rules()
        decided = self._ctx.workspace.permissions.check(PERMISSION, [url], rules)
        return _STRICTNESS[decided[0].action]


def _upgraded(before: Target, after: Target) -> bool:
    """Return whether a redirect only goes from http to https."""
    return (before.scheme, after.scheme) == ("http", "https") and (before.port, after.port) == (80, 443)
