"""A server on the Python SDK, whichever version of it there is."""

try:
    from mcp.server.mcpserver import Context, MCPServer
except ImportError:
    from mcp.server.fastmcp import Context
    from mcp.server.fastmcp import FastMCP as MCPServer

server = MCPServer("python")


@server.tool()
async def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
async def count(to: int, context: Context) -> str:
    """Counts, and says how far it is."""
    for number in range(1, to + 1):
        await context.report_progress(number, to, f"at {number}")
    return "counted"


@server.resource("python://greeting")
def greeting() -> str:
    """A greeting."""
    return "Hello!"


@server.resource("python://greeting/{name}")
def greeting_of(name: str) -> str:
    """A greeting of somebody."""
    return f"Hello, {name}!"


@server.prompt()
def review(code: str) -> str:
    """Asks for a review."""
    return f"Review this: {code}"


if __name__ == "__main__":
    server.run()
