"""A search index of a project's code: what functions are called, say and use, found by words that describe them.

From file to answer: `listing` (which files), `extract` with `python_source` and `other_sources` (their pieces),
`terms` (a piece's words), `store` (SQLite, FTS5), `builder` (a child process that fills it), `question` (a query's
words and their synonyms), `ranking`, `snippets` (what is shown), `service` (all of it for one workspace).

The children run `build_child` and `extract_child`, which import nothing but the standard library.
"""
