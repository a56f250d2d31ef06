"""The OpenAI Agents SDK: function tools as its agents call them."""

import json
from contextlib import asynccontextmanager

from agents import Agent, RunContextWrapper
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp, MCPUtil
from agents.tool_context import ToolContext

import harness


class Client:
    def __init__(self, server):
        self.server = server
        self.named = {}

    async def tools(self):
        agent = Agent(name="interop")
        context = RunContextWrapper(context=None)
        tools = await MCPUtil.get_function_tools(self.server, True, context, agent)
        self.named = {tool.name: tool for tool in tools}
        return list(self.named)

    async def call(self, name, arguments):
        text = json.dumps(arguments)
        context = ToolContext(context=None, tool_name=name, tool_call_id="1", tool_arguments=text)
        return await self.named[name].on_invoke_tool(context, text)

    async def structured(self, name, arguments):
        result = await self.server.call_tool(name, arguments)
        return harness.structured_content(result)

    async def prompt(self, name, arguments):
        return await self.server.get_prompt(name, arguments)

    async def resource(self, uri):
        return await self.server.read_resource(uri)


@asynccontextmanager
async def connect(target):
    if target.transport == "stdio":
        server = MCPServerStdio(params={"command": target.command, "args": target.args})
    else:
        server = MCPServerStreamableHttp(params={"url": target.url, "headers": target.headers})
    async with server:
        yield Client(server)


harness.run(connect)
