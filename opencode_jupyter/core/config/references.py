"""``{env:NAME}`` and ``{file:path}`` in a config's text (docs/opencode/core.md 14.2), filled in and found again.

What a variable or a file holds may be a secret. It goes into the configuration and nowhere else: an error shows the
text as it was written, and a warning names the reference in place of what it brought.
"""

from __future__ import annotations

import json
import os
import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from .reading import read

REFERENCE = re.compile(r"\{(env|file):([^{}\n]+)\}")
_SHORT = 4
"""Characters. A shorter value is hidden where it is the whole of an entry only: a "1" may stand anywhere."""


@dataclass(slots=True)
class Filled:
    """A text with its references filled in.

    Attributes:
        text: the result.
        written: the text as it was written.
        brought: what each reference brought, by that.
    """

    text: str
    written: str
    brought: dict[str, str] = field(default_factory=dict)
    _spans: list[tuple[int, int, int, str]] = field(default_factory=list)

    def origin(self, at: int) -> tuple[int, str]:
        """Where a place of `text` was written, and the reference that brought it ("" if it was written so)."""
        before = bisect_right(self._spans, at, key=lambda span: span[0]) - 1
        if before < 0:
            return at, ""
        _, end, begun, reference = self._spans[before]
        return (begun, reference) if at < end else (begun + len(reference) + at - end, "")

    def hidden(self, value: Any) -> Any:
        """A value, with the references in place of what they brought."""
        if isinstance(value, dict):
            return {self.hidden(key): self.hidden(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [self.hidden(entry) for entry in value]
        if not self.brought:
            return value
        text = value if isinstance(value, str) else json.dumps(value)
        if text in self.brought:
            return self.brought[text]
        if isinstance(value, str):
            for secret in sorted(self.brought, key=len, reverse=True):
                if len(secret) >= _SHORT:
                    value = value.replace(secret, self.brought[secret])
        return value


def fill(
    text: str,
    *,
    path: str,
    folder: Path,
    env: Mapping[str, str],
    home: Path,
    written: str | None = None,
    within: Path | None = None,
) -> Filled:
    """Fill in the references. A variable's value goes in as it is, a file's content escaped as in a JSON text.

    What they bring is not searched for references again.

    Args:
        text: without its comments, in which nothing is filled in.
        path: named in errors.
        folder: what relative paths start from.
        env: environment variables; one that is not set is empty.
        home: what ``~/`` stands for.
        written: the text with its comments, of the same length; `text` if left out.
        within: leave variables, and files outside of this folder, as they are written.

    Raises:
        ConfigError: a file is not there or can't be read.
    """
    out = Filled(text, text if written is None else written)
    if "{env:" not in text and "{file:" not in text:
        return out
    pieces: list[str] = []
    length = done = 0
    for found in REFERENCE.finditer(text):
        if within is not None and (found[1] == "env" or not _inside(found[2], within, folder, home)):
            continue
        if found[1] == "env":
            bare = said = env.get(found[2], "")
        else:
            bare = _content(found[2], path, text.count("\n", 0, found.start()) + 1, folder, home)
            said = json.dumps(bare, ensure_ascii=False)[1:-1]
        pieces += [text[done : found.start()], said]
        length += found.start() - done
        out._spans.append((length, length + len(said), found.start(), found[0]))
        length += len(said)
        done = found.end()
        if bare:
            out.brought[bare] = found[0]
    out.text = "".join([*pieces, text[done:]])
    return out


def _inside(name: str, within: Path, folder: Path, home: Path) -> bool:
    """Return whether a file is one of a project. A project around the home folder would make every file one."""
    target = Path(os.path.realpath(home / name[2:] if name.startswith("~/") else folder / name))
    return target.is_relative_to(within) and not home.is_relative_to(within)


def _content(name: str, path: str, line: int, folder: Path, home: Path) -> str:
    target = home / name[2:] if name.startswith("~/") else folder / name
    try:
        return read(target).strip()
    except (FileNotFoundError, NotADirectoryError):
        reason = f"{target} does not exist"
    except UnicodeDecodeError:
        reason = f"{target} can't be read: it is not UTF-8 text"
    except (OSError, ValueError) as error:
        reason = f"{target} can't be read: {getattr(error, 'strerror', None) or error}"
    raise ConfigError(f'bad file reference: "{{file:{name}}}": {reason}', path=path, line=line)
