"""The context of a running tool: its caller, permission requests, progress, noticing a stop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .errors import DryRunEnd, ToolAbortedError
from .threads import as_coroutine, call_on_loop, is_current, submit

if TYPE_CHECKING:
    from .agents import Agent
    from .call import Call
    from .host import ToolHost
    from .permission import Decision
    from .question_request import Answers

T = TypeVar("T")
NO_CALL = "this ToolContext belongs to no call, or to one that has ended"


class AbortSignal:
    """Tells that a call should end. Async tools are cancelled anyway; sync ones (in a thread) check it."""

    __slots__ = ("_event", "reason")

    def __init__(self) -> None:
        self._event: threading.Event | None = None
        self.reason: str | None = None

    @property
    def aborted(self) -> bool:
        """True if the call should end."""
        return self.reason is not None

    def abort(self, reason: str = "stopped") -> None:
        """Ask the call to end; the first reason stays."""
        if self.reason is None:
            self.reason = reason
        if self._event is not None:
            self._event.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Block a worker thread until the call should end or `seconds` have passed; True if it should end."""
        if self._event is None:
            self._event = threading.Event()
        if self.reason is not None:
            return True
        return self._event.wait(seconds)

    def raise_if_aborted(self) -> None:
        """Raise `ToolAbortedError` if the call should end."""
        if self.reason is not None:
            raise ToolAbortedError(reason=self.reason)


@dataclass(frozen=True, slots=True)
class InitContext:
    """The context in which a tool's `init` makes its definition."""

    agent: Agent | None = None
    workspace: ToolHost | None = None


