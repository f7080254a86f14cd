"""The language servers that are known by name: what they serve, how they start, how they are installed.

Names, extensions and root markers are OpenCode's where it has the server. None is ever downloaded: a server is used
when its program is installed beside the kernel's Python or on the PATH.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

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
        group: servers of one group are alternatives: the first that is installed serves, the next ones are asked what
            it can't do.
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
