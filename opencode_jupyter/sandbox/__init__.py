"""The operating system's own limits on what a command can do: Landlock, bubblewrap, ``sandbox-exec``."""
