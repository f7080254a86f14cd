"""Real kernels of chosen ipykernel versions, each in an environment of its own, driven by raw messages.

`Kernel` reads all channels in one place, `pump`, on the caller's thread: every helper that waits
pumps until what it waits for is there, so a test can act (click, interrupt, answer) while a cell runs.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import queue
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zmq
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager
from packaging.requirements import Requirement

CHECKOUT = Path(__file__).parents[2]
ENVIRONMENTS = CHECKOUT / ".venvs"
PINS = {"6.31": "ipykernel==6.31.*", "7.3": "ipykernel==7.3.*", "7.4": "ipykernel==7.4.*"}
"""The versions tested: the last of 6.x, the last with subshell delivery, and what pip gives today."""
OLDEST, *_, NEWEST = PINS
CARD_MIME = "application/vnd.opencode.toolpart.v1+json"
WIDGET_MIME = "application/vnd.jupyter.widget-view+json"
START_TIMEOUT = 60.0


SERVER_DOCUMENTS = ("jupyterlab>=4.4", "jupyter-server-documents", "ipykernel")
"""JupyterLab as jupyter-ai 3 sets it up: the server runs the cells of the open page, without input."""


def requirements(version: str) -> list[str]:
    """What an environment holds: the package's own dependencies, the MCP SDK, the pinned ipykernel, jupyter_client."""
    return [*_own_dependencies("mcp"), PINS[version], "jupyter_client"]


def environment(version: str) -> Path:
    """The Python of the environment for `version`; see `make_environment`."""
    return make_environment(f"ipykernel-{version}", requirements(version))


def server_documents() -> Path:
    """The Python of an environment with JupyterLab and jupyter-server-documents, made as the others are."""
    return make_environment("server-documents", [*_own_dependencies(), *SERVER_DOCUMENTS])


def lab() -> Path:
    """The Python of an environment that `pip install "opencode-jupyter[lab]"` makes, without the package itself."""
    return make_environment("lab", _own_dependencies("lab"))


