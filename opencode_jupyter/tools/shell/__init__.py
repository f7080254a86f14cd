"""What a shell command would do, read from its syntax tree: folders, commands (docs/opencode/agents.md 6.3)."""
