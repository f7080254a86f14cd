"""An MCP server with two tools: `price` and `restock`."""

from mcp.server.mcpserver import Context, MCPServer
from prices import PRICES

server = MCPServer("shop")


@server.tool()
def price(item: str) -> str:
    """Look up the price of an item."""
    return f"{PRICES[item]:.2f}"


@server.tool()
async def restock(crates: int, ctx: Context) -> str:
    """Fill the shelves."""
    for crate in range(crates):
        await ctx.report_progress(crate + 1, crates, f"crate {crate + 1}")
    return f"{crates} crates on the shelves"


if __name__ == "__main__":
    server.run()
