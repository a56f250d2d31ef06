"""AutoGen: a workbench of tools."""

from contextlib import asynccontextmanager

from autogen_ext.tools.mcp import McpWorkbench, StdioServerParams, StreamableHttpServerParams

import harness


class Client:
    def __init__(self, workbench):
        self.workbench = workbench

    async def tools(self):
        return [tool["name"] for tool in await self.workbench.list_tools()]

    async def call(self, name, arguments):
        return await self.workbench.call_tool(name, arguments)

    async def image(self, name, arguments):
        result = await self.call(name, arguments)
        return [part.content.to_base64() for part in result.result]

    async def prompt(self, name, arguments):
        return await self.workbench.get_prompt(name, arguments)

    async def resource(self, uri):
        return await self.workbench.read_resource(uri)


@asynccontextmanager
async def connect(target):
    if target.transport == "stdio":
        server = StdioServerParams(command=target.command, args=target.args)
    else:
        server = StreamableHttpServerParams(url=target.url, headers=target.headers)
    async with McpWorkbench(server) as workbench:
        yield Client(workbench)


harness.run(connect)
