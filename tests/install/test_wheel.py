"""The wheel, built from a clean copy on a machine without Node.js, in an empty environment, outside the checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import expect
from uv import find_uv_bin

import opencode_jupyter
from opencode_jupyter.jupyter.cards.widget import pack_script
from tests.browser.acts import ALLOW_ONCE, asking, button, project
from tests.support.browser import Application, browse, chromium, serve

pytestmark = pytest.mark.slow

CHECKOUT = Path(__file__).resolve().parents[2]
LABEXTENSION = "share/jupyter/labextensions/opencode-jupyter"
TIMEOUT = 900
OLDEST = ("jupyterlab==4.4.0", "notebook==7.4.0")
BLOCKED = """
def blocked():
    return get_ipython().run_line_magic("tool", "bash echo from-a-def")
print(blocked().output)
"""


def run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    """What `command` printed on standard output; its words in the failure, if it fails."""
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=env, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-8000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the checkout that git would commit, and nothing that was built there."""
    folder = tmp_path_factory.mktemp("clean copy")  # with a space, as people have them
    names = run("git", "ls-files", "-co", "--exclude-standard", "-z", cwd=CHECKOUT).split("\0")
    for name in filter(None, names):
        if (CHECKOUT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(CHECKOUT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def without_node(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment whose PATH has a shell and git, and no Node.js."""
    folder = tmp_path_factory.mktemp("path")
    for tool in ("sh", "bash", "env", "git", "uname"):
        found = shutil.which(tool)
        if found:
            (folder / tool).symlink_to(found)
    environment = {**os.environ, "PATH": str(folder)}
    assert shutil.which("node", path=environment["PATH"]) is None
    for name in ("VIRTUAL_ENV", "PYTHONPATH"):
        environment.pop(name, None)
    return environment


@pytest.fixture(scope="module")
def built(copy: Path, without_node: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution, its files (``sources``) and the wheel made from those."""
    out = tmp_path_factory.mktemp("dist made")
    build = (find_uv_bin(), "build", "--python", sys.executable, "--out-dir", out)
    run(*build, "--sdist", copy, cwd=out, env=without_node)
    (packed_sources,) = out.glob("*.tar.gz")
    with tarfile.open(packed_sources) as archive:
        archive.extractall(out / "unpacked", filter="data")
    (folder,) = (out / "unpacked").iterdir()
    folder.rename(out / "sources")
    run(*build, "--wheel", out / "sources", cwd=out, env=without_node)
    return out


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def venv(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, and JupyterLab and Notebook as old as we promise."""
    folder = tmp_path_factory.mktemp("outside")
    run(find_uv_bin(), "venv", "--python", sys.executable, folder / "venv", cwd=folder)
    python = folder / "venv" / "bin" / "python"
    run(find_uv_bin(), "pip", "install", "--python", python, wheel, *OLDEST, cwd=folder)
    return folder / "venv"


def ask(venv: Path, code: str) -> str:
    """What `code` prints in `venv`, run from outside the checkout."""
    return run(venv / "bin" / "python", "-I", "-c", code, cwd=venv.parent).strip()


def test_the_wheel_carries_the_front_end_and_no_sources_of_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        card = archive.read("opencode_jupyter/static/card.js").decode()
    inside = [name.split(".data/data/")[-1] for name in names]
    for wanted in ("package.json", "install.json", "static/style.js"):
        assert f"{LABEXTENSION}/{wanted}" in inside
    assert any(name.startswith(f"{LABEXTENSION}/static/remoteEntry.") for name in inside)
    assert not [name for name in names if "node_modules" in name or name.endswith((".ts", ".map"))]
    assert not [
        name for name in names if name.startswith(("tests/", "labextension/", "opencode_jupyter/labextension/"))
    ]
    assert "opencode_jupyter/static/run.js" in inside
    for wanted in ("host/main.mjs", "vendor/zod.mjs", "vendor/typescript.mjs", "vendor/LICENSES.txt"):
        assert f"opencode_jupyter/javascript/{wanted}" in inside
    assert "Allow for this session" in card
    assert wheel.stat().st_size < 2_500_000
    assert len(pack_script(card)) < 32_000, "every live card carries this text to the page"


def test_the_source_distribution_carries_sources_only(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = [name.split("/", 1)[1] for name in archive.getnames() if "/" in name]
    for wanted in ("pyproject.toml", "README.md", "labextension/src/widget.ts", "labextension/package-lock.json"):
        assert wanted in names
    built_files = (
        "opencode_jupyter/static/",
        "opencode_jupyter/labextension/",
        "opencode_jupyter/javascript/vendor/",
        "labextension/node_modules/",
    )
    assert not [name for name in names if name.startswith(built_files)]


def test_it_imports_from_outside_the_checkout(venv: Path) -> None:
    found = ask(venv, "import opencode_jupyter as o; print(o.__file__); print(o.__version__)").split("\n")
    assert Path(found[0]).is_relative_to(venv)
    package = json.loads((venv / LABEXTENSION / "package.json").read_text())
    assert found[1] == opencode_jupyter.__version__ == package["version"]


def test_its_tools_descriptions_are_there(venv: Path) -> None:
    folder = Path(ask(venv, "import opencode_jupyter.tools as t; print(t.__path__[0])"))
    wanted = {path.name for path in (CHECKOUT / "opencode_jupyter" / "tools").rglob("*.md")}
    assert wanted
    assert {path.name for path in folder.rglob("*.md")} == wanted


def test_the_extension_loads_in_a_bare_shell(venv: Path) -> None:
    code = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "opencode_jupyter")
print(sorted(name for name in shell.magics_manager.magics["line"] if name.startswith(("tool", "permissions"))))
shell.run_line_magic("unload_ext", "opencode_jupyter")
print("tool" in shell.magics_manager.magics["line"])
"""
    listed, left = ask(venv, code).split("\n")[-2:]
    assert {"tool", "tools", "permissions"} <= set(json.loads(listed.replace("'", '"')))
    assert left == "False"


def test_a_tool_runs(venv: Path) -> None:
    code = """
import asyncio, pathlib, tempfile
from opencode_jupyter import Workspace
async def main():
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "a.txt").write_text("hello")
        async with Workspace(folder, data_dir=pathlib.Path(folder, "data")) as workspace:
            print("hello" in (await workspace.call("read", {"filePath": "a.txt"})).output)
asyncio.run(main())
"""
    assert ask(venv, code).endswith("True")


def test_jupyterlab_takes_the_extension(venv: Path) -> None:
    root = venv / LABEXTENSION
    package = json.loads((root / "package.json").read_text())
    assert (root / package["jupyterlab"]["_build"]["load"]).is_file()
    environment = {
        **os.environ,
        "JUPYTER_PREFER_ENV_PATH": "1",
        "PATH": f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        [venv / "bin" / "jupyter", "labextension", "list"],
        cwd=venv.parent, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=True,
    )  # fmt: skip
    (line,) = [line for line in (done.stdout + done.stderr).split("\n") if "opencode-jupyter v" in line]
    assert "enabled" in line
    assert "OK" in line


@pytest.mark.parametrize("application", ["lab", "notebook"])
def test_the_oldest_jupyter_shows_it(venv: Path, tmp_path: Path, application: Application) -> None:
    chromium()
    with (
        serve(application, tmp_path / "server", python=venv / "bin" / "python", installed=True) as server,
        browse(server) as browser,
    ):
        notebook = project(browser, "oldest", "%tool bash echo awaited", BLOCKED, "")
        assert notebook.errors == []
        notebook.run(1, wait=False)
        button(asking(notebook, 1), ALLOW_ONCE).click()
        notebook.wait_idle(1)
        notebook.wait_text(1, "awaited")
        notebook.run(2, wait=False)
        asking(notebook, 2)
        page = notebook.page
        show = "s => { window.jupyterapp.commands.execute('opencode-jupyter:show-panel', {section: s}); }"
        panel = page.locator("#opencode-jupyter-panel")
        page.evaluate(show, "asks")
        button(panel.locator(".oc-asks-item"), ALLOW_ONCE).click()
        notebook.wait_idle(2)
        notebook.wait_text(2, "from-a-def")
        for section, words in (
            ("calls", "2 calls"),
            ("tools", "built in"),
            ("rules", "bash"),
            ("servers", "No MCP server"),
        ):
            page.evaluate(show, section)
            expect(panel.locator(f"#opencode-jupyter-panel-{section}")).to_be_visible()
            expect(panel.locator(f"#opencode-jupyter-panel-{section}")).to_contain_text(words)
        notebook.set_cell(3, "%%tool bash\nif true; then echo x; fi # note")
        expect(notebook.cell(3).locator(".oc-tok-magic")).to_have_text("%%tool")
        expect(notebook.cell(3).locator(".cm-line").nth(1).locator("span").last).to_have_text("# note")
        assert notebook.errors == []


def test_uninstalling_leaves_nothing(venv: Path, wheel: Path) -> None:
    assert (venv / LABEXTENSION).is_dir()
    options = ("--python", venv / "bin" / "python")
    run(find_uv_bin(), "pip", "uninstall", *options, "opencode-jupyter", cwd=venv.parent)
    # uv, unlike pip, leaves two empty folders
    left = [path for path in venv.rglob("*") if path.is_file() and "opencode" in str(path.relative_to(venv))]
    run(find_uv_bin(), "pip", "install", *options, "--no-deps", wheel, cwd=venv.parent)  # for the other tests
    assert left == []


def test_an_editable_install_builds_what_is_older_than_its_sources_once(
    built: Path, wheel: Path, without_node: dict[str, str], tmp_path: Path
) -> None:
    """Where the wheel was built; that one builds in a checkout with nothing built is what `make` itself begins with."""
    sources = built / "sources"
    run(find_uv_bin(), "venv", "--python", sys.executable, tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    install = (find_uv_bin(), "pip", "install", "--python", python, "--no-deps", "--reinstall", "-e", sources)
    card = sources / "opencode_jupyter" / "static" / "card.js"
    before = card.stat().st_mtime_ns
    os.utime(sources / "labextension" / "src" / "widget.ts")
    run(*install, cwd=tmp_path, env=without_node)
    assert (tmp_path / "venv" / LABEXTENSION / "package.json").is_file()
    made = card.stat().st_mtime_ns
    assert made > before
    run(*install, cwd=tmp_path, env=without_node)
    assert card.stat().st_mtime_ns == made
