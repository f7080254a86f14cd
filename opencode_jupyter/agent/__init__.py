"""The model loop: requests to a model, its answers and calls, sessions to continue.

`core` knows nothing of it; a workspace reaches it through ``workspace.sessions.prompt``. Nothing heavy is imported
here: a provider's library is loaded at the first request to it, on a thread.
"""
