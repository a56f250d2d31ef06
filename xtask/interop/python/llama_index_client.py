"""LlamaIndex: function tools made of a tool specification."""

from contextlib import asynccontextmanager

from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

import harness


class Client:
    def __init__(self, client, tools):
        self.client = client
        self.named = {tool.metadata.name: tool for tool in tools}

    async def tools(self):
        return list(self.named)

    async def call(self, name, arguments):
        return (await self.named[name].acall(**arguments)).content

    async def structured(self, name, arguments):
        result = await self.client.call_tool(name, arguments)
        return harness.structured_content(result)

    async def progress(self, name, arguments):
        seen = []

        async def note(progress, total, message):
            seen.append(progress)

        await self.client.call_tool(name, arguments, progress_callback=note)
        return seen

    async def prompt(self, name, arguments):
        return await self.client.get_prompt(name, arguments)

    async def resource(self, uri):
        return await self.client.read_resource(uri)


@asynccontextmanager
async def connect(target):
    if target.transport == "stdio":
        client = BasicMCPClient(target.command, args=target.args)
    else:
        client = BasicMCPClient(target.url, headers=target.headers)
    yield Client(client, await McpToolSpec(client).to_tool_list_async())


harness.run(connect)
