"""AG2: a toolkit whose tools are called as its agents call them, each call with a connection of its own."""

import json
from contextlib import asynccontextmanager

from ag2.context import ConversationContext
from ag2.events import ToolCallEvent
from ag2.stream import MemoryStream
from ag2.tools import MCPServerConfig, MCPStdioServerConfig, MCPToolkit

import harness


class Client:
    def __init__(self, toolkit):
        self.toolkit = toolkit
        self.context = ConversationContext(MemoryStream())

    async def tools(self):
        schemas = await self.toolkit.schemas(self.context)
        return [schema.function.name for schema in schemas]

    async def call(self, name, arguments):
        tool = next(tool for tool in self.toolkit.tools if tool.name == name)
        event = await tool(ToolCallEvent(name, arguments=json.dumps(arguments)), self.context)
        return [getattr(part, "content", part) for part in event.result.parts]


@asynccontextmanager
async def connect(target):
    if target.transport == "stdio":
        server = MCPStdioServerConfig(command=target.command, args=target.args)
    else:
        server = MCPServerConfig(server_url=target.url, headers=target.headers)
    yield Client(MCPToolkit(server))


harness.run(connect)
