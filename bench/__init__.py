"""Benchmarks: each number beside a peer's or the machine's own limit, measured in the same run."""
