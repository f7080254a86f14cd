"""Files that decide what runs: start-up files in archives and patches, and files that programs take work from."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any

from ...core.permission.sensitive_files import is_startup_file

LARGEST = 16 << 20
"""Bytes of a file, unpacked, that are looked into."""
MEMBERS = 5_000
"""Members of an archive that are looked at."""
_PATCHED = re.compile(
    r"^(?:\+\+\+|---|\*\*\*|rename to|copy to|Index:|diff --git \S+) +(?:[ab]/)?([^\t\n]+)", re.MULTILINE
)


def in_archive(path: str) -> list[str]:
    """The start-up files that a file holds as an archive or as a patch; none if it is neither."""
    import bz2  # here: they take some ms, and few lines name an archive
    import gzip
    import lzma
    import tarfile
    import zipfile
    import zlib

    def members() -> Iterator[str]:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                yield from archive.namelist()
            return
        with open(path, "rb") as file:
            start = file.read(2)
        openers: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open, b"\xfd7": lzma.open}
        with openers.get(start, open)(path, "rb") as unpacked:
            data: bytes = unpacked.read(LARGEST)
        try:
            with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
                for member in tar:
                    yield from filter(None, (member.name, member.linkname))
        except tarfile.TarError:
            for match in _PATCHED.finditer(data[: 1 << 20].decode("utf-8", "replace")):
                yield match[1].split(" b/")[-1]

    if not os.path.isfile(path):
        return []
    try:
        return [name for name in islice(members(), MEMBERS) if is_startup_file(name) or ".." in name.split("/")][:3]
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, zipfile.BadZipFile):
        return []


# ---------------------------------------------------------------------- written and run in one line


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


def output_files(name: str, arguments: list[str]) -> list[str]:
    """The files that a program's options have it write."""
    option = re.compile(rf"(?:{_OUTPUTS[name]})(?:=?(.+))?") if name in _OUTPUTS else None
    out = [word.partition("?")[0] for word in arguments if name in _FETCHERS and "/" in word]
    for word, following in pairwise([*arguments, ""]):
        if option and (match := option.fullmatch(word)):
            out.append(match[1] or following)
    return out


def work_file(runner: str, written: set[str]) -> str | None:
    """The file among those written that a program takes its work from; None if there is none.

    Args:
        runner: the program's name; a version after it is ignored.
        written: names of files, without their folders.
    """
    known = _READS.get(runner) or _READS.get(runner.rstrip("0123456789."))
    return next((name for name in sorted(written) if re.fullmatch(known, name)), None) if known else None
