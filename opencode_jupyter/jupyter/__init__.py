"""The notebook interface: engine, waiting cells, approvals, cards and magics."""
