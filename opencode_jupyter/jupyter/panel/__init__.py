"""What the panels of the JupyterLab extension ask a kernel for: what waits, calls, tools, rules, servers."""

from .service import Panel

__all__ = ["Panel"]
