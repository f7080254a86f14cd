"""The program that stands between the kernel and its commands (Linux). Run as a script; imports nothing of the package.

One is started per process that runs commands; its stdin is the control socket. It keeps one pair of processes standing
by: a supervisor, and its child, which takes the next request from the control socket and becomes the command. The
supervisor adopts whatever the command leaves running (it is a "child subreaper", so ``setsid`` and double forks do not
escape it), and ends all of it when told to, when the kernel is gone, or when it is itself asked to end. So a command
costs no more than starting the shell; starting an interpreter for each would cost twelve milliseconds.

A request is one byte with three descriptors: the command's own socket, the writing and the reading end of its output
pipe; two more are its stdin (else there is none) and its stderr (else the output pipe). On the command's socket come a
length (4 bytes, big-endian) and a marshalled dict: ``argv``, ``env``, ``cwd``, ``limits`` (by number) and ``ruleset``
(whether the last descriptor is a Landlock ruleset that the process has to give itself). It is answered by lines:
``started PID`` (only with a stdin), ``failed ERRNO TEXT``, ``exited STATUS LEFT`` (LEFT: pids still there). It may be
told ``K``, end everything, or ``D``, let the rest run on (its output goes nowhere). End of file is ``K``.
"""

from __future__ import annotations

import array  # noqa: F401 - so that `socket.send_fds` does not load it in each command
import contextlib
import ctypes
import marshal
import os
import resource
import select
import signal
import socket
import sys
import time
from typing import NoReturn

GRACE = 0.2
"""Seconds between SIGTERM and SIGKILL."""
AHEAD = 0.01
"""Seconds after a command's start in which the next pair is only forked if it is needed: forking slows the start."""
GIVE_UP = 0.6
"""Seconds after its SIGKILL in which a process that hangs in the system is waited for."""
LONGEST = 10.0
"""Seconds after the first SIGKILL in which processes that fork as fast as they are killed are ended."""
LOOKS = 5
"""Times that nothing is found before that is believed, where only looking can tell."""

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAPBSET_DROP = 24
LANDLOCK_RESTRICT_SELF = 446
KEPT_CAPABILITIES = frozenset({0, 1, 3, 4})
"""What root may still do in a sandbox, about files: CHOWN, DAC_OVERRIDE, FOWNER, FSETID."""
_libc = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int) -> None:
    """The system call of that name, with one argument. A refusal is ignored: the other guards stay."""
    _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def restrict(ruleset: int | None, limits: dict[int, int]) -> None:
    """Enter the sandbox for good.

    Raises:
        OSError: the kernel refuses; the command must not run then.
    """
    for number, limit in limits.items():
        most = resource.getrlimit(number)[1]
        least = limit if most == resource.RLIM_INFINITY else min(limit, most)
        resource.setrlimit(number, (least, least))
    if ruleset is not None:
        if os.geteuid() == 0:  # root could read other processes' environments and open files past the rules
            number = 0
            while number in KEPT_CAPABILITIES or not _libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0):
                number += 1
        failed = _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if failed or _libc.syscall(LANDLOCK_RESTRICT_SELF, ruleset, 0):
            raise OSError(ctypes.get_errno(), "the kernel refuses the sandbox (Landlock)")


