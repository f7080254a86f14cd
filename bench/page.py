"""Cards in a page: how long 1,000 saved ones take to open, and whether a busy live one leaves the page responsive.

JupyterLab from this environment and the Chromium of the browser tests; both notebooks have plain-text twins of the same
size that are opened in the same run.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import nbformat

from ._measure import Options, Row

if TYPE_CHECKING:
    from tests.support.browser import Browser

CARDS = 1_000
ROUNDS = 4
LIMIT = 1.5
"""Times what the plain notebook takes (the aim)."""
SECONDS = 60
RATE = 20
"""Updates in a second."""
FRAME_MS = 200
GROWTH = 1.2
"""Times the memory after a first tenth of the updates."""
CARD = "application/vnd.opencode.toolpart.v1+json"

_OUTPUT = "".join(f"\x1b[3{n % 8}m{n:4}\x1b[0m: def function_{n}(argument): return argument * {n}\n" for n in range(40))
_DIFF = "--- a\n+++ b\n@@ -1,20 +1,20 @@\n" + "".join(
    f" context line {n}\n-before = call({n})\n+after = call({n}, 1)\n" for n in range(10)
)
_FRAMES = """() => {
    window.frames_ = [];
    let last = performance.now();
    const beat = now => { window.frames_.push(now - last); last = now; requestAnimationFrame(beat); };
    requestAnimationFrame(beat);
}"""
_SCROLL = """async () => {
    const box = document.querySelector('.jp-WindowedPanel-outer') ?? document.querySelector('.jp-Notebook');
    for (let step = 1; step <= 40; step++) {
        box.scrollTop = (box.scrollHeight - box.clientHeight) * step / 40;
        await new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve, 30)));
    }
    return box.scrollTop;
}"""
_LIVE = """async ([source, seconds, rate]) => {
    const url = URL.createObjectURL(new Blob([source], {type: 'text/javascript'}));
    const card = (await import(url)).default;
    const heard = {};
    const part = {
        v: 1, id: 'p', callID: 'c', sessionID: 's', messageID: 'm', tool: 'bash',
        state: {status: 'running', input: {command: 'make'}, time: {start: Date.now()}},
        ui: {label: 'make', by: 'user', waited: 0, decisions: [], tail: ''}
    };
    const on = (name, call) => { heard[name] = call; };
    const model = {get: name => name === 'part' ? part : undefined, on, off() {}, send() {}};
    const el = document.createElement('div');
    document.body.append(el);
    card.render({model, el});
    const lines = [];
    const memory = [];
    const used = () => { globalThis.gc?.(); return performance.memory.usedJSHeapSize; };
    window.frames_.length = 0;
    const began = performance.now();
    for (let n = 1; n <= seconds * rate; n++) {
        lines.push(`\\u001b[3${n % 8}mstep ${n}\\u001b[0m of the build: ${'x'.repeat(n % 120)}`);
        lines.splice(0, lines.length - 200);
        const progress = {value: n, total: seconds * rate};
        heard['msg:custom']({kind: 'tail', text: lines.join('\\n'), lines: n, bytes: n * 80, progress});
        if (n % (rate * 6) === 0) { memory.push(used()); }
        await new Promise(resolve => setTimeout(resolve, Math.max(0, began + n * 1000 / rate - performance.now())));
    }
    return {memory, frames: window.frames_};
}"""


def run(options: Options) -> list[Row]:
    """A notebook of saved cards beside one of plain outputs; then a live card that is fed for a minute."""
    from tests.support import browser as support

    with support.serve("lab", options.folder) as server:
        for name, bundles in (("cards", _cards()), ("plain", _plain())):
            nbformat.write(_notebook(bundles), server.root / f"{name}.ipynb")
        with support.browse(server) as opened:
            times = {name: [_open(opened, name) for _ in range(ROUNDS)] for name in ("plain", "cards")}
            slowest = max(frame for _, frame in times["cards"])
            plain, cards = (min(seconds for seconds, _ in times[name]) for name in ("plain", "cards"))
            live = _live(opened)
    frames, memory = live["frames"], live["memory"]
    ratio = cards / plain
    return [
        Row(
            f"open {CARDS:,} saved cards in JupyterLab", f"{cards:.2f} s", f"plain text outputs: {plain:.2f} s", ratio,
            f"<= {LIMIT} times", ratio <= LIMIT,
        ),
        Row(
            "scroll through them: longest frame", f"{slowest:.0f} ms",
            f"plain text outputs: {max(frame for _, frame in times['plain']):.0f} ms", None, "", None,
        ),
        Row(
            f"a live card, {RATE} updates/s for {SECONDS} s: longest frame", f"{max(frames):.0f} ms", "", None,
            f"<= {FRAME_MS} ms", max(frames) <= FRAME_MS,
        ),
        Row(
            "the page's memory at its end", f"{memory[-1] / 2**20:.1f} MB", f"after 6 s: {memory[0] / 2**20:.1f} MB",
            memory[-1] / memory[0], f"<= {GROWTH} times", memory[-1] / memory[0] <= GROWTH,
        ),
    ]  # fmt: skip


def _cards() -> list[dict[str, Any]]:
    from opencode_jupyter.jupyter.cards.call_mimebundle import settled_bundle

    return [settled_bundle(_part(n))[0] for n in range(CARDS)]


def _part(n: int) -> dict[str, Any]:
    edit = n % 3 == 0
    ui = {"label": f"src/module_{n}.py", "by": "user", "waited": 0, "decisions": []}
    state = {"status": "completed", "input": {"filePath": f"src/module_{n}.py"}, "time": {"start": 1, "end": 31}}
    state |= {"output": "done" if edit else _OUTPUT}
    part = {"v": 1, "id": f"prt_{n}", "callID": f"call_{n}", "sessionID": "ses_1", "messageID": "msg_1"}
    return part | {"tool": "edit" if edit else "read", "state": state, "ui": ui | ({"diff": _DIFF} if edit else {})}


def _plain() -> list[dict[str, Any]]:
    """Text of the same size as each card's bundle."""
    size = [len(json.dumps(bundle)) for bundle in _cards()]
    line = "0123456789 plain text of an output, as a cell prints it, of the same size as a card\n"
    return [{"text/plain": (line * (count // len(line) + 1))[:count]} for count in size]


def _notebook(bundles: list[dict[str, Any]]) -> nbformat.NotebookNode:
    cells = []
    for n, data in enumerate(bundles):
        output = nbformat.v4.new_output("display_data", data=data)
        cells.append(
            nbformat.v4.new_code_cell(f"%tool read src/module_{n}.py", outputs=[output], execution_count=n + 1)
        )
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": spec})


def _open(browser: Browser, name: str) -> tuple[float, float]:
    """Seconds until the notebook is there and the page has nothing more to do; the longest frame of a scroll (ms)."""
    page = browser.context.new_page()
    page.goto(f"{browser.server.url}/lab/workspaces/bench{time.monotonic_ns()}")
    page.wait_for_function("() => window.jupyterapp?.commands?.hasCommand('docmanager:open')")
    page.evaluate("() => window.jupyterapp.restored.then(() => null)")
    start = time.monotonic()
    page.evaluate("path => { window.jupyterapp.commands.execute('docmanager:open', {path}); }", f"{name}.ipynb")
    last = ".jp-Notebook .jp-Cell .jp-OutputArea-output"
    page.wait_for_selector(last, state="attached", timeout=120_000)
    page.wait_for_function("() => window.jupyterapp.shell.currentWidget?.context?.isReady", timeout=120_000)
    page.evaluate("() => new Promise(resolve => requestIdleCallback(() => requestIdleCallback(resolve)))")
    spent = time.monotonic() - start
    page.evaluate(_FRAMES)
    page.evaluate(_SCROLL)
    longest = float(page.evaluate("() => Math.max(...window.frames_)"))
    page.evaluate("() => window.jupyterapp.shell.currentWidget?.context?.sessionContext?.shutdown().catch(() => null)")
    page.close(run_before_unload=False)
    return spent, longest


def _live(browser: Browser) -> dict[str, Any]:
    from tests.support.browser import CHECKOUT

    page = browser.context.new_page()
    page.set_default_timeout(0)
    # JupyterLab's own page: the server's API answers forbid every script
    page.goto(f"{browser.server.url}/lab/workspaces/bench{time.monotonic_ns()}")
    page.wait_for_function("() => window.jupyterapp?.restored")
    page.evaluate("() => window.jupyterapp.restored.then(() => null)")
    page.evaluate("() => new Promise(resolve => requestIdleCallback(() => requestIdleCallback(resolve)))")
    page.evaluate(_FRAMES)
    source = (CHECKOUT / "opencode_jupyter" / "static" / "card.js").read_text(encoding="utf-8")
    measured: dict[str, Any] = page.evaluate(_LIVE, [source, SECONDS, RATE])
    page.close()
    return measured
