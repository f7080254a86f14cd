"""The completer's way in: looks at a line, and loads what completes it only if the line is one of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from IPython.core.completer import context_matcher

if TYPE_CHECKING:
    from IPython.core.completer import CompletionContext

    from ..loaded import Loaded

WORDS = ("%tool", "%agent", "%permissions", "%mcp", "%sessions")
"""What a line or cell holds that this completes (``%tools`` begins like ``%tool``)."""


def install(shell: Any, state: Loaded) -> None:
    """Put the matcher into the shell's completer."""
    uninstall(shell)

    @context_matcher()  # type: ignore[untyped-decorator]
    def opencode_matcher(context: CompletionContext) -> dict[str, Any]:
        if not any(word in context.full_text for word in WORDS):
            return {"completions": []}
        from .completion import complete

        hidden = shell.user_ns_hidden
        own = {name: value for name, value in shell.user_ns.items() if hidden.get(name, hidden) is not value}
        return complete(state.notebook, own, context.full_text, context.cursor_line, context.text_until_cursor)

    shell._opencode_matcher = opencode_matcher
    shell.Completer.custom_matchers.append(opencode_matcher)


def uninstall(shell: Any) -> None:
    """Take it out again."""
    matcher = getattr(shell, "_opencode_matcher", None)
    if matcher is not None:
        shell.Completer.custom_matchers = [m for m in shell.Completer.custom_matchers if m is not matcher]
        shell._opencode_matcher = None
