"""OpenCode's own tool files, in TypeScript and JavaScript, run by Node.js or Bun in a process beside the kernel."""
