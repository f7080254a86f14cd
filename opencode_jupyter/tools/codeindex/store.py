"""The index of one project in a SQLite file: its files, their pieces, and the words of those in FTS5.

The tables of words keep neither text nor positions (``content=''``, ``detail=none``), and such a table can't delete a
row by its number in every SQLite that is around; so the rows of a changed file stay in it without a piece, which a
query passes over, until there are so many that the index is made anew.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from .extract import Row

VERSION = 11
"""Of the tables and of what `extract` puts into them: another one in a file means making it anew."""
GARBAGE = 0.3
"""Share of rows without a piece at which the index is made anew."""
_BUSY = 10.0
"""Seconds to wait for another notebook's write."""
_WORDS = """content='', detail=none, tokenize="unicode61 remove_diacritics 0 categories 'L* N* Co'\""""
_SCHEMA = f"""
CREATE TABLE files(id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, mtime INTEGER, size INTEGER, digest BLOB);
CREATE TABLE pieces(
  id INTEGER PRIMARY KEY AUTOINCREMENT, file INTEGER NOT NULL, kind TEXT, symbol TEXT, line INTEGER, end INTEGER,
  name TEXT, place TEXT, signature TEXT, summary TEXT, doc TEXT, body TEXT);
CREATE INDEX pieces_by_file ON pieces(file);
CREATE VIRTUAL TABLE heads USING fts5(name, summary, {_WORDS});
CREATE VIRTUAL TABLE words USING fts5(name, place, signature, summary, doc, body, {_WORDS});
PRAGMA user_version = {VERSION};
"""


_TABLES = (
    ("heads", "name, summary", (10, 7)),
    ("words", "name, place, signature, summary, doc, body", (4, 5, 6, 7, 8, 9)),
)
"""The tables of words, from few words a piece to all of them, and which of a row's fields each holds.

A method is found by the name of its class as well, so the second table has both."""


class CorruptIndexError(Exception):
    """The file is no index of ours: it is to be made anew."""


class IndexStore:
    """A connection to an index file, which is made if it is missing. One thread at a time.

    Raises:
        CorruptIndexError: the file can't be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # children load no other package
        self.connection = sqlite3.connect(path, timeout=_BUSY, isolation_level=None, check_same_thread=False)
        try:
            self._open()
        except sqlite3.DatabaseError as error:
            self.close()
            if _busy(error):
                raise
            raise CorruptIndexError(str(error)) from error
        except CorruptIndexError:
            self.close()
            raise
        self.inode = path.stat().st_ino

    def _open(self) -> None:
        run = self.connection.execute
        run("PRAGMA journal_mode=WAL")
        run("PRAGMA synchronous=NORMAL")
        run("PRAGMA mmap_size=1073741824")
        run("PRAGMA cache_size=-65536")
        if run("PRAGMA user_version").fetchone()[0] == VERSION:
            return
        with self.transaction():
            version = run("PRAGMA user_version").fetchone()[0]
            if version == VERSION:  # another notebook has just made it
                return
            if version or run("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise CorruptIndexError(f"version {version}")
            for statement in filter(str.strip, _SCHEMA.split(";\n")):
                run(statement)

    def close(self) -> None:
        """Let go of the file."""
        with contextlib.suppress(sqlite3.Error):
            self.connection.close()

    def is_stale(self) -> bool:
        """Return whether the file was removed or put in place of this one's since it was opened."""
        try:
            return self.path.stat().st_ino != self.inode
        except OSError:
            return True

    def data_version(self) -> int:
        """Changes when another connection has written."""
        version: int = self.connection.execute("PRAGMA data_version").fetchone()[0]
        return version

    def files(self) -> dict[str, tuple[int, int]]:
        """Every file's time of change (ns) and size, by its path."""
        rows = self.connection.execute("SELECT path, mtime, size FROM files")
        return {path: (mtime, size) for path, mtime, size in rows}

    def digest(self, path: str) -> bytes | None:
        """The digest of a file's content as it was indexed."""
        row = self.connection.execute("SELECT digest FROM files WHERE path = ?", (path,)).fetchone()
        return row[0] if row else None

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """A change, whole or not at all; nobody else writes until its end."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        finally:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")

    def set_file(self, path: str, mtime: int, size: int, digest: bytes, rows: Sequence[Row] | None) -> None:
        """Set what is known of a file; None for its rows keeps those that are there."""
        run = self.connection.execute
        row = run("SELECT id FROM files WHERE path = ?", (path,)).fetchone()
        if row:
            number = row[0]
            run("UPDATE files SET mtime = ?, size = ?, digest = ? WHERE id = ?", (mtime, size, digest, number))
            if rows is not None:
                run("DELETE FROM pieces WHERE file = ?", (number,))
        else:
            number = run("INSERT INTO files(path, mtime, size, digest) VALUES(?,?,?,?)", (path, mtime, size, digest))
            number = number.lastrowid
        if not rows:
            return
        first = self._last() + 1
        numbered = list(enumerate(rows, first))
        self.connection.executemany(
            "INSERT INTO pieces VALUES(?,?,?,?,?,?,?,?,?,?,?,?)", [(i, number, *row[:10]) for i, row in numbered]
        )
        for table, columns, chosen in _TABLES:
            self.connection.executemany(
                f"INSERT INTO {table}(rowid, {columns}) VALUES(?{',?' * len(chosen)})",
                [(i, *[row[k] for k in chosen]) for i, row in numbered],
            )

    def remove_files(self, paths: Iterable[str]) -> None:
        """Take files out."""
        run = self.connection.execute
        for path in paths:
            for (number,) in run("SELECT id FROM files WHERE path = ?", (path,)).fetchall():
                run("DELETE FROM pieces WHERE file = ?", (number,))
                run("DELETE FROM files WHERE id = ?", (number,))

    def is_wasteful(self) -> bool:
        """Return whether so much of the words' table is of no use that the index should be made anew."""
        last = self._last()
        if last < 20_000:
            return False
        count: int = self.connection.execute("SELECT count(*) FROM pieces").fetchone()[0]
        return count < last * (1 - GARBAGE)

    def _last(self) -> int:
        """The highest number that a piece has had."""
        row = self.connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'pieces'").fetchone()
        return row[0] if row else 0


def remove(path: Path) -> None:
    """Remove an index file with what SQLite keeps beside it."""
    for end in ("", "-wal", "-shm", "-journal"):
        for _ in range(20):
            try:
                Path(f"{path}{end}").unlink(missing_ok=True)
                break
            except PermissionError:  # Windows, while another process has it open
                time.sleep(0.05)


def _busy(error: sqlite3.DatabaseError) -> bool:
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)
