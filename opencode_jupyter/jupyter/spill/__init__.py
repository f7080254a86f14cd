"""Whole outputs for the viewer of the JupyterLab extension: pages of lines, bytes, searches; of any size.

Requests come on the control channel's thread, while a cell may be busy; so each takes a bounded time and memory. What
takes long is found in several requests: the positions of lines are remembered between them, and a search runs
in a process of its own.
"""
