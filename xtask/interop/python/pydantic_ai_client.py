"""Pydantic AI."""

from contextlib import asynccontextmanager

from fastmcp.client.transports import StdioTransport
from pydantic_ai.mcp import MCPToolset

import harness


class Client:
    def __init__(self, server):
        self.server = server

    async def tools(self):
        return [tool.name for tool in await self.server.list_tools()]

    async def call(self, name, arguments):
        return await self.server.direct_call_tool(name, arguments)

    async def structured(self, name, arguments):
        return await self.call(name, arguments)

    async def prompt(self, name, arguments):
        return await self.server.get_prompt(name, arguments)

    async def resource(self, uri):
        return await self.server.read_resource(uri)


@asynccontextmanager
async def connect(target):
    if target.transport == "stdio":
        transport = StdioTransport(command=target.command, args=target.args, keep_alive=False)
        server = MCPToolset(transport)
    else:
        server = MCPToolset(target.url, headers=target.headers)
    async with server:
        yield Client(server)


harness.run(connect)
