"""smolagents: tools by way of mcpadapt."""

import asyncio
from contextlib import asynccontextmanager

from mcp import StdioServerParameters
from smolagents import MCPClient

import harness


class Client:
    def __init__(self, tools):
        self.named = {tool.name: tool for tool in tools}

    def tools(self):
        return list(self.named)

    def call(self, name, arguments):
        return self.named[name](**arguments)


@asynccontextmanager
async def connect(target):
    if target.transport == "stdio":
        server = StdioServerParameters(command=target.command, args=target.args)
    else:
        server = {"url": target.url, "headers": target.headers, "transport": "streamable-http"}
    client = await asyncio.to_thread(MCPClient, server, structured_output=True)
    try:
        yield Client(client.get_tools())
    finally:
        await asyncio.to_thread(client.disconnect)


harness.run(connect)
