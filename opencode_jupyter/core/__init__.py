"""The tool system. Knows nothing of IPython, widgets or any model provider."""
