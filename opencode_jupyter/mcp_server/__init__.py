"""This project's tools served to other agents over MCP: ``python -m opencode_jupyter mcp``.

`options` is the command, `server` the protocol's requests, `offer` which tools a client sees, `running` one call that a
client waits for, `asks` what a person is asked through the client, `results` and `outputs` what a client gets back,
`wire` standard input and output, `changes` what may change while the server runs. Importing this package loads nothing
of the MCP SDK.
"""
