"""Google's Agent Development Kit."""

from contextlib import asynccontextmanager

from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams, StreamableHTTPConnectionParams
from mcp import StdioServerParameters

import harness


class Confirmed:
    """As much of the context of a call as tools look at."""

    tool_confirmation = None
    state = {}
    _invocation_context = None

    def __getattr__(self, name):
        return None


class Client:
    def __init__(self, toolset, tools):
        self.toolset = toolset
        self.named = {tool.name: tool for tool in tools}

    async def tools(self):
        return list(self.named)

    async def call(self, name, arguments):
        return await self.named[name].run_async(args=arguments, tool_context=Confirmed())

    async def structured(self, name, arguments):
        result = await self.call(name, arguments)
        return result.get("structuredContent") or result.get("structured_content")

    async def resource(self, uri):
        # It knows resources by their names.
        return await self.toolset.read_resource(uri.rsplit("/", 1)[1])


@asynccontextmanager
async def connect(target):
    if target.transport == "stdio":
        parameters = StdioServerParameters(command=target.command, args=target.args)
        connection = StdioConnectionParams(server_params=parameters, timeout=20)
    else:
        connection = StreamableHTTPConnectionParams(url=target.url, headers=target.headers)
    toolset = McpToolset(connection_params=connection)
    try:
        yield Client(toolset, await toolset.get_tools())
    finally:
        await toolset.close()


harness.run(connect)