def descendants(pid: int) -> list[int]:
    """All processes under `pid`, parents first."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            file.read(1)
    except OSError:
        return _descendants_by_scan(pid)
    found: list[int] = []
    queue = [pid]
    while queue:
        parent = queue.pop()
        with contextlib.suppress(OSError, ValueError):
            for thread in os.listdir(f"/proc/{parent}/task"):
                with contextlib.suppress(OSError), open(f"/proc/{parent}/task/{thread}/children") as file:
                    children = [int(word) for word in file.read().split()]
                    found += children
                    queue += children
    return found


def _descendants_by_scan(pid: int) -> list[int]:
    """The same for a system whose /proc has no ``children`` files."""
    by_parent: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat") as file:
                by_parent.setdefault(int(file.read().rpartition(")")[2].split()[1]), []).append(int(name))
    found, queue = [], [pid]
    while queue:
        children = by_parent.get(queue.pop(), [])
        found += children
        queue += children
    return found


def reap() -> dict[int, int]:
    """Collect every child that has ended: pid to wait status."""
    ended: dict[int, int] = {}
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            ended[pid] = status
    return ended


def childless() -> bool:
    """Return whether there is no child at all, not even one that has ended.

    A supervisor without a child has no descendant either, for it adopts every orphan. Unlike a look at /proc this does
    not miss a process that forks and ends faster than it can be listed.
    """
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def groups_of(pids: list[int]) -> set[int]:
    """The process groups of these processes, without the own one."""
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            found.add(os.getpgid(pid))
    return found - {os.getpgid(0), 0, 1}


def signal_all(pids: list[int], number: int) -> None:
    """Send a signal to each; those that are gone or not ours are passed over."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def end_all(spare: frozenset[int] = frozenset()) -> dict[int, int]:
    """End every descendant but those in `spare`: SIGTERM, `GRACE`, SIGKILL until none is left.

    Returns:
        Wait statuses of own children that ended meanwhile.
    """
    me = os.getpid()
    ended: dict[int, int] = {}
    start = time.monotonic()
    sent: set[int] = set()
    killed: dict[int, float] = {}
    looks = 0
    while True:
        ended.update(reap())
        # In this order: what one of `spare` starts meanwhile is not in the first list.
        there = descendants(me)
        spared = spare.union(*(descendants(pid) for pid in spare)) if spare else spare
        alive = [pid for pid in there if pid not in spared]
        now = time.monotonic()
        passed = now - start
        looks = 0 if alive else looks + 1
        nothing = looks >= LOOKS if spare else not alive and childless()
        # Counted for each process: on a busy machine any time may pass before the first of them gets its signal.
        hang = bool(alive) and all(now - killed.get(pid, now) > GIVE_UP for pid in alive)
        if nothing or hang or (killed and now - min(killed.values()) > LONGEST):
            return ended
        if passed >= GRACE:
            # A group at once, so that what forks and ends faster than it can be listed goes too.
            groups = groups_of(alive) - groups_of(list(spared)) if spare else groups_of(alive)
            signal_all([-group for group in groups], signal.SIGKILL)
            signal_all(alive, signal.SIGKILL)
            for pid in alive:
                killed.setdefault(pid, now)
        else:
            fresh = [pid for pid in alive if pid not in sent]
            signal_all(fresh, signal.SIGTERM)
            signal_all(fresh, signal.SIGCONT)  # a stopped process does not see the other signal
            sent.update(fresh)
        time.sleep(0.004)


