"""The way out to the web: which addresses may be reached, guarded fetching, pages as text, Exa's search."""
