"""A command of bash in its sandbox: which one it gets, what the card says of it, and running it again without."""

from __future__ import annotations

from pathlib import Path

from ..core.context import ToolContext
from ..core.errors import PermissionCorrectedError, PermissionRejectedError
from ..core.permission.request import SANDBOX
from ..runtime.sandbox.policy import SandboxPolicy
from ..runtime.sandbox.service import Sandbox
from ..runtime.sandbox.startup_files import SHOWN, StartupFiles
from .shell.findings import ShellAsks


class CommandSandbox:
    """The sandbox of one call.

    Attributes:
        policy: what the command may do; None for everything.
        shown: the profile and what enforces it, for people; empty where none was wanted.
        startup: the start-up files that the command makes or changes.
    """

    def __init__(self, ctx: ToolContext, asks: ShellAsks) -> None:
        service = ctx.workspace.service(Sandbox)
        self._ctx = ctx
        self._asks = asks
        self._backend = service.backend
        call = ctx.workspace.calls.get(ctx.call_id)
        self._rules = call.ruleset if call is not None else []
        commands = [] if asks.reasons or asks.unknown else asks.patterns  # no rule loosens what is not understood
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

    def _actions(self, patterns: list[str]) -> set[str]:
        """What the rules say to running commands without the sandbox."""
        workspace = self._ctx.workspace
        from ..core.project_rules import without_project_rules

        rules = without_project_rules(self._rules)
        return {rule.action for rule in workspace.permissions.check(SANDBOX, patterns, rules)}

    @property
    def leaves_nothing(self) -> bool:
        """Whether what runs in the background ends with the command."""
        return self.policy is not None and self._backend == "bubblewrap"

    def blocked(self, output: str, cwd: Path) -> str | None:
        """What the sandbox kept the failed command from doing; None if it was not the sandbox."""
        from ..runtime.sandbox.denials import blocked_by  # here: it is for failed commands

        return blocked_by(self.policy, output, str(cwd)) if self.policy is not None else None

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
        """Whether the command may run again without the sandbox: a request of its own.

        Returns:
            True, or why not, for the reader of the result.
        """
        question = "Run again without the sandbox? What it did before that stays done."
        return await self._ask(command, blocked, question)

    async def _ask(self, command: str, blocked: str, question: str) -> bool | str:
        ctx, permissions = self._ctx, self._ctx.workspace.permissions
        why = f"The sandbox ({self.shown}) blocked this command: {blocked}."
        patterns = self._asks.patterns or [command]
        actions = self._actions(patterns)
        if "deny" in actions or ("ask" in actions and not permissions.answerable):
            return f"{why} Work inside the project or in $TMPDIR, or ask the user to change the sandbox."
        said = " ".join(f"{why} {question}".split())
        metadata = {"command": f"# {said}\n{command}", "blocked": blocked}
        try:
            await ctx.ask(SANDBOX, patterns, patterns, metadata)
        except PermissionCorrectedError as error:
            return f"{why} The user declined: {error.feedback}"
        except PermissionRejectedError:
            return f"{why} The user declined."
        return True
