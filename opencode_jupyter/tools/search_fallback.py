"""A search for machines without ripgrep: a script that takes some of ripgrep's arguments and prints as it does.

Run as a child, so that a regular expression that never ends can be killed. It reads no ignore files, and its regular
expressions are Python's; the tools say so.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator

_PROBE = 8192
"""Bytes looked at for a NUL, which tells a binary file."""


def glob_regex(pattern: str) -> re.Pattern[str]:
    """A glob as gitignore reads it: without a slash it fits a name at any depth. Braces are alternatives."""
    anchored = "/" in pattern.rstrip("/")
    body = _translate(pattern.removeprefix("/"))
    return re.compile(body if anchored else f"(?:.*/)?{body}", re.DOTALL)


def _translate(pattern: str) -> str:
    out, at, depth = "", 0, 0
    while at < len(pattern):
        char = pattern[at]
        if pattern.startswith("**/", at):
            out, at = out + "(?:.*/)?", at + 3
            continue
        if pattern.startswith("**", at):
            out, at = out + ".*", at + 2
            continue
        end = pattern.find("]", at + 2)
        if char == "[" and end > 0:
            inside = pattern[at + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            out += "[^" + inside[1:] + "]" if inside[0] in "!^" else f"[{inside}]"
            at = end + 1
            continue
        if char == "{" and "}" in pattern[at:]:
            depth += 1
            out += "(?:"
        elif char == "}" and depth:
            depth -= 1
            out += ")"
        elif char == "\\" and at + 1 < len(pattern):
            at += 1
            out += re.escape(pattern[at])
        else:
            out += {"*": "[^/]*", "?": "[^/]", ",": "|" if depth else ","}.get(char, re.escape(char))
        at += 1
    return out


def walk(top: str) -> Iterator[str]:
    """Paths of the files under `top`, ``.git`` left out, links not followed."""
    stack = [top]
    while stack:
        folder = stack.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name, reverse=True)
        except OSError:
            continue
        for entry in entries:
            if entry.name == ".git":
                continue
            if entry.is_dir(follow_symlinks=False):
                stack.append(entry.path)
            elif entry.is_file(follow_symlinks=False):
                yield entry.path


def search(path: str, expression: re.Pattern[bytes], columns: int) -> list[bytes]:
    """The lines of a file that match, as ``number:text``."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return []
    if b"\0" in data[:_PROBE] or not expression.search(data):
        return []
    return [
        b"%d:%s" % (number, line[:columns])
        for number, line in enumerate(data.removesuffix(b"\n").split(b"\n"), 1)
        if expression.search(line.removesuffix(b"\r"))
    ]


def excluded(path: str, unwanted: list[re.Pattern[str]]) -> bool:
    """Return whether a glob that begins with ``!`` fits the file or a folder it is in."""
    words = path.split("/")
    return any(u.fullmatch("/".join(words[: n + 1])) for n in range(len(words)) for u in unwanted)


def main(arguments: list[str]) -> int:
    """Do what the arguments say; ripgrep's exit codes."""
    options = [a for a in arguments[: arguments.index("--")] if a.startswith("--")]
    top = arguments[-1]
    values = dict(option[2:].partition("=")[::2] for option in options)
    globs = [o.partition("=")[2] for o in options if o.startswith("--glob=") and o != "--glob=!.git"]
    included = [glob_regex(g) for g in globs if not g.startswith("!")]
    unwanted = [glob_regex(g[1:]) for g in globs if g.startswith("!")]
    files: Iterator[str] = iter([top]) if os.path.isfile(top) else walk(top)
    out = sys.stdout.buffer
    any_match = False
    expression = None
    if "regexp" in values:
        try:
            expression = re.compile(os.fsencode(values["regexp"]), re.MULTILINE)
        except re.error as error:
            sys.stderr.write(f"regex parse error: {error}\n")
            return 2
    for path in files:
        relative = path.removeprefix("./")
        if included and not any(w.fullmatch(relative) for w in included):
            continue
        if unwanted and excluded(relative, unwanted):
            continue
        name = os.fsencode("./" + relative)
        if expression is None:
            out.write(name + b"\0")
            any_match = True
        elif lines := search(path, expression, int(values.get("max-columns", "8192"))):
            out.write((b"\n" if any_match else b"") + name + b"\0" + b"\n".join(lines) + b"\n")
            any_match = True
    out.flush()
    return 0 if any_match else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BrokenPipeError:
        os._exit(0)
