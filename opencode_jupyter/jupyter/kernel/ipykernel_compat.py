"""Touches of ipykernel's internals, for releases 6.29 to 7.x; those of its interrupts are in `ipykernel_interrupts`.

Each function checks whether the release has what it needs, does nothing if it does not, and returns the function
that undoes it. What was measured about each is in docs/opencode/jupyter.md 4; in short: a kernel
runs one shell message at a time, so a click on a button shown by a running cell arrives late, unless it is seen in
the shell-channel thread (7.x), read off the socket by the waiting cell (6.x), or sent on the control channel.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from .ipykernel_interrupts import runs_code

log = logging.getLogger(__name__)

OnComm = Callable[[str, dict[str, Any], str], None]
"""``(comm id, the message's data, route)``; called on whatever thread saw the message; must not print or display."""
CONTROL_TYPE = "opencode_jupyter"
"""Message type of our own on the control channel; content: ``{"comm_id": ..., "data": {...}}``."""
CONTROL_REPLY = "opencode_jupyter_reply"
"""Type of the reply to a request of that type; content: what the request's handler returned."""
Requests = dict[str, Callable[[dict[str, Any]], dict[str, Any]]]
"""Handlers of requests by their ``kind``. Called on the control channel's thread; must be quick."""


def kernel_of(shell: Any) -> Any:
    """The ipykernel that runs this shell; None in a terminal."""
    return getattr(shell, "kernel", None)


def can_await(kernel: Any) -> bool:
    """Whether an awaiting cell receives clicks: where the tap can be installed."""
    return _channel_thread(kernel) is not None or _reads_shell_on_main(kernel)


def _channel_thread(kernel: Any) -> Any:
    """The thread that reads the shell socket in 7.x; None in 6.x."""
    return getattr(kernel, "shell_channel_thread", None)


def _reads_shell_on_main(kernel: Any) -> bool:
    """Whether the main thread's event loop reads the shell socket: 6.x."""
    return _channel_thread(kernel) is None and getattr(kernel, "shell_stream", None) is not None


def allows_stdin(kernel: Any) -> bool:
    """Whether the client that runs this cell answers ``input()``.

    False where nobody is present (nbclient), but also where a server runs the cells of an open page
    (jupyter-server-documents).
    """
    return bool(getattr(kernel, "_allow_stdin", False))


_closed_comms: deque[str] = deque(maxlen=1000)


def _is_no_late_message(record: logging.LogRecord) -> bool:
    """Whether a log record is anything but the warning about a message for a comm that we closed."""
    args = record.args if isinstance(record.args, tuple) else ()
    return not (record.msg == "No such comm: %s" and args and args[0] in _closed_comms)


def expect_late_messages(*comm_ids: str) -> None:
    """Have no warning logged when a front end answers on these comms, which are closed now.

    JupyterLab reports that it has drawn a card, and qtconsole closes every comm; a busy kernel reads both when the
    cell is over.
    """
    _closed_comms.extend(comm_ids)
    logging.getLogger("Comm").addFilter(_is_no_late_message)  # a second time does nothing


def has_no_cell(kernel: Any) -> bool:
    """Whether this code came from no notebook's cell, as in jupyter console and qtconsole.

    JupyterLab, Notebook and VS Code send the cell's id in the request's metadata.
    """
    parent: dict[str, Any] = (kernel.get_parent("shell") if kernel is not None else None) or {}
    return bool(parent) and "cellId" not in (parent.get("metadata") or {})


def install_tap(kernel: Any, on_comm: OnComm) -> Callable[[], None] | None:
    """See widget messages when they are read from the shell socket, before they queue up after the running cell.

    In 7.x a thread of its own reads them, so a blocked cell is reached too. In 6.x the main thread's loop does, which
    runs while a cell awaits; a blocked cell needs `make_pump`.
    """
    if not can_await(kernel):
        return None
    stream, session = kernel.shell_stream, kernel.session

    def dispatch_comm_message(message: Any) -> None:
        try:
            head = _head(session, message)
            if head["header"]["msg_type"] == "comm_msg":
                _dispatch_message(session.unpack(head["content"]), on_comm, "tap")
        except Exception:
            log.debug("a message could not be read", exc_info=True)

    if _reads_shell_on_main(kernel):
        return _tap_main_loop(kernel, dispatch_comm_message)
    handler, loop = kernel.shell_channel_thread_main, _channel_thread(kernel).io_loop

    async def dispatch_and_pass_on(message: Any) -> Any:
        dispatch_comm_message(message)
        return await handler(message)

    def set_callback(callback: Any) -> None:
        done = threading.Event()

        def apply() -> None:
            stream.on_recv(callback, copy=False)
            done.set()

        loop.add_callback(apply)
        done.wait(1)

    set_callback(dispatch_and_pass_on)
    return lambda: set_callback(handler)


def _tap_main_loop(kernel: Any, dispatch_comm_message: Callable[[Any], None]) -> Callable[[], None]:
    def dispatch_and_pass_on(message: Any) -> None:
        dispatch_comm_message(message)
        kernel.schedule_dispatch(kernel.dispatch_shell, message)

    def set_callback(callback: Any) -> None:
        if threading.current_thread() is threading.main_thread():
            kernel.shell_stream.on_recv(callback, copy=False)
        else:
            kernel.io_loop.add_callback(kernel.shell_stream.on_recv, callback, copy=False)

    set_callback(dispatch_and_pass_on)
    return lambda: set_callback(partial(kernel.schedule_dispatch, kernel.dispatch_shell))


def install_control(kernel: Any, on_comm: OnComm, requests: Requests) -> Callable[[], None] | None:
    """Receive replies and requests on the control channel, which a busy kernel always reads."""
    handlers = getattr(kernel, "control_handlers", None)
    if not isinstance(handlers, dict):
        return None

    def handle(stream: Any, ident: Any, message: dict[str, Any]) -> None:
        content = message.get("content", {})
        data = content.get("data")
        answer = requests.get(str(data.get("kind"))) if isinstance(data, dict) else None
        if answer is None:
            _dispatch_message(content, on_comm, "control")
        else:
            kernel.session.send(stream, CONTROL_REPLY, answer(data), parent=message, ident=ident)

    before = {name: handlers.get(name) for name in (CONTROL_TYPE, "comm_msg")}
    handlers[CONTROL_TYPE] = handle
    handlers["comm_msg"] = handle

    def undo() -> None:
        for name, old in before.items():
            if handlers.get(name) is not handle:
                continue  # replaced by other code
            if old is None:
                del handlers[name]
            else:
                handlers[name] = old

    return undo


def install_status(kernel: Any) -> Callable[[], None] | None:
    """Keep a kernel's status busy while a cell runs, and each cell's messages its own.

    A front end shows the last status that was published, whatever it was for. Each message that is handled while a cell
    runs (on the control channel, in a subshell) ends with "idle", so the cell's "busy" is published again after it.

    ipykernel 7.4 handles a widget's message beside an awaiting cell and then restores that cell as the parent of all
    that is published, though it may have ended and the next one be running: that one's outputs and its "idle" would
    name the wrong cell, and it would stay at ``[*]``.
    """
    publish_status = getattr(kernel, "_publish_status", None)
    if publish_status is None or "_publish_status" in vars(kernel):
        return None
    set_parent = kernel.set_parent
    ended: deque[str] = deque(maxlen=100)
    cells: dict[str, dict[str, Any]] = {}
    lock = threading.RLock()  # the cell's own "idle" must not come between a check and the "busy" that follows it

    def publish_and_keep(status: str, channel: str, parent: dict[str, Any] | None = None) -> None:
        message = parent or kernel.get_parent(channel) or {}
        header = message.get("header", {})
        is_cell = header.get("msg_type") == "execute_request"
        with lock:
            if is_cell and status == "busy":
                cells[header["msg_id"]] = message
            elif is_cell:
                cells.pop(header["msg_id"], None)
            if status == "idle" and channel == "shell" and header:
                ended.append(header["msg_id"])
            publish_status(status, channel, parent)
            if status == "idle" and cells:
                publish_status("busy", "shell", next(reversed(cells.values())))

    def set_live_parent(ident: Any, parent: dict[str, Any], channel: str = "shell") -> None:
        if channel == "shell" and parent and parent.get("header", {}).get("msg_id") in ended:
            ident, parent = _shell_ident(kernel), kernel.get_parent("shell")
        set_parent(ident, parent, channel)

    running = kernel.get_parent("shell") or {}
    if running.get("header", {}).get("msg_type") == "execute_request" and runs_code():
        cells[running["header"]["msg_id"]] = running
    replaced = {"_publish_status": publish_and_keep, "set_parent": set_live_parent}
    vars(kernel).update(replaced)

    def undo() -> None:
        for name, function in replaced.items():
            if vars(kernel).get(name) is function:
                delattr(kernel, name)

    return undo


def publish(kernel: Any, content: dict[str, Any]) -> bool:
    """Send every front end a message of our own type on IOPub; False where that cannot be done.

    It belongs to no cell: front ends other than our extension ignore it, and so does what runs a notebook without a
    page (nbclient, papermill). Any thread may call it.
    """
    session, socket = getattr(kernel, "session", None), getattr(kernel, "iopub_socket", None)
    if session is None or socket is None:
        return False
    session.send(socket, CONTROL_TYPE, content, ident=CONTROL_TYPE.encode())
    return True


def _dispatch_message(content: dict[str, Any], on_comm: OnComm, route: str) -> None:
    data = content.get("data")
    if not isinstance(data, dict):
        return
    if data.get("method") == "custom":  # as a widget's model sends it
        data = data.get("content")
    elif "method" in data:
        return
    if isinstance(data, dict) and isinstance(data.get("kind"), str):
        on_comm(str(content.get("comm_id", "")), data, route)


def make_pump(kernel: Any) -> Callable[[], None] | None:
    """For 6.x: a function that a blocking cell calls to read its own shell socket.

    Widget messages are handled at once; all others are put in the kernel's queue, so that their order stays.
    """
    if not _reads_shell_on_main(kernel):
        return None
    import zmq

    stream, session = kernel.shell_stream, kernel.session
    socket = stream.socket
    woken = False

    def pump() -> None:
        nonlocal woken
        if threading.current_thread() is not threading.main_thread():
            return
        while socket.poll(0):
            try:
                message = socket.recv_multipart(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                return
            if _message_type(session, message) in ("comm_msg", "comm_close", "comm_open"):
                _dispatch_comm(kernel, stream, message)
            else:
                kernel.schedule_dispatch(kernel.dispatch_shell, message)
            if not woken:
                woken = True
                # The stream waits for an edge that was taken from it: have it look again once the cell is over.
                kernel.io_loop.add_callback(wake_stream)

    def wake_stream() -> None:
        nonlocal woken
        woken = False
        if not stream.closed():
            stream.flush()

    return pump


def _head(session: Any, message: Any) -> dict[str, Any]:
    _, frames = session.feed_identities(message, copy=False)
    # content=False leaves the signature unused: the real handler checks each one only once.
    return dict(session.deserialize(frames, content=False, copy=False))


def _message_type(session: Any, message: Any) -> str:
    try:
        return str(_head(session, message)["header"]["msg_type"])
    except Exception:  # not signed, or not a message: the kernel reports that when its turn comes
        return ""


def _dispatch_comm(kernel: Any, stream: Any, message: Any) -> None:
    idents, frames = kernel.session.feed_identities(message, copy=False)
    parent, ident = kernel.get_parent("shell"), kernel._parent_ident.get("shell")
    try:
        unpacked = kernel.session.deserialize(frames, content=True, copy=False)
        handler = kernel.shell_handlers.get(unpacked["header"]["msg_type"])
        if handler is not None:
            handler(stream, idents, unpacked)
    except Exception:
        log.debug("a widget message could not be handled", exc_info=True)
    finally:
        kernel.set_parent(ident, parent, channel="shell")


class StdinPrompt:
    """A question in the front end's input box whose answer can be polled, and that can be dropped.

    The box of a dropped question stays on the page. What is typed there later answers that one, not the question
    whose box is below it: JupyterLab reports which it answers.
    """

    _sent: ClassVar[set[str]] = set()

    def __init__(self, kernel: Any, text: str) -> None:
        import zmq

        self._kernel = kernel
        self._socket = kernel.stdin_socket
        self._noblock = zmq.NOBLOCK
        while self._socket.poll(0):  # replies to earlier questions
            self._socket.recv_multipart(zmq.NOBLOCK)
        sent = kernel.session.send(
            self._socket,
            "input_request",
            {"prompt": text, "password": False},
            kernel.get_parent("shell"),
            ident=_shell_ident(kernel),
        )
        self._id = str(sent["header"]["msg_id"])
        self._sent.add(self._id)

    def poll(self) -> str | None:
        """The answer, or None while there is none. Only the main thread may call it."""
        try:
            _, reply = self._kernel.session.recv(self._socket, mode=self._noblock)
        except Exception:
            log.debug("an unreadable answer on stdin", exc_info=True)
            return None
        if reply is None:
            return None
        answered = (reply.get("parent_header") or {}).get("msg_id")
        if answered != self._id and answered in self._sent:
            return None
        value = reply.get("content", {}).get("value")
        return value if isinstance(value, str) else ""


def _shell_ident(kernel: Any) -> Any:
    if hasattr(kernel, "_get_shell_context_var"):  # 7.x
        return kernel._get_shell_context_var(kernel._shell_parent_ident)
    return kernel._parent_ident["shell"]


def call_later_on_main(kernel: Any, fn: Callable[[], Any]) -> bool:
    """Have `fn` run on the kernel's main thread when it is idle; False when there is no kernel."""
    loop = getattr(kernel, "io_loop", None)
    if loop is None:
        return False
    loop.add_callback(fn)
    return True
