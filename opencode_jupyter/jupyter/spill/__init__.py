"""Whole outputs for the viewer of the JupyterLab extension: pages of lines, bytes, searches; of any size.

Requests come on the control channel's thread, while a cell may be busy; so each takes a bounded time and memory. What
it takes long to find is found in several requests: the places of lines are remembered between them, and a search goes
on in a process of its own.
"""
