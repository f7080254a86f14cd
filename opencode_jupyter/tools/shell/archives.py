"""What an archive or a patch would write: whether start-up files are among it."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from ...core.permission.sensitive_files import is_startup_file

LARGEST = 16 << 20
"""Bytes of a file, unpacked, that are looked into."""
MEMBERS = 5_000
"""Members of an archive that are looked at."""
_PATCHED = re.compile(
    r"^(?:\+\+\+|---|\*\*\*|rename to|copy to|Index:|diff --git \S+) +(?:[ab]/)?([^\t\n]+)", re.MULTILINE
)


def startup_files(path: str) -> list[str]:
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
