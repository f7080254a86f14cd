"""Which servers serve a file: the table under the config's ``lsp``, what is installed, where the root is."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .._path_checks import find_program

PYTHON = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile", "pyrightconfig.json", "ty.toml")
NODE = ("package-lock.json", "bun.lockb", "bun.lock", "pnpm-lock.yaml", "yarn.lock", "package.json", "tsconfig.json")


@dataclass(frozen=True, slots=True)
class Server:
    """A language server, built in or configured.

    Attributes:
        name: its key in the config's ``lsp``.
        extensions: file name endings it serves, with the dot, or whole names (``Dockerfile``); none: every file.
        command: program and arguments.
        markers: files that mark the root of a project; the nearest folder upward with one is the server's root.
        group: servers of one group are alternatives: the first that is installed serves.
        install: what to do to have it, for people.
        env: set in its environment.
        initialization: its ``initializationOptions``, and the settings it may ask for.
        configured: the user's config names it.
    """

    name: str
    extensions: tuple[str, ...]
    command: tuple[str, ...]
    markers: tuple[str, ...] = ()
    group: str = ""
    install: str = ""
    env: dict[str, str] = field(default_factory=dict)
    initialization: dict[str, Any] = field(default_factory=dict)
    configured: bool = False


def _server(name: str, group: str, extensions: str, command: str, markers: tuple[str, ...], install: str) -> Server:
    return Server(name, tuple(extensions.split()), tuple(command.split()), markers, group, install)


_JS = ".ts .tsx .js .jsx .mjs .cjs .mts .cts"
_C = ".c .cpp .cc .cxx .c++ .h .hpp .hh .hxx .h++"

# fmt: off
BUILTIN: tuple[Server, ...] = (
    _server("ty", "python", ".py .pyi", "ty server", PYTHON,
            'pip install "opencode-jupyter[lsp]"'),
    _server("basedpyright", "python", ".py .pyi", "basedpyright-langserver --stdio", PYTHON,
            "pip install basedpyright"),
    _server("pyright", "python", ".py .pyi", "pyright-langserver --stdio", PYTHON, "pip install pyright"),
    _server("pylsp", "python", ".py .pyi", "pylsp", PYTHON, "pip install python-lsp-server"),
    _server("jedi", "python", ".py .pyi", "jedi-language-server", PYTHON, "pip install jedi-language-server"),
    _server("typescript", "typescript", _JS, "typescript-language-server --stdio", NODE,
            "npm install -g typescript-language-server typescript"),
    _server("vue", "vue", ".vue", "vue-language-server --stdio", NODE, "npm install -g @vue/language-server"),
    _server("svelte", "svelte", ".svelte", "svelteserver --stdio", NODE, "npm install -g svelte-language-server"),
    _server("astro", "astro", ".astro", "astro-ls --stdio", NODE, "npm install -g @astrojs/language-server"),
    _server("gopls", "go", ".go", "gopls", ("go.work", "go.mod", "go.sum"),
            "go install golang.org/x/tools/gopls@latest"),
    _server("rust", "rust", ".rs", "rust-analyzer", ("Cargo.toml", "Cargo.lock"),
            "rustup component add rust-analyzer"),
    _server("clangd", "c", _C, "clangd --background-index", ("compile_commands.json", "compile_flags.txt", ".clangd",
            "CMakeLists.txt", "Makefile"), "apt install clangd, or your system's LLVM package"),
    _server("jdtls", "java", ".java", "jdtls", ("pom.xml", "build.gradle", "build.gradle.kts", ".project"),
            "install Eclipse JDT LS so that jdtls is on the PATH"),
    _server("kotlin-ls", "kotlin", ".kt .kts", "kotlin-lsp --stdio", ("settings.gradle.kts", "settings.gradle",
            "build.gradle.kts", "build.gradle", "pom.xml"), "install kotlin-lsp so that it is on the PATH"),
    _server("julials", "julia", ".jl", "jetls", ("Project.toml", "Manifest.toml"),
            "install JETLS so that jetls is on the PATH"),
    _server("r", "r", ".r .R", "R --no-echo -e languageserver::run()", ("DESCRIPTION", ".Rproj"),
            'install.packages("languageserver") in R'),
    _server("ruby-lsp", "ruby", ".rb .rake .gemspec .ru", "ruby-lsp", ("Gemfile",), "gem install ruby-lsp"),
    _server("php intelephense", "php", ".php", "intelephense --stdio", ("composer.json", "composer.lock"),
            "npm install -g intelephense"),
    _server("csharp", "csharp", ".cs", "csharp-ls", (".slnx", ".sln", ".csproj", "global.json"),
            "dotnet tool install -g csharp-ls"),
    _server("elixir-ls", "elixir", ".ex .exs", "elixir-ls", ("mix.exs", "mix.lock"),
            "install elixir-ls so that it is on the PATH"),
    _server("zls", "zig", ".zig .zon", "zls", ("build.zig",), "install zls so that it is on the PATH"),
    _server("lua-ls", "lua", ".lua", "lua-language-server", (".luarc.json", ".luarc.jsonc", ".luacheckrc",
            ".stylua.toml"), "install lua-language-server so that it is on the PATH"),
    _server("bash", "bash", ".sh .bash .zsh .ksh", "bash-language-server start", (),
            "npm install -g bash-language-server"),
    _server("yaml-ls", "yaml", ".yaml .yml", "yaml-language-server --stdio", NODE,
            "npm install -g yaml-language-server"),
    _server("terraform", "terraform", ".tf .tfvars", "terraform-ls serve", (".terraform.lock.hcl",
            "terraform.tfstate"), "install terraform-ls so that it is on the PATH"),
    _server("texlab", "latex", ".tex .bib", "texlab", (".latexmkrc", "latexmkrc", ".texlabroot", "texlabroot"),
            "install texlab so that it is on the PATH"),
    _server("dockerfile", "dockerfile", ".dockerfile Dockerfile", "docker-langserver --stdio", (),
            "npm install -g dockerfile-language-server-nodejs"),
    _server("dart", "dart", ".dart", "dart language-server --lsp", ("pubspec.yaml", "analysis_options.yaml"),
            "install the Dart SDK"),
    _server("ocaml-lsp", "ocaml", ".ml .mli", "ocamllsp", ("dune-project", "dune-workspace", ".merlin", "opam"),
            "opam install ocaml-lsp-server"),
    _server("gleam", "gleam", ".gleam", "gleam lsp", ("gleam.toml",), "install gleam"),
    _server("clojure-lsp", "clojure", ".clj .cljs .cljc .edn", "clojure-lsp listen", ("deps.edn", "project.clj",
            "shadow-cljs.edn", "bb.edn", "build.boot"), "install clojure-lsp so that it is on the PATH"),
    _server("haskell-language-server", "haskell", ".hs .lhs", "haskell-language-server-wrapper --lsp",
            ("stack.yaml", "cabal.project", "hie.yaml"), "ghcup install hls"),
    _server("sourcekit-lsp", "swift", ".swift", "sourcekit-lsp", ("Package.swift",), "install the Swift toolchain"),
    _server("nixd", "nix", ".nix", "nixd", ("flake.nix",), "install nixd so that it is on the PATH"),
    _server("tinymist", "typst", ".typ .typc", "tinymist", ("typst.toml",),
            "install tinymist so that it is on the PATH"),
)
# fmt: on
"""In order of preference inside a group."""


@dataclass(frozen=True, slots=True)
class ServerTable:
    """The servers of one workspace.

    Attributes:
        servers: built-in ones in the table's order, then the config's own.
        enabled: False: the config says ``lsp: false``.
        requested: the config says ``lsp: true`` or names servers, so edits may start them.
        problems: what is wrong in the config, in words that say what to write instead.
    """

    servers: tuple[Server, ...]
    enabled: bool = True
    requested: bool = False
    problems: tuple[str, ...] = field(default=())

    def serving(self, path: Path) -> list[Server]:
        """Every server for a file of this name, installed or not."""
        return [server for server in self.servers if serves(server, path)]


def table(config: Any) -> ServerTable:
    """The servers that a config's ``lsp`` leaves: ``false``, ``true``, or an object of entries by name.

    An entry has ``command`` (a list), ``extensions``, ``env``, ``initialization``, ``disabled``; what it leaves out
    stays as it is in the built-in table.
    """
    if config is False:
        return ServerTable((), enabled=False)
    if config is None or config is True:
        return ServerTable(BUILTIN, requested=bool(config))
    if not isinstance(config, Mapping):
        wrong = f"lsp is {config!r}; it should be true, false, or an object of servers by name"
        return ServerTable(BUILTIN, problems=(wrong,))
    servers = {server.name: server for server in BUILTIN}
    problems: list[str] = []
    for name, entry in config.items():
        server = _entry(str(name), entry, servers.get(name), problems)
        servers.pop(name, None) if server is None else servers.__setitem__(name, server)
    return ServerTable(tuple(servers.values()), requested=True, problems=tuple(problems))


def _entry(name: str, entry: Any, builtin: Server | None, problems: list[str]) -> Server | None:
    """One entry of the config; None if it takes the server away or is wrong."""
    where = f"lsp.{name}"
    if entry is False or (isinstance(entry, Mapping) and entry.get("disabled") is True):
        return None
    if entry is True and builtin is not None:
        return replace(builtin, configured=True)
    if not isinstance(entry, Mapping):
        problems.append(f"{where} is {entry!r}; it should be an object with command and extensions")
        return builtin
    command = _texts(entry, "command", where, problems)
    extensions = _texts(entry, "extensions", where, problems)
    if builtin is None and not command:
        problems.append(f'{where} needs a command, a list such as ["{name}", "--stdio"]')
        return None
    if builtin is None and extensions is None:
        problems.append(f'{where} needs extensions, a list such as [".py"]')
        return None
    base = builtin or Server(name, (), ())
    env = entry.get("env")
    initialization = entry.get("initialization")
    return replace(
        base,
        command=command or base.command,
        extensions=base.extensions if extensions is None else extensions,
        env={str(k): str(v) for k, v in env.items()} if isinstance(env, Mapping) else base.env,
        initialization=dict(initialization) if isinstance(initialization, Mapping) else base.initialization,
        configured=True,
    )


def _texts(entry: Mapping[str, Any], key: str, where: str, problems: list[str]) -> tuple[str, ...] | None:
    value = entry.get(key)
    if value is None:
        return None
    if isinstance(value, list) and all(isinstance(item, str) and "\0" not in item for item in value):
        return tuple(value)
    problems.append(f"{where}.{key} is {value!r}; it should be a list of texts")
    return None


def serves(server: Server, path: Path) -> bool:
    """Return whether a file's ending, or its whole name, is one of the server's."""
    extensions = server.extensions
    return not extensions or path.suffix in extensions or path.suffix.lower() in extensions or path.name in extensions


def program(server: Server) -> str | None:
    """The absolute path of a server's program: beside this Python, else on the PATH; None if it is not installed."""
    name = os.path.expanduser(server.command[0])
    if os.path.isabs(name):
        return name if os.access(name, os.X_OK) and os.path.isfile(name) else None
    if os.sep in name:
        return None  # a path that depends on the folder one happens to be in
    return find_program(name)


