"""Where the server has a file: its address, and its place for a page that opens it."""

from __future__ import annotations

from pathlib import Path

import pytest

from opencode_jupyter.jupyter.server_files import files_url, served_path


def served(monkeypatch: pytest.MonkeyPatch, runtime: Path, root: Path, base: str = "/") -> None:
    runtime.mkdir(exist_ok=True)
    (runtime / "jpserver-4242.json").write_text(f'{{"root_dir": "{root}", "base_url": "{base}"}}')
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(runtime))
    monkeypatch.setenv("JPY_PARENT_PID", "4242")


def test_the_server_hands_out_what_is_in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    (root / "data x").mkdir(parents=True)
    served(monkeypatch, tmp_path / "runtime", root, "/user/ada/")
    assert files_url(str(root / "data x" / "tool_ü#1")) == "/user/ada/files/data%20x/tool_%C3%BC%231"
    assert files_url(str(tmp_path / "tool_1")) is None
    assert files_url(str(root / ".local" / "tool_1")) is None, "servers refuse hidden files"
    for value in ("", "1", "x"):
        monkeypatch.setenv("JPY_PARENT_PID", value)
        assert files_url(str(root / "a")) is None
    monkeypatch.setenv("JPY_PARENT_PID", "4242")
    (tmp_path / "runtime" / "jpserver-4242.json").write_text("[]")
    assert files_url(str(root / "a")) is None


def test_a_page_learns_where_a_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    (root / "src").mkdir(parents=True)
    served(monkeypatch, tmp_path / "runtime", root)
    assert served_path({"path": str(root / "src" / "a b.py")}) == {"path": "src/a b.py"}
    assert served_path({"path": str(tmp_path / "b.py")}) == {"path": None}
    assert served_path({"path": "src/a.py"}) == {}, "only the page knows the notebook's folder"
    assert served_path({"path": 7}) == {}
    assert served_path({"path": "/a\0b"}) == {}
