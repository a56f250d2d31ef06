"""LangChain's adapters: tools, prompts and resources as LangChain has them."""

from contextlib import asynccontextmanager

from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.prompts import load_mcp_prompt
from langchain_mcp_adapters.resources import load_mcp_resources
from langchain_mcp_adapters.tools import load_mcp_tools

import harness


class Client:
    def __init__(self, session, tools, seen):
        self.session = session
        self.named = {tool.name: tool for tool in tools}
        self.seen = seen

    async def tools(self):
        return list(self.named)

    async def invoke(self, name, arguments):
        call = {"name": name, "args": arguments, "id": "1", "type": "tool_call"}
        return await self.named[name].ainvoke(call)

    async def call(self, name, arguments):
        return (await self.invoke(name, arguments)).content

    async def structured(self, name, arguments):
        return (await self.invoke(name, arguments)).artifact["structured_content"]

    async def progress(self, name, arguments):
        await self.call(name, arguments)
        return self.seen

    async def prompt(self, name, arguments):
        return await load_mcp_prompt(self.session, name, arguments=arguments)

    async def resource(self, uri):
        return [blob.as_string() for blob in await load_mcp_resources(self.session, uris=[uri])]


@asynccontextmanager
async def connect(target):
    if target.transport == "stdio":
        connection = {"transport": "stdio", "command": target.command, "args": target.args}
    else:
        connection = {"transport": "streamable_http", "url": target.url, "headers": target.headers}
    seen = []

    async def note(progress, total, message, context):
        seen.append(progress)

    callbacks = Callbacks(on_progress=note)
    client = MultiServerMCPClient({"mcpd": connection}, callbacks=callbacks)
    async with client.session("mcpd") as session:
        tools = await load_mcp_tools(session, callbacks=callbacks, server_name="mcpd")
        yield Client(session, tools, seen)


harness.run(connect)
