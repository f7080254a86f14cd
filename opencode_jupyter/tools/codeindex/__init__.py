"""A search index of a project's code: what functions are called, say and use, found by words that describe them.

From file to answer: `listing` (which files), `extract` with `python_source` and `other_sources` (their pieces),
`terms` (a piece's words), `meaning` (where they point), `store` (SQLite, FTS5), `build_child` (a process that fills
it), `question` (a query's words and their synonyms), `hints` (what it describes; with `encoder` and `ways`, a sentence
encoder's view of it, if the extra is installed), `recall` (pieces that point there; `products`),
`ranking` with `scoring`, `snippets` (what is shown), `service` (all of it for one workspace).

The children run `build_child` and `extract_child`, which import nothing but the standard library.
"""
