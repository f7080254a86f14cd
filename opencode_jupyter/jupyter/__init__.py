"""The notebook face: engine, waiting cells, approvals, cards and magics."""