def become_command(control: socket.socket, supervisor: socket.socket) -> NoReturn:
    """In a process forked ahead: wait for a request, hand its descriptors to the supervisor, become the command.

    `supervisor` closes when the program starts; before that a failure is written there as ``ERRNO TEXT``.
    """
    try:
        parent = os.getppid()
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        for name in ("TERM", "PIPE", "XFSZ", "INT", "QUIT", "HUP"):
            signal.signal(signal.Signals["SIG" + name], signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        warm_up_reading()
        message, descriptors, _, _ = socket.recv_fds(control, 1, 6)
        if not message:
            os._exit(0)
        sock, output, drain, *own = descriptors
        socket.send_fds(supervisor, [b"s" if len(own) > 1 else b"r"], [sock, drain])
        request = read_request(socket.socket(fileno=sock))
        if request is None:
            os._exit(0)
        ruleset = own.pop() if request["ruleset"] else None
        stdin, errors = own or (os.open("/dev/null", os.O_RDONLY), output)
        os.dup2(stdin, 0)
        os.dup2(output, 1)
        os.dup2(errors, 2)
        restrict(ruleset, request["limits"])  # type: ignore[arg-type]
        keep = supervisor.fileno()
        os.closerange(3, keep)
        os.closerange(keep + 1, 65536)
        os.chdir(request["cwd"])  # type: ignore[arg-type]
        argv = request["argv"]
        os.execve(argv[0], argv, request["env"])  # type: ignore[index, arg-type]  # noqa: S606
    except OSError as error:
        supervisor.sendall(f"{error.errno} {error.strerror}".encode())
    except BaseException as error:
        supervisor.sendall(f"0 {type(error).__name__}: {error}".encode())
    os._exit(127)


def read_request(sock: socket.socket) -> dict[str, object] | None:
    """The request on a command's socket; None when the other side is gone."""
    data = b""
    expected = 4
    while len(data) < expected:
        chunk = sock.recv(min(1 << 20, expected - len(data)))
        if not chunk:
            return None
        data += chunk
        if expected == 4 and len(data) == 4:
            expected += int.from_bytes(data, "big")
    request: dict[str, object] = marshal.loads(data[4:])  # noqa: S302 - from the kernel
    return request


def warm_up_reading() -> None:
    """Read a request now, so that memory shared since the fork is not copied while a command starts."""
    ours, theirs = socket.socketpair()
    body = marshal.dumps({"argv": [b"-" * 200] * 3, "env": {b"NAME%d" % n: b"-" * 60 + b"%d" % n for n in range(100)}})
    ours.sendall(len(body).to_bytes(4, "big") + body)
    read_request(socket.socket(fileno=os.dup(theirs.fileno())))
    ours.close()
    theirs.close()


def send_report(sock: socket.socket, line: str) -> None:
    """Send a line; nobody there to hear it is noticed elsewhere."""
    with contextlib.suppress(OSError):
        sock.sendall(line.encode() + b"\n")


def receive_order(sock: socket.socket) -> bytes:
    """The next order; nothing when the kernel is gone, also if it died with an answer of ours unread."""
    try:
        return sock.recv(1)
    except ConnectionResetError:
        return b""


def wake_pipe() -> int:
    """A descriptor that becomes readable when a signal with a handler arrives."""
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    return readable


def become_supervisor(control: socket.socket, used: int, kernel: int) -> None:
    """Be the next supervisor: have the command's process ready, wait until it gets a request, see to its end."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    asked_to_end: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: asked_to_end.append(1))
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        ours.close()
        become_command(control, theirs)
    theirs.close()
    control.close()
    wake = wake_pipe()
    childless()  # now, as in `warm_up_reading`
    poll = select.poll()
    for descriptor in (wake, ours.fileno(), kernel):
        poll.register(descriptor, select.POLLIN)
    while not asked_to_end and ours.fileno() not in (ready := dict(poll.poll())):
        if kernel in ready:
            asked_to_end.append(1)
        else:
            with contextlib.suppress(BlockingIOError):
                os.read(wake, 4096)
    if asked_to_end:
        end_all()  # the command may run already, though word of it was not read yet
        return
    message, descriptors, _, _ = socket.recv_fds(ours, 1, 2)
    if not message:
        return
    with contextlib.suppress(OSError):
        os.write(used, b"1")
    sock = socket.socket(fileno=descriptors[0])
    failure = b""
    while chunk := ours.recv(4096):
        failure += chunk
    ours.close()
    if failure:
        send_report(sock, "failed " + failure.decode("utf-8", "replace"))
        return
    if message == b"s":
        send_report(sock, f"started {child}")
    supervise(child, sock, descriptors[1], wake, kernel, asked_to_end)


def supervise(child: int, sock: socket.socket, drain: int, wake: int, kernel: int, asked_to_end: list[int]) -> None:
    """See a running command, and what it leaves running, to the end."""
    poll = select.poll()
    for descriptor in (wake, sock.fileno(), kernel):
        poll.register(descriptor, select.POLLIN)
    running = True
    while True:
        ended = reap()
        if child in ended:
            running = False
            left = [] if childless() else descendants(os.getpid())
            send_report(sock, " ".join(["exited", str(ended[child]), *map(str, left)]))
        if not running and childless():
            return
        ready = {descriptor for descriptor, _ in poll.poll()}
        if wake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(wake, 4096)
        order = receive_order(sock) if sock.fileno() in ready else b""
        if asked_to_end or kernel in ready or (sock.fileno() in ready and order in (b"", b"K")):
            ended = end_all()
            if running:
                send_report(sock, f"exited {ended.get(child, signal.SIGKILL)}")
            return
        if order == b"D":
            poll.register(drain, select.POLLIN)
        if drain in ready and not os.read(drain, 1 << 16):
            poll.unregister(drain)


def serve(control: socket.socket, kernel: int) -> None:
    """Keep one supervisor standing by, until the kernel is gone or closes the socket."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    used_r, used_w = os.pipe()
    os.set_blocking(used_r, False)
    wake = wake_pipe()
    poll = select.poll()
    for descriptor in (used_r, wake, kernel):
        poll.register(descriptor, select.POLLIN)
    supervisors: set[int] = set()
    standing_by, needed = 0, True
    while True:
        if not standing_by and needed:
            standing_by = os.fork()
            if standing_by == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                become_supervisor(control, used_w, kernel)
                os._exit(0 if childless() else 1)  # 1: what is left is to be ended by this process's parent
            supervisors.add(standing_by)
        # With a supervisor standing by, only the socket's end matters: requests are for that one.
        poll.register(control.fileno(), 0 if standing_by else select.POLLIN)
        ready = dict(poll.poll(None if standing_by else AHEAD * 1000))
        if kernel in ready or ready.get(control.fileno(), 0) & select.POLLHUP:
            return  # the supervisors notice by themselves: the kernel's end, or this process's by a signal
        needed = used_r not in ready
        if not needed:
            with contextlib.suppress(BlockingIOError):
                os.read(used_r, 4096)
            standing_by = 0
        if wake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(wake, 4096)
            ended = reap()
            supervisors.difference_update(ended)
            if standing_by in ended:
                standing_by = 0
            if any(status != 0 for status in ended.values()):
                # A supervisor was killed: what it looked after is now a child of this process.
                ended = end_all(frozenset(supervisors))
                supervisors.difference_update(ended)
                if standing_by in ended:
                    standing_by = 0


def main() -> None:
    """Start serving: argv is the kernel's pid, stdin the control socket."""
    os.chdir("/")
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    control = socket.socket(fileno=os.dup(0))
    null = os.open("/dev/null", os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    serve(control, os.pidfd_open(int(sys.argv[1])))


if __name__ == "__main__":
    main()
