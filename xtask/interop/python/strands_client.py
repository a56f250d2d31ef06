"""Strands Agents."""

import asyncio
from contextlib import asynccontextmanager

from strands.tools.mcp import MCPClient

import harness
import official


class Client:
    def __init__(self, client):
        self.client = client

    def tools(self):
        return [tool.tool_name for tool in self.client.list_tools_sync()]

    async def call(self, name, arguments):
        return await self.client.call_tool_async("1", name, arguments)

    async def structured(self, name, arguments):
        return (await self.call(name, arguments)).get("structuredContent")

    def prompt(self, name, arguments):
        return self.client.get_prompt_sync(name, arguments)

    def resource(self, uri):
        return self.client.read_resource_sync(uri)


@asynccontextmanager
async def connect(target):
    client = MCPClient(lambda: official.streams(target))
    await asyncio.to_thread(client.start)
    try:
        yield Client(client)
    finally:
        await asyncio.to_thread(client.stop, None, None, None)


harness.run(connect)
