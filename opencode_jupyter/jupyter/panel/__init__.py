"""Answers to the panels of the JupyterLab extension: pending requests, calls, tools, rules, servers."""

from .service import Panel

__all__ = ["Panel"]
