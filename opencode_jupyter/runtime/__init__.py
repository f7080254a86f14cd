"""What tools are built on that belongs to no single tool."""
