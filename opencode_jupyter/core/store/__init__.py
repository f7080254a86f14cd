"""Sessions, messages, calls and permission decisions in one SQLite file."""
