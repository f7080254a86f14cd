"""``%tools history`` over several kernels of one notebook."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.kernels import NEWEST, start

SHOW = "print([row['title'] for row in get_ipython().run_line_magic('tools', 'history')])"


@pytest.mark.parametrize("named", [True, False], ids=["notebook", "no name"])
def test_a_restarted_kernel_shows_the_calls_before(tmp_path: Path, named: bool) -> None:
    seen = []
    for number, name in enumerate(["a.ipynb", "b.ipynb", "a.ipynb"]):
        env = {"XDG_DATA_HOME": str(tmp_path / "data"), "IPYTHONDIR": str(tmp_path / "ipython")}
        if named:
            env["JPY_SESSION_NAME"] = str(tmp_path / name)
        with start(NEWEST, cwd=tmp_path, env=env) as kernel:
            kernel.run("%load_ext opencode_jupyter")
            kernel.run(f"%tool bash true {number}")
            seen.append(kernel.run(SHOW).stdout.strip())
    before = "'true 0', " if named else ""
    assert seen == ["['true 0']", "['true 1']", f"[{before}'true 2']"]