def install_kernelspec(folder: Path, name: str, python: Path) -> None:
    """Register `python`, with the checkout on its path, as the kernel `name` in a folder for ``JUPYTER_PATH``."""
    spec = {
        "argv": [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": name,
        "language": "python",
        "env": {"PYTHONPATH": str(CHECKOUT)},
    }
    kernel = folder / "kernels" / name / "kernel.json"
    kernel.parent.mkdir(parents=True)
    kernel.write_text(json.dumps(spec))


def make_environment(name: str, packages: list[str]) -> Path:
    """The Python of an environment that holds `packages`, made anew only when they change.

    Raises:
        RuntimeError: uv could not make it; with uv's words.
    """
    folder = ENVIRONMENTS / name
    python = folder / "bin" / "python"
    stamp = folder / "requirements.stamp"
    digest = hashlib.sha256("\n".join([sys.version, *packages]).encode()).hexdigest()
    ENVIRONMENTS.mkdir(exist_ok=True)
    with (ENVIRONMENTS / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test runs at once make it once
        if stamp.exists() and stamp.read_text() == digest:
            return python
        shutil.rmtree(folder, ignore_errors=True)
        _uv("venv", "--quiet", "--python", sys.executable, str(folder))
        # compiled once: where Python is told to write no bytecode, each of hundreds of kernels would compile anew
        _uv("pip", "install", "--quiet", "--compile-bytecode", "--python", str(python), *packages)
        stamp.write_text(digest)
    return python


def _own_dependencies(*extras: str) -> list[str]:
    """The package's own dependencies, and those of some of its extras with the extras that they name."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    packages = list(project["dependencies"])
    pending = list(extras)
    for extra in pending:
        for package in project["optional-dependencies"][extra]:
            requirement = Requirement(package)
            if requirement.name != project["name"]:
                packages.append(package)
            elif requirement.marker is None or requirement.marker.evaluate():
                pending += sorted(requirement.extras.difference(pending))
    return packages


def _uv(*arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "uv", *arguments],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=600,
    )
    if done.returncode:
        raise RuntimeError(f"uv {' '.join(arguments[:2])} failed:\n{done.stderr[-3000:]}")


class _Manager(KernelManager):
    """Starts the Python it is given instead of a registered kernel."""

    python: str = sys.executable
    shutdown_wait_time = 3.0

    @property
    def kernel_spec(self) -> KernelSpec:
        return KernelSpec(
            argv=[self.python, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            display_name="test",
            language="python",
            interrupt_mode="signal",
        )


@dataclass
class Execution:
    """One `execute_request` and everything that came back for it."""

    id: str
    code: str
    messages: list[dict[str, Any]] = field(default_factory=list)
    """Every iopub message of it, in order."""
    reply: dict[str, Any] | None = None
    """Content of the shell reply."""
    idle: bool = False
    """Whether the kernel has said that it is done with it."""
    elapsed: float = 0.0
    """Seconds from sending to idle and reply."""
    _sent: float = field(default_factory=time.monotonic)

    @property
    def done(self) -> bool:
        """Whether reply and idle have come."""
        return self.idle and self.reply is not None

    def contents(self, *types: str) -> list[dict[str, Any]]:
        """The contents of its iopub messages of these types."""
        return [m["content"] for m in self.messages if m["msg_type"] in types]

    def stream(self, name: str) -> str:
        """What it wrote to ``stdout`` or ``stderr``."""
        return "".join(c["text"] for c in self.contents("stream") if c["name"] == name)

    @property
    def stdout(self) -> str:
        """What it printed."""
        return self.stream("stdout")

    @property
    def stderr(self) -> str:
        """What it wrote to stderr."""
        return self.stream("stderr")

    @property
    def result(self) -> str | None:
        """Its ``Out[...]`` as text."""
        contents = self.contents("execute_result")
        return contents[-1]["data"].get("text/plain") if contents else None

    @property
    def error(self) -> str | None:
        """``Name: message`` of the exception it ended with; None if it ended well."""
        if self.reply is None or self.reply["status"] != "error":
            return None
        return f"{self.reply['ename']}: {self.reply['evalue']}"

    def check(self) -> Execution:
        """Itself, if it ended well; else an AssertionError with the traceback."""
        trace = "\n".join((self.reply or {}).get("traceback", []))
        assert self.error is None, f"{self.code}\n{trace}"
        return self


class Kernel:
    """A running kernel and what it has shown."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager = manager
        self.client = client
        self.executions: dict[str, Execution] = {}
        self.displays: dict[str, dict[str, Any]] = {}
        """The newest MIME bundle of every display id."""
        self.comms: dict[str, dict[str, Any]] = {}
        """The state of every open comm (widget), kept up to date."""
        self.custom: list[tuple[str, Any]] = []
        """Custom messages of widgets: (comm id, content)."""
        self.replies: dict[str, dict[str, Any]] = {}
        """Whole replies on shell and control, by the id of the request."""
        self.status = ""
        """The last status published, whatever it was for: what a front end shows."""
        self.inputs: list[dict[str, Any]] = []
        """Input requests not answered yet."""
        self._poller = zmq.Poller()
        self._channels = [client.iopub_channel, client.shell_channel, client.stdin_channel, client.control_channel]
        for channel in self._channels:
            self._poller.register(channel.socket, zmq.POLLIN)

    # Running code.

    def submit(self, code: str, *, allow_stdin: bool = True, store_history: bool = True) -> Execution:
        """Send `code` and return at once."""
        request = self.client.execute(code, allow_stdin=allow_stdin, store_history=store_history)
        execution = self.executions[request] = Execution(request, code)
        return execution

    def finish(self, execution: Execution, timeout: float = 30.0) -> Execution:
        """Wait until `execution` is done."""
        self.pump(lambda: execution.done, timeout, f"the end of {execution.code!r}")
        return execution

    def execute(self, code: str, timeout: float = 30.0, **options: Any) -> Execution:
        """Run `code` and wait until it is done; an exception in it is in the result."""
        return self.finish(self.submit(code, **options), timeout)

    def run(self, code: str, timeout: float = 30.0) -> Execution:
        """`execute`, failing with the cell's traceback if it raised."""
        return self.execute(code, timeout).check()

    # Messages.

    def send(
        self,
        channel: str,
        message_type: str,
        content: dict[str, Any],
        *,
        subshell_id: str | None = None,
        metadata: dict[str, Any] | None = None,
        buffers: list[bytes] | None = None,
    ) -> str:
        """Send a raw message on ``shell`` or ``control``; returns its id.

        Args:
            subshell_id: set in the header, as JupyterLab does for comm messages when the kernel has subshells.
        """
        message = self.client.session.msg(message_type, content, metadata=metadata)
        if subshell_id is not None:
            message["header"]["subshell_id"] = subshell_id
        socket = {"shell": self.client.shell_channel, "control": self.client.control_channel}[channel].socket
        self.client.session.send(socket, message, buffers=buffers)
        return str(message["header"]["msg_id"])

    def request(
        self, channel: str, message_type: str, content: dict[str, Any], timeout: float = 10.0
    ) -> dict[str, Any]:
        """Send a message and wait for its reply; returns the reply's content."""
        request = self.send(channel, message_type, content)
        self.pump(lambda: request in self.replies, timeout, f"a reply to {message_type}")
        return dict(self.replies[request]["content"])

    def comm_msg(
        self, comm_id: str, data: dict[str, Any], *, channel: str = "shell", subshell_id: str | None = None
    ) -> str:
        """Send `data` to a comm as a front end does."""
        return self.send(channel, "comm_msg", {"comm_id": comm_id, "data": data}, subshell_id=subshell_id)

    def widget_message(
        self, comm_id: str, content: dict[str, Any], *, channel: str = "shell", subshell_id: str | None = None
    ) -> str:
        """What ``model.send(content)`` of an ipywidget's front end sends."""
        data = {"method": "custom", "content": content}
        return self.comm_msg(comm_id, data, channel=channel, subshell_id=subshell_id)

    def create_subshell(self) -> str:
        """Make a subshell (ipykernel 7 and later); returns its id."""
        reply = self.request("control", "create_subshell_request", {})
        assert reply["status"] == "ok", reply
        return str(reply["subshell_id"])

    def answer(self, text: str, timeout: float = 10.0) -> dict[str, Any]:
        """Wait until the kernel asks for a line on stdin and give it `text`; returns the request's content."""
        self.pump(lambda: bool(self.inputs), timeout, "an input request")
        request = self.inputs.pop(0)
        self.client.session.send(self.client.stdin_channel.socket, "input_reply", {"value": text}, parent=request)
        return dict(request["content"])

    def interrupt(self) -> None:
        """The stop button: SIGINT."""
        self.manager.interrupt_kernel()

    @property
    def pid(self) -> int:
        """Process id of the kernel."""
        return int(self.manager.provisioner.pid)

    # What it shows.

    def cards(self) -> list[dict[str, Any]]:
        """The tool parts on show: live (state of a widget) and settled (MIME of a display), in order of showing."""
        settled = [d[CARD_MIME] for d in self.displays.values() if CARD_MIME in d and WIDGET_MIME not in d]
        shown = {c.get("callID") for c in settled}
        live = [c["part"] for c in self.comms.values() if isinstance(c.get("part"), dict) and c["part"]]
        return [*settled, *(c for c in live if c.get("callID") not in shown)]

    def wait_card(self, state: str, count: int = 1, timeout: float = 10.0) -> list[dict[str, Any]]:
        """Wait until `count` cards are in `state`: pending, running, asking, completed or error."""

        def cards() -> list[dict[str, Any]]:
            return [c for c in self.cards() if _card_state(c) == state]

        self.pump(lambda: len(cards()) >= count, timeout, lambda: f"{count} cards {state}; there are {self.states()}")
        return cards()

    def states(self) -> list[str]:
        """The state of every card."""
        return [_card_state(c) for c in self.cards()]

    def card_comm(self, call_id: str) -> str:
        """The comm id of the live card of a call."""
        for comm_id, state in self.comms.items():
            if isinstance(state.get("part"), dict) and state["part"].get("callID") == call_id:
                return comm_id
        raise KeyError(f"no live card shows call {call_id}")

    def wait_display(self, matches: Callable[[dict[str, Any]], bool], timeout: float = 10.0) -> dict[str, Any]:
        """Wait until a display with an id has a MIME bundle that `matches`; returns that bundle."""

        def display() -> dict[str, Any] | None:
            return next((d for d in self.displays.values() if matches(d)), None)

        self.pump(lambda: display() is not None, timeout, lambda: f"a display; there are {self.displays}")
        return display() or {}

    # Reading.

    def pump(
        self,
        until: Callable[[], bool],
        timeout: float = 10.0,
        what: str | Callable[[], str] = "it",
        strict: bool = True,
    ) -> bool:
        """Read messages until `until()` holds.

        Returns:
            Whether it holds; False only if `strict` is off.

        Raises:
            TimeoutError: `timeout` seconds have passed.
            RuntimeError: the kernel died.
        """
        deadline = time.monotonic() + timeout
        while True:
            self._read_all()
            if until():
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                if not strict:
                    return False
                raise TimeoutError(f"waited {timeout:g} s for {what() if callable(what) else what}")
            if not self.manager.is_alive():
                raise RuntimeError("the kernel died")
            self._poller.poll(min(left, 0.5) * 1000)

    def idle_for(self, seconds: float) -> None:
        """Read messages for `seconds`."""
        self.pump(lambda: False, seconds, strict=False)

    def _read_all(self) -> None:
        for channel in self._channels:
            while True:
                try:
                    message = channel.get_msg(timeout=0)
                except queue.Empty:
                    break
                if channel is self.client.iopub_channel:
                    self._on_iopub(message)
                elif channel is self.client.stdin_channel:
                    self.inputs.append(message)
                else:
                    self._on_reply(message)

    def _on_reply(self, message: dict[str, Any]) -> None:
        parent = message["parent_header"].get("msg_id", "")
        self.replies[parent] = message
        if parent in self.executions:
            execution = self.executions[parent]
            execution.reply = message["content"]
            self._time(execution)

    def _on_iopub(self, message: dict[str, Any]) -> None:
        content, kind = message["content"], message["msg_type"]
        if kind == "status":
            self.status = content["execution_state"]
        execution = self.executions.get(message["parent_header"].get("msg_id", ""))
        if execution is not None:
            execution.messages.append(message)
            if kind == "status" and content["execution_state"] == "idle":
                execution.idle = True
                self._time(execution)
        if kind in ("display_data", "update_display_data"):
            display_id = content.get("transient", {}).get("display_id")
            if display_id:
                self.displays[display_id] = _with_ids(content)
        elif kind == "comm_open":
            self.comms[content["comm_id"]] = dict(content["data"].get("state", {}))
        elif kind == "comm_close":
            self.comms.pop(content["comm_id"], None)
        elif kind == "comm_msg":
            data = content["data"]
            if data.get("method") == "update":
                self.comms.setdefault(content["comm_id"], {}).update(data["state"])
            elif data.get("method") == "custom":
                self.custom.append((content["comm_id"], data["content"]))

    @staticmethod
    def _time(execution: Execution) -> None:
        if execution.done and not execution.elapsed:
            execution.elapsed = time.monotonic() - execution._sent


def _card_state(part: dict[str, Any]) -> str:
    state = str(part.get("state", {}).get("status", ""))
    return "asking" if part.get("ui", {}).get("ask") else state


@contextmanager
def start(
    version: str | None = None,
    *,
    python: Path | None = None,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    connection_file: Path | None = None,
) -> Iterator[Kernel]:
    """A fresh kernel; shut down, and killed if need be, at the end.

    Args:
        version: a key of `PINS`; None takes the ipykernel of the tests' own environment.
        python: the Python of another environment, such as `lab()`.
        cwd: its working folder.
        env: added to the environment; the checkout is on its path.
        connection_file: whose name tells what started the kernel; a temporary one if left out.
    """
    manager = _Manager()
    if python is not None:
        manager.python = str(python)
    elif version is not None:
        manager.python = str(environment(version))
    if connection_file is not None:
        manager.connection_file = str(connection_file)
    paths = [str(CHECKOUT), *filter(None, [os.environ.get("PYTHONPATH")])]
    manager.start_kernel(
        cwd=str(cwd or Path.cwd()),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **(env or {})},
        stdout=subprocess.DEVNULL,
    )
    client = manager.client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=START_TIMEOUT)
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel()  # asks first, so that what the kernel does at its end is run; then kills
        manager.cleanup_resources()


if __name__ == "__main__":  # `make kernels`: make all environments beforehand, so that no test waits for it
    for made in (*map(environment, PINS), server_documents(), lab()):
        print(made)


def _with_ids(content: dict[str, Any]) -> dict[str, Any]:
    """A display's data, its card with the ids that are in the metadata."""
    data, ids = dict(content["data"]), content.get("metadata", {}).get("opencode", {})
    card = {CARD_MIME: data[CARD_MIME] | {n: ids[n] for n in ("id", "callID") if n in ids}} if CARD_MIME in data else {}
    return data | card
