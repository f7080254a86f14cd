"""Files that programs take their work from: a line that writes one and runs its program may run anything."""

from __future__ import annotations

import re
from itertools import pairwise

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
_READS = {runner: _FILES[kind] for kind, names in _RUNNERS.items() for runner in names.split()}

_OUTPUTS = {
    "curl": r"-\w*o|--output",
    "wget": r"-\w*O|--output-document",
    "openssl": r"-out",
    "jq": r"--output",
    "aria2c": r"-\w*o|--out",
    "dd": r"of",
} | dict.fromkeys(("sort", "patch", "shuf"), r"-\w*o|--output")
"""Programs that write where an option says."""
_FETCHERS = frozenset({"curl", "wget", "aria2c"})
"""Programs that may name a file after an address."""


def outputs(name: str, arguments: list[str]) -> list[str]:
    """The files that a program's options have it write."""
    option = re.compile(rf"(?:{_OUTPUTS[name]})(?:=?(.+))?") if name in _OUTPUTS else None
    out = [word.partition("?")[0] for word in arguments if name in _FETCHERS and "/" in word]
    for word, following in pairwise([*arguments, ""]):
        if option and (match := option.fullmatch(word)):
            out.append(match[1] or following)
    return out


def reads(runner: str, written: set[str]) -> str | None:
    """The file among those written that a program takes its work from; None if there is none.

    Args:
        runner: the program's name; a version behind it is passed over.
        written: names of files, without their folders.
    """
    known = _READS.get(runner) or _READS.get(runner.rstrip("0123456789."))
    return next((name for name in sorted(written) if re.fullmatch(known, name)), None) if known else None
