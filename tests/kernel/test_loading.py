"""Loading, reloading and unloading leave a shell as they should; magics in odd places."""

from __future__ import annotations

import ast

import pytest

from tests.kernel import acts
from tests.support.kernels import Kernel

LOOK = """
def look():
    import signal, threading
    ip = get_ipython(); k = ip.kernel; m = ip.magics_manager
    return {
        "line": sorted(m.magics["line"]), "cell": sorted(m.magics["cell"]), "registry": sorted(m.registry),
        "matchers": sorted(str(x) for x in ip.Completer.custom_matchers),
        "all matchers": len(ip.Completer.matchers),
        "post": [str(x) for x in ip.input_transformers_post],
        "cleanup": [str(x) for x in ip.input_transformers_cleanup],
        "token": [str(x) for x in ip.input_transformer_manager.token_transformers],
        "control": sorted(k.control_handlers), "shell": sorted(k.shell_handlers),
        "comm on control": str(k.control_handlers.get("comm_msg")),
        "stream": str(getattr(k.shell_stream._recv_callback, "__qualname__", k.shell_stream._recv_callback)
                      ).split(" at 0x")[0],
        "events": {n: [str(c) for c in cs] for n, cs in ip.events.callbacks.items()},
        "configurables": [type(c).__name__ for c in ip.configurables],
        "comm targets": sorted(__import__("comm").get_comm_manager().targets),
        "namespace": sorted(n for n in ip.user_ns if "opencode" in n.lower()),
        "sigint": str(signal.getsignal(signal.SIGINT)).split(" at 0x")[0],
        "threads": sorted(t.name for t in threading.enumerate() if "opencode" in t.name),
    }
"""


def look(kernel: Kernel) -> dict[str, object]:
    """What the extension may have changed."""
    return dict(ast.literal_eval(kernel.run("print(look())").stdout))


SOON = "import opencode_jupyter.jupyter.extension as extension\nextension.KEEP_SECONDS = 1.0\n"
"""An unloaded notebook ends sooner than it does for people."""


@acts.OLDEST_AND_NEWEST
def test_unload_takes_everything_back(kernel: Kernel) -> None:
    # Magics and handlers of others by our names come back too.
    kernel.run(
        LOOK
        + SOON
        + "%unload_ext nothing\nimport anywidget, asyncio\nfrom IPython.core.magic import register_line_magic\n"
        "@register_line_magic\ndef permissions(line): return 'theirs'\n"
    )
    bare = look(kernel)
    for _ in range(2):
        acts.prepare(kernel)
        kernel.run("%tool bash echo hi")
        cell = kernel.submit(acts.SECRET)
        (part,) = acts.asking(kernel, cell=cell)
        acts.see(kernel, part)
        acts.click(kernel, part, "once")
        kernel.finish(cell).check()
        loaded = look(kernel)
        changed = {key for key in bare if bare[key] != loaded[key]}
        assert changed >= {"line", "cell", "registry", "post", "control", "stream", "events", "threads"}
        kernel.run("%unload_ext opencode_jupyter")
        assert kernel.run("%permissions").result == "'theirs'"
        assert "not found" in kernel.execute("%tool read .env").stderr
        kernel.idle_for(2.5)
        after = look(kernel)
        assert {key: (bare[key], after[key]) for key in bare if bare[key] != after[key]} == {}
    assert kernel.request("control", "kernel_info_request", {})["status"] == "ok"


