"""Haystack: tools of a toolset."""

import asyncio
from contextlib import asynccontextmanager

from haystack_integrations.tools.mcp import MCPToolset, StdioServerInfo, StreamableHttpServerInfo

import harness


class Client:
    def __init__(self, toolset):
        self.named = {tool.name: tool for tool in toolset}

    def tools(self):
        return list(self.named)

    def call(self, name, arguments):
        return self.named[name].invoke(**arguments)


@asynccontextmanager
async def connect(target):
    if target.transport == "stdio":
        server = StdioServerInfo(command=target.command, args=target.args)
    else:
        server = StreamableHttpServerInfo(url=target.url, headers=target.headers)
    toolset = await asyncio.to_thread(MCPToolset, server, eager_connect=True)
    try:
        yield Client(toolset)
    finally:
        await asyncio.to_thread(toolset.close)


harness.run(connect)