@dataclass(slots=True)
class ToolContext:
    """One call, as its tool sees it (docs/opencode/core.md 2)."""

    session_id: str
    message_id: str
    call_id: str
    agent: str
    directory: Path
    """Where the session runs; relative paths start here."""
    worktree: Path
    """Top of the git checkout; ``/`` when there is none."""
    abort: AbortSignal
    workspace: ToolHost
    part_id: str = ""
    extra: dict[str, Any] = field(default_factory=dict)
    messages: list[dict[str, Any]] = field(default_factory=list)
    dry_run: bool = False
    """Permission requests are only listed: `proceed` ends the call."""
    proceeded: bool = False
    """True if every permission request was made and the work may have started, for the tools that call `proceed`."""
    by: str = "python"
    """The caller: ``user`` (a person in a cell), ``python`` (code) or ``model``."""
    _call: Call | None = None
    """The call while it runs; unset at its end: a reference cycle would leave every call to the garbage collector."""
    _report: Callable[[str | None, dict[str, Any] | None], None] | None = None
    """A function that receives reports instead of the call (`core.streaming`)."""
    _loop: asyncio.AbstractEventLoop | None = None

    async def ask(
        self,
        permission: str,
        patterns: Sequence[str],
        always: Sequence[str] = (),
        metadata: dict[str, Any] | None = None,
        also: Sequence[str] = (),
        path: str | os.PathLike[str] | None = None,
    ) -> Decision:
        """Continue only if the rules or a person allow it. Works on any thread's event loop.

        Args:
            permission: the permission's name (``edit``, ``bash``, ...).
            patterns: what exactly; each is judged.
            always: patterns remembered when a person replies "for this session".
            metadata: for the card: ``diff``, ``filepath``, ``command``.
            also: judged too, but named in the request only where a rule is stricter with it than with `patterns`:
                what the person sees by other means, such as the place in a diff that a file is moved to.
            path: the absolute path of the file or folder that the patterns are looked for in; rules are matched
                against it too.

        Returns:
            The decision, and how long a person took.

        Raises:
            PermissionDeniedError: a rule forbids it.
            PermissionRejectedError: a person denied it.
            PermissionCorrectedError: a person denied it with a reason.
        """
        return await self._on_loop(self._request(permission, patterns, always, metadata, also, path))

    def ask_sync(
        self,
        permission: str,
        patterns: Sequence[str],
        always: Sequence[str] = (),
        metadata: dict[str, Any] | None = None,
        also: Sequence[str] = (),
    ) -> Decision:
        """`ask` for a sync tool, which runs in a worker thread."""
        return self._from_thread(self._request(permission, patterns, always, metadata, also))

    def _request(
        self,
        permission: str,
        patterns: Sequence[str],
        always: Sequence[str],
        metadata: dict[str, Any] | None,
        also: Sequence[str],
        path: str | os.PathLike[str] | None = None,
    ) -> Awaitable[Decision]:
        folder = None if path is None else os.fspath(path)
        return self._current_call._ask(
            permission, list(patterns), list(always), dict(metadata or {}), also=list(also), path=folder
        )

    async def question(self, questions: Sequence[Any]) -> Answers:
        """Ask the person at the notebook questions and wait for the answers. Works on any thread's event loop.

        Args:
            questions: `core.question_request.Question` objects, or dicts in OpenCode's form: ``question`` (the text),
                ``header`` (a word or two), ``options`` (a list of ``{"label", "description"}``), ``multiple`` (several
                may be selected), ``custom`` (False: no answers in own words).

        Returns:
            For each question the labels that were selected, or the person's own words; empty if not answered.

        Raises:
            QuestionRejectedError: the person dismissed them, or nobody is there to answer.
            ValueError: there is no question, or one can't be answered.
        """
        return await self._on_loop(self._current_call._question(questions))

    def question_sync(self, questions: Sequence[Any]) -> Answers:
        """`question` for a sync tool, which runs in a worker thread."""
        return self._from_thread(self._current_call._question(questions))

    @property
    def _current_call(self) -> Call:
        if self._call is None:
            raise RuntimeError(NO_CALL)
        return self._call

    async def _on_loop(self, work: Awaitable[T]) -> T:
        """Await `work` on the call's loop, from whichever loop this is."""
        if self._loop is None:
            raise RuntimeError(NO_CALL)
        if is_current(self._loop):
            return await work
        return await asyncio.wrap_future(submit(self._loop, as_coroutine(work)))

    def _from_thread(self, work: Awaitable[T]) -> T:
        if self._loop is None:
            raise RuntimeError(NO_CALL)
        return submit(self._loop, as_coroutine(work)).result()

    @asynccontextmanager
    async def hold(self, path: str | os.PathLike[str]) -> AsyncIterator[None]:
        """Hold a file while its change is requested and made: other calls that change it wait, and their cards say so.

        On the call's own loop. A dry run changes nothing, so it neither holds the file nor waits for it.
        """
        if self.dry_run:
            yield
            return
        files = self.workspace.files
        async with AsyncExitStack() as stack:
            if files.held(path):
                with self._current_call.waiting_for_file(
                    self.workspace.relative(path).encode("utf-8", "replace").decode()
                ):
                    await stack.enter_async_context(files.lock(path))
            else:
                await stack.enter_async_context(files.lock(path))
            yield

    def proceed(self) -> None:
        """Start the work after the last permission request; a dry run ends here. Built-in tools call it.

        Raises:
            DryRunEnd: this is a dry run.
        """
        if self.dry_run:
            raise DryRunEnd
        self.proceeded = True

    def metadata(self, title: str | None = None, metadata: dict[str, Any] | None = None) -> None:
        """Show the progress of the call: replaces title and metadata of the running part. Any thread may call it.

        Keys the card knows: ``output`` (live text), ``progress`` ({value, total, message}), ``diff``.
        """
        call = self._call
        if call is None or self._loop is None:
            return
        report = self._report or call.report
        call_on_loop(self._loop, report, title, metadata)

    def child(self, name: str, arguments: dict[str, Any]) -> Call:
        """A call of another tool within this one, for the same agent: await its `Call.run`, on the call's own loop.

        It is a call like any other (hooks, rules, permission requests, a part), shown inside this one's card.
        """
        return self._current_call.child(name, arguments)

    def resolve(self, path: str) -> Path:
        """`path` as an absolute path: relative ones start at `directory`, ``~`` is the home folder; links stay."""
        expanded = os.path.expanduser(path)
        return Path(os.path.normpath(os.path.join(self.directory, expanded)))