def root(server: Server, path: Path, top: Path) -> Path:
    """The folder a server works in: the nearest one upward from the file with a marker, up to `top`; else `top`."""
    return marked_folder(server, path, top) or top


def marked_folder(server: Server, path: Path, top: Path) -> Path | None:
    """The nearest folder, upward from a file up to `top`, that holds one of the server's markers.

    A file outside `top` belongs to a project of its own; the home folder and what is above it are none.
    """
    inside = path.is_relative_to(top)
    home = Path.home()
    for folder in path.parents:
        if not inside and home.is_relative_to(folder):
            return None
        if any(_has_marker(folder, marker) for marker in server.markers):
            return folder
        if folder == top:
            return None
    return None


def _has_marker(folder: Path, marker: str) -> bool:
    if marker in (".sln", ".slnx", ".csproj", ".Rproj"):  # endings of a file's name
        try:
            return any(entry.name.endswith(marker) for entry in os.scandir(folder))
        except OSError:
            return False
    return (folder / marker).exists()


def interpreter(root: Path) -> tuple[Path, Path]:
    """The Python whose packages a project's code sees: its program, and the environment's folder.

    The project's own ``.venv`` or ``venv`` if it has one, else the Python that runs here.
    """
    for name in (".venv", "venv"):
        python = root / name / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        if (root / name / "pyvenv.cfg").is_file() and python.exists():
            return python, root / name
    return Path(sys.executable), Path(sys.prefix)


def environment(server: Server, root: Path) -> dict[str, str]:
    """A server's own environment variables: for Python the interpreter's; then the configured ones."""
    out: dict[str, str] = {}
    if server.group == "python":
        python, folder = interpreter(root)
        out["PATH"] = os.pathsep.join(filter(None, (str(python.parent), os.environ.get("PATH", ""))))
        if (folder / "pyvenv.cfg").is_file():
            out["VIRTUAL_ENV"] = str(folder)
        elif (folder / "conda-meta").is_dir():
            out["CONDA_PREFIX"] = str(folder)
    return {**out, **server.env}


def settings(server: Server, root: Path) -> dict[str, Any]:
    """The settings that ``workspace/configuration`` returns, by section: the interpreter, then the configured ones."""
    out: dict[str, Any] = {}
    if server.group == "python":
        python = str(interpreter(root)[0])
        out = {"python": {"pythonPath": python}, "pylsp": {"plugins": {"jedi": {"environment": python}}}}
    for key, value in server.initialization.items():
        out[key] = {**out[key], **value} if isinstance(out.get(key), dict) and isinstance(value, Mapping) else value
    return out
