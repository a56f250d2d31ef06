"""mcp-use for Python."""

from contextlib import asynccontextmanager

from mcp_use import MCPClient

import harness


class Client:
    def __init__(self, session):
        self.session = session

    async def tools(self):
        return [tool.name for tool in await self.session.list_tools()]

    async def call(self, name, arguments):
        return await self.session.call_tool(name, arguments)

    async def structured(self, name, arguments):
        return harness.structured_content(await self.call(name, arguments))

    async def prompt(self, name, arguments):
        return await self.session.get_prompt(name, arguments)

    async def resource(self, uri):
        return await self.session.read_resource(uri)


@asynccontextmanager
async def connect(target):
    if target.transport == "stdio":
        server = {"command": target.command, "args": target.args}
    else:
        server = {"url": target.url, "headers": target.headers}
    client = MCPClient({"mcpServers": {"mcpd": server}})
    try:
        yield Client(await client.create_session("mcpd"))
    finally:
        await client.close_all_sessions()


harness.run(connect)
