"""The magics %tool, %tools, %permissions, %sessions and %mcp: arguments, completion, help."""
