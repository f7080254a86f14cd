"""How the extension runs inside a kernel: the engine, waiting cells, approvals, and every touch of ipykernel."""
