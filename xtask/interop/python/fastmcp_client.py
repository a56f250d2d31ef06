"""FastMCP's client."""

from contextlib import asynccontextmanager

from fastmcp import Client as FastClient
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

import harness


class Client:
    def __init__(self, client):
        self.client = client

    async def tools(self):
        return [tool.name for tool in await self.client.list_tools()]

    async def call(self, name, arguments):
        return await self.client.call_tool(name, arguments)

    async def structured(self, name, arguments):
        return (await self.client.call_tool(name, arguments)).structured_content

    async def progress(self, name, arguments):
        seen = []

        async def note(progress, total, message):
            seen.append(progress)

        await self.client.call_tool(name, arguments, progress_handler=note)
        return seen

    async def prompt(self, name, arguments):
        return await self.client.get_prompt(name, arguments)

    async def resource(self, uri):
        return await self.client.read_resource(uri)


@asynccontextmanager
async def connect(target):
    if target.transport == "stdio":
        transport = StdioTransport(command=target.command, args=target.args, keep_alive=False)
    else:
        transport = StreamableHttpTransport(target.url, headers=target.headers)
    async with FastClient(transport) as client:
        yield Client(client)


harness.run(connect)
