"""This project's tools served to other agents over MCP: ``python -m opencode_jupyter mcp``.

`command` is the command line and the process, `server` the protocol's requests, `selection` the tools a client sees,
`calls` one call and its result, `forms` what a person is asked through the client. Importing this package loads nothing
of the MCP SDK.
"""
