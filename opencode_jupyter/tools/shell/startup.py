"""Files that decide what programs run: who writes one sets what a later, harmless-looking command does."""

from __future__ import annotations

import re

ALWAYS = re.compile(
    r"(?:^|/)(?:\.git/(?:hooks/.*|config|info/attributes)|\.gitconfig|\.opencode/.*|opencode\.jsonc?|\.envrc"
    r"|\.(?:bash|zsh|k?sh|mksh|csh|tcsh)(?:rc|env|_?profile|_?login|_?logout|_aliases)|\.profile|\.inputrc"
    r"|\.ipython/.*|\.jupyter/.*|\.ssh/(?:config|authorized_keys|rc)|\.config/(?:git/.*|fish/.*|systemd/.*|autostart/.*)"
    r"|\.(?:vimrc|exrc|gdbinit|lldbinit|pdbrc|Rprofile|pythonrc|netrc|wgetrc|curlrc|npmrc|pypirc)"
    r"|(?:site|user)customize\.py|[^/]*\.pth|crontab|cron\.[a-z]+/.*)$"
)
"""Written by a command, these are asked for whatever comes after."""

_FILES = {
    "make": r"(?:GNU)?[Mm]akefile|.*\.(?:mk|mak)",
    "python": r".*\.py|pyproject\.toml|setup\.cfg|.*\.ini|.*\.cfg|requirements.*\.txt",
    "node": r"package\.json|.*\.[cm]?[jt]s|\.npmrc|\.babelrc.*",
    "cargo": r"build\.rs|Cargo\.toml|config(?:\.toml)?|.*\.rs",
    "go": r".*\.go|go\.mod",
    "java": r"pom\.xml|build\.gradle.*|settings\.gradle.*|.*\.(?:java|jar|groovy)",
    "git": r"\.gitattributes|\.gitmodules",
    "docker": r"[Dd]ockerfile.*|.*compose.*\.ya?ml",
    "just": r"\.?[Jj]ustfile|[Tt]askfile\.ya?ml|Rakefile|Vagrantfile|Snakefile|dvc\.yaml",
    "cmake": r".*\.ninja|CMakeLists\.txt|.*\.cmake",
}
_RUNNERS = {
    "make": "make gmake bmake",
    "python": "python pypy pytest py.test pip uv tox nox poetry pdm hatch pre-commit jupyter ipython mypy coverage",
    "node": "node nodejs npm npx yarn pnpm bun deno tsx jest vitest eslint",
    "cargo": "cargo rustc",
    "go": "go",
    "java": "mvn gradle ant java javac sbt",
    "git": "git",
    "docker": "docker docker-compose podman buildah",
    "just": "just task rake vagrant snakemake dvc",
    "cmake": "cmake ninja ctest",
}
_READS = {runner: re.compile(_FILES[kind]) for kind, names in _RUNNERS.items() for runner in names.split()}

OUTPUTS = {
    "curl": ("o", "output"),
    "wget": ("O", "output-document"),
    "sort": ("o", "output"),
    "openssl": ("out", ""),
    "patch": ("o", "output"),
    "jq": ("", "output"),
    "shuf": ("o", "output"),
    "aria2c": ("o", "out"),
}
"""Programs that write where an option says: its letter, and its long name."""
FETCHERS = frozenset({"curl", "wget", "aria2c"})
"""Programs that may name a file after an address."""


def reads(runner: str, written: set[str]) -> str | None:
    """The file among those written that a program takes its work from; None if there is none.

    Args:
        runner: the program's name; a version behind it is passed over.
        written: names of files, without their folders.
    """
    known = _READS.get(runner) or _READS.get(runner.rstrip("0123456789."))
    return next((name for name in sorted(written) if known.fullmatch(name)), None) if known else None
