"""A search index of a project's code: what functions are called, say and use, found by words that describe them.

From file to answer: `project_files` (which files, and whether they changed), `pieces` (what of a file can be found),
`tokenizer` (a text's words), `extract` (a file to the index's rows), `store` (SQLite, FTS5), `build_child` (a process
that fills it), `ranking` (what is asked, and what fits), `snippets` (what is shown), `service` (all of it for one
workspace).

`build_child` and what it loads import nothing but the standard library.
"""
