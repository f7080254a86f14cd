"""Running commands so that nothing of them is left: supervised on Linux, in process groups elsewhere."""