def test_reload_keeps_state(kernel: Kernel) -> None:
    acts.prepare(kernel)
    kernel.run(SOON)
    kernel.run(acts.LOAD)
    kernel.run("%permissions deny bash 'rm *'")
    cell = kernel.submit(acts.SECRET)
    (part,) = acts.asking(kernel, cell=cell)
    acts.see(kernel, part)
    acts.click(kernel, part, "always")
    kernel.finish(cell).check()
    kernel.run(
        "from opencode_jupyter import tool\n@tool\ndef mine():\n    return 'mine'"
        "\nh = %tool --bg bash sleep 0.6; echo bg"
    )
    for reload in ("%reload_ext opencode_jupyter", "%unload_ext opencode_jupyter\n" + acts.LOAD, acts.LOAD):
        kernel.run(reload)
        again = kernel.execute("r = %tool read .env\nprint(r.output.count('A=1'))", allow_stdin=False)
        assert again.check().stdout == "1\n"
        denied = kernel.execute("%tool bash rm x")
        assert denied.error is not None
        assert denied.error.startswith("PermissionDeniedError")
        assert kernel.run("r = %tool mine\nprint(r.output)").stdout == "mine\n"
    assert "bg" in kernel.run("print(h.result().output)").stdout
    count = "print([str(t) for t in get_ipython().input_transformers_post].__repr__().count('await_magics'))"
    assert kernel.run(count).stdout == "1\n"
    kernel.idle_for(1.5)  # the end that the unload had set does not come
    assert kernel.run("r = %tool mine\nprint(r.output)").stdout == "mine\n"


NESTED = {
    "time": ("%%time\nr = %tool {call}\nprint('done', r.output.count('A=1'))", 1),
    "time line": ("%time r = get_ipython().run_line_magic('tool', '{call}')\nprint('done', r.output.count('A=1'))", 1),
    "timeit": ("%timeit -n1 -r2 get_ipython().run_line_magic('tool', '{call}')\nprint('done 1')", 2),
    "run_cell": ("get_ipython().run_cell('r = %tool {call}')\nprint('done', r.output.count('A=1'))", 1),
    "run_cell in an awaiting cell": (
        "await asyncio.sleep(0)\nget_ipython().run_cell('r = %tool {call}')\nprint('done', r.output.count('A=1'))",
        1,
    ),
    "run": (
        "_ = open('s.ipy', 'w').write('r = %tool {call}\\n')\n%run s.ipy\nprint('done', r.output.count('A=1'))",
        1,
    ),
    "exec": ("exec(get_ipython().transform_cell('r = %tool {call}'))\nprint('done', r.output.count('A=1'))", 1),
    "prun": ("%prun -q r = get_ipython().run_line_magic('tool', '{call}')\nprint('done 1')", 1),
    "o": ("%tool -o r {call}\nprint('done', r.output.count('A=1'))", 1),
    "class": ("class C:\n    r = %tool {call}\nprint('done', C.r.output.count('A=1'))", 1),
    "generator": (
        "def g():\n    r = %tool {call}\n    yield r\nprint('done', next(g()).output.count('A=1'))",
        1,
    ),
    "silent": ("r = %tool -q {call}\nprint('done', r.output.count('A=1'))", 1),
    "alias": ("t = get_ipython().run_line_magic\nprint('done', t('tool', '{call}').output.count('A=1'))", 1),
}


@acts.OLDEST_AND_NEWEST
@pytest.mark.parametrize("form", NESTED)
def test_magics_in_odd_places(shared_kernel: Kernel, form: str) -> None:
    acts.prepare_once(shared_kernel)
    code, asks = NESTED[form]
    cell = shared_kernel.submit(code.format(call="read .env"))
    seen: set[str] = set()
    for _ in range(asks):
        fresh: list[dict] = []

        def another() -> bool:
            parts = acts.displayed(shared_kernel)
            fresh[:] = [p for p in parts if p["ui"].get("ask") and p["callID"] not in seen]  # noqa: B023
            return bool(fresh) or cell.done  # noqa: B023

        shared_kernel.pump(another, 8, "an ask")
        assert fresh, cell.error
        seen.add(fresh[0]["callID"])
        acts.see(shared_kernel, fresh[0])
        acts.click(shared_kernel, fresh[0], "once")
    shared_kernel.finish(cell, 8).check()
    assert "done 1" in cell.stdout
    acts.settled(shared_kernel)


@acts.OLDEST_AND_NEWEST
def test_a_captured_card_is_not_seen_so_the_box_comes(shared_kernel: Kernel) -> None:
    cell = shared_kernel.submit("%%capture caught\nr = %tool read .env")
    shared_kernel.answer("1")
    shared_kernel.finish(cell, 8).check()
    assert shared_kernel.run("print(r.output.count('A=1'), len(caught.outputs))").stdout.startswith("1 ")
    acts.settled(shared_kernel)
