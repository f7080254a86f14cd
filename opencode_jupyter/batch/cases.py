"""Cases of an evaluation: the prompt, the expected answer, the files."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import anyio

from ..core.errors import ToolError
from ..tools.process.child import spawn

if TYPE_CHECKING:
    from ..core.host import ToolHost


Files = Mapping[str, Any] | str | Path
COMMAND_SECONDS = 300.0
"""Seconds a command (a setup, a scorer) may take."""
KEPT_BYTES = 100_000
"""Bytes of its output that are kept, from the end."""


@dataclass
class Case:
    """One case.

    Attributes:
        input: the prompt; or a request as `Workspace.map` takes it (a dict with options, a tool call).
        expected: what the scorers compare with.
        files: what is put into the run's folder before: names to texts, bytes or paths of files; or the path of a
            folder, whose content is copied.
        setup: run in the folder then: a command, or a function of the workspace (plain or async).
        tags: labels to group cases by.
        id: its name; its place among the cases if left out.
        metadata: whatever else scorers need.
    """

    input: Any
    expected: Any = None
    files: Files | None = None
    setup: str | Callable[[ToolHost], Any] | None = None
    tags: tuple[str, ...] = ()
    id: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Changes when the case does: what was run before is then no longer its result."""
        setup = self.setup if isinstance(self.setup, str) or self.setup is None else _source_code(self.setup)
        fields = [self.id, self.input, self.expected, _digests(self.files), setup, self.metadata]
        return hashlib.sha256(json.dumps(fields, sort_keys=True, default=repr).encode()).hexdigest()[:16]

    async def prepare(self, workspace: ToolHost) -> None:
        """Put its files into a workspace's folder and run its setup.

        Raises:
            ToolError: a file can't be written there, or the setup's command fails.
        """
        if self.files is not None:
            try:
                _write_files(self.files, workspace.directory)
            except (OSError, shutil.Error) as error:
                raise ToolError(f"case {self.id}: its files cannot be copied into the folder: {error}") from error
        if isinstance(self.setup, str):
            code, output = await run_command(self.setup, workspace.directory)
            if code != 0:
                raise ToolError(f"case {self.id}: its setup ended with {code}: {output[-500:].strip()}")
        elif self.setup is not None:
            outcome = self.setup(workspace)
            if inspect.isawaitable(outcome):
                await outcome


def cases_of(cases: Iterable[Any]) -> list[Case]:
    """Cases from `Case` objects, dicts, other dataclasses with the same names, or bare prompts.

    Raises:
        TypeError: one is none of these, or has something a case does not have.
        ValueError: there is none, or two have the same id.
    """
    if isinstance(cases, (str, bytes, Mapping)) or not isinstance(cases, Iterable):
        raise TypeError("evaluate() takes a list of cases: [{'input': ..., 'expected': ...}, ...]")
    cases = [_case(case_source, index) for index, case_source in enumerate(cases)]
    if not cases:
        raise ValueError("there are no cases to evaluate")
    ids: set[str] = set()
    for case in cases:
        if case.id in ids:
            raise ValueError(f"two cases have the id {case.id!r}; give each one its own")
        ids.add(case.id)
    return cases


def _case(source: Any, index: int) -> Case:
    names = [field_info.name for field_info in dataclasses.fields(Case)]
    if isinstance(source, Case):
        case = dataclasses.replace(source)
    elif isinstance(source, str):
        case = Case(source)
    else:
        if dataclasses.is_dataclass(source) and not isinstance(source, type):
            values = {field_info.name: getattr(source, field_info.name) for field_info in dataclasses.fields(source)}
        elif isinstance(source, Mapping):
            values = dict(source)
        else:
            raise TypeError(f"case {index} is {source!r:.80}; it takes a dict with {', '.join(names)}")
        unknown = [str(name) for name in values if name not in names]
        if unknown or "input" not in values:
            problem = f"has {', '.join(unknown)}" if unknown else "has no 'input'"
            raise TypeError(f"case {index} {problem}; it takes {', '.join(names)} (anything else goes into metadata)")
        case = Case(**values)
    case.id = str(case.id or index)
    tags: Any = case.tags
    case.tags = (tags,) if isinstance(tags, str) else tuple(tags)
    if isinstance(case.files, Mapping):
        for name in case.files:
            _relative_path(str(name))
    return case


def _relative_path(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise ValueError(f"a case's file {name!r} must lie inside the run's folder: give a relative path")
    return path


def _write_files(files: Files, folder: Path) -> None:
    if not isinstance(files, Mapping):
        shutil.copytree(Path(files).expanduser(), folder, symlinks=True, dirs_exist_ok=True)
        return
    for name, content in files.items():
        target = folder / _relative_path(str(name))
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Path):
            if content.is_dir():
                shutil.copytree(content, target, symlinks=True, dirs_exist_ok=True)
            else:
                shutil.copy2(content, target)
        elif isinstance(content, bytes):
            target.write_bytes(content)
        else:
            target.write_text(str(content), encoding="utf-8")


def _digests(files: Files | None) -> Any:
    if files is None:
        return None
    if not isinstance(files, Mapping):
        return _digest(Path(files))
    return {str(name): _digest(content) for name, content in files.items()}


def _digest(content: Any) -> str:
    if isinstance(content, Path):
        path = content.expanduser()
        within = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        contents = [(str(file.relative_to(path)), file.read_bytes()) for file in within if file.is_file()]
        return hashlib.sha256(repr(contents).encode()).hexdigest()
    data = content if isinstance(content, bytes) else str(content).encode()
    return hashlib.sha256(data).hexdigest()


def _source_code(function: Callable[..., Any]) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return getattr(function, "__qualname__", type(function).__name__)


async def run_command(command: str, folder: Path, limit: float = COMMAND_SECONDS) -> tuple[int, str]:
    """Run a command in a folder.

    Returns:
        Its exit code (124 if it took too long, 128 and the signal's number if one ended it) and its output.
    """
    output = bytearray()

    def keep_end(data: bytes) -> None:
        output.extend(data)
        del output[:-KEPT_BYTES]

    shell = ["cmd", "/c", command] if os.name == "nt" else ["/bin/sh", "-c", command]
    child = spawn(shell, cwd=str(folder), env=dict(os.environ), on_output=keep_end)
    code = 124
    try:
        with anyio.move_on_after(limit):
            outcome = await child.wait()
            code = 128 + (outcome.signal or 0) if outcome.code is None else outcome.code
        if code == 124:
            await child.stop()
    except BaseException:
        await child.stop()
        raise
    finally:
        child.close()
    return code, bytes(output).decode("utf-8", "replace")
