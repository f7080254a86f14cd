"""The sandbox of a bash command: its policy, what it kept the command from, and what a person decides on that.

See docs/sandbox.md and docs/opencode/agents.md 6.3.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from ..core.context import ToolContext
from ..core.errors import PermissionCorrectedError, PermissionRejectedError, ToolError
from ..core.paths import follow_links
from ..core.permission.request import SANDBOX
from ..sandbox.policy import SandboxPolicy, is_within
from ..sandbox.service import Sandbox
from ..sandbox.startup_files import SHOWN, StartupFiles
from .shell.shell_requests import ShellRequests

LINES = 400
"""Lines of the output's end that are looked at."""


class CommandSandbox:
    """The sandbox of one call.

    Attributes:
        policy: what the command may do; None for everything.
        shown: the profile and what enforces it, for people; empty where none was wanted.
        startup: the start-up files that the command makes or changes.
    """

    def __init__(self, ctx: ToolContext, requests: ShellRequests) -> None:
        service = ctx.workspace.service(Sandbox)
        self._ctx = ctx
        self._requests = requests
        self._backend = service.backend
        call = ctx.workspace.calls.get(ctx.call_id)
        self._rules = call.ruleset if call is not None else []
        # no rule loosens what is not understood
        commands = [] if requests.reasons or requests.unknown else requests.patterns
        profile = service.profile(ctx.by, ctx.agent, self._rules, commands)
        let_out = profile != "off" and bool(commands) and self._actions(commands) == {"allow"}
        self.policy: SandboxPolicy | None = None if let_out else service.policy(profile)
        self.shown = ""
        self.startup: StartupFiles | None = None
        if self.policy is not None:
            self.startup = StartupFiles(self.policy, ctx.workspace.data_dir / "blocked" / ctx.call_id)
        if profile != "off":
            without = "off, a rule allows it" if let_out else "none on this machine"
            self.shown = f"{profile}, {self._backend}" if self.policy else without
            if call is not None:
                for decision in call.part.decisions:
                    if decision.permission == "bash":
                        decision.note = f"sandbox: {self.shown}"

    @property
    def leaves_nothing(self) -> bool:
        """True if what runs in the background ends with the command."""
        return self.policy is not None and self._backend == "bubblewrap"

    def blocked(self, output: str, cwd: Path) -> str | None:
        """What the sandbox kept the failed command from doing; None if it was not the sandbox."""
        return _blocked_by(self.policy, output, str(cwd)) if self.policy is not None else None

    async def keep_startup_files(self, command: str) -> str:
        """Have a person decide on start-up files that were moved away or put back.

        Returns:
            What became of them, for the reader of the result; empty if there are none, or they are back.
        """
        if self.startup is None or not self.startup.moved:
            return self.startup.describe() if self.startup is not None else ""
        names = [*self.startup.moved]
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        blocked = f"writing {', '.join(names[:SHOWN])}{more}, which other programs run or obey"
        answer = await self._ask(command, blocked, "Keep what it wrote?")
        if answer is True:
            self.startup.restore()
        moved = self.startup.describe()
        return f"{answer if answer is not True else 'Not all of it could be put back.'} {moved}" if moved else ""

    async def may_run_without(self, command: str, blocked: str) -> bool | str:
        """Return whether the command may run again without the sandbox: a request of its own.

        Returns:
            True, or why not, for the reader of the result.
        """
        question = "Run again without the sandbox? What it did before that stays done."
        return await self._ask(command, blocked, question)

    async def _ask(self, command: str, blocked: str, question: str) -> bool | str:
        ctx, permissions = self._ctx, self._ctx.workspace.permissions
        why = f"The sandbox ({self.shown}) blocked this command: {blocked}."
        patterns = self._requests.patterns or [command]
        actions = self._actions(patterns)
        if "deny" in actions or ("ask" in actions and not permissions.answerable):
            return f"{why} Work inside the project or in $TMPDIR, or ask the user to change the sandbox."
        message = " ".join(f"{why} {question}".split())
        metadata = {"command": f"# {message}\n{command}", "blocked": blocked}
        try:
            await ctx.ask(SANDBOX, patterns, patterns, metadata)
        except PermissionCorrectedError as error:
            return f"{why} The user declined: {error.feedback}"
        except PermissionRejectedError:
            return f"{why} The user declined."
        return True

    def _actions(self, patterns: list[str]) -> set[str]:
        """What the rules say to running commands without the sandbox."""
        from ..core.project_rules import without_project_rules

        rules = without_project_rules(self._rules)
        return {rule.action for rule in self._ctx.workspace.permissions.check(SANDBOX, patterns, rules)}


_REFUSED = re.compile(
    r"permission denied|operation not permitted|read-only file system|device or resource busy|PermissionError"
    r"|\bE(?:ACCES|PERM|ROFS|BUSY)\b",
    re.IGNORECASE,
)
_MISSING = re.compile(r"no such file or directory|ENOENT", re.IGNORECASE)
_NETWORK = re.compile(
    r"network is unreachable|(?:could ?n[o']t|failed to|unable to) (?:resolve|connect)"
    r"|temporary failure in name resolution|name or service not known|getaddrinfo|\bconnect(?:ion)?\b|https?://"
    r"|ENETUNREACH|EAI_AGAIN|urlopen",
    re.IGNORECASE,
)
_PATH = re.compile(
    r"(?:^|[\s'\"`=(\[])((?:~|\.{1,2})?/[^\0\s'\"`:;,()\[\]]*|[\w.-]+(?:/[\w.-]+)*)(?=$|[\s'\"`:;,()\[\]])"
)
_PROGRAM = re.compile(r"^(?:/\S+|[\w.-]+):(?: line \d+:)? ")
"""Begins a message: the program whose message it is."""


def _blocked_by(policy: SandboxPolicy, output: str, cwd: str) -> str | None:
    """What the sandbox kept a failed command from doing: ``writing /etc/hosts``; None if nothing shows that it did.

    A path counts only where this process could do what the command could not.
    """
    network = False
    for line in output.splitlines()[-LINES:]:
        refused, missing = _REFUSED.search(line), _MISSING.search(line)
        if refused or missing:
            for word in _PATH.findall(_PROGRAM.sub("", line)):
                try:
                    path = follow_links(os.path.join(cwd, os.path.expanduser(word)))
                except ToolError:
                    continue
                if any(is_within(path, hidden) for hidden in policy.hidden) and os.path.exists(path):
                    return f"reading {path}"
                if refused and os.sep in path and _only_outside(policy, path, "/" in word or os.path.lexists(path)):
                    return f"writing {path}"
        network = network or bool(_NETWORK.search(line))
        if refused and re.search(r"\bkill\b", line):
            return "a signal to another process"
    return "a connection to the network" if network and not policy.network else None


def _only_outside(policy: SandboxPolicy, path: str, is_path: bool) -> bool:
    """Whether a path can be written, but not in the sandbox."""
    if not is_path or path.startswith(("/dev/", "/proc/", "/sys/")):
        return False
    allowed = any(is_within(path, folder) for folder in (*policy.writable, policy.temporary))
    if allowed and not any(is_within(path, own) for own in policy.protected):
        return False
    there = path if os.path.lexists(path) else os.path.dirname(path)
    return os.path.exists(there) and os.access(there, os.W_OK)
