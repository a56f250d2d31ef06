"""Agno: functions of a toolkit."""

import shlex
from contextlib import asynccontextmanager

from agno.tools.function import FunctionCall
from agno.tools.mcp import MCPTools
from agno.tools.mcp.params import StreamableHTTPClientParams

import harness


class Client:
    def __init__(self, toolkit):
        self.functions = toolkit.functions

    async def tools(self):
        return list(self.functions)

    async def call(self, name, arguments):
        call = FunctionCall(function=self.functions[name], arguments=arguments)
        result = await call.aexecute()
        return result.error or result.result

    async def image(self, name, arguments):
        return (await self.call(name, arguments)).images


@asynccontextmanager
async def connect(target):
    if target.transport == "stdio":
        toolkit = MCPTools(command=shlex.join([target.command, *target.args]))
    else:
        parameters = StreamableHTTPClientParams(url=target.url, headers=target.headers)
        toolkit = MCPTools(transport="streamable-http", server_params=parameters)
    await toolkit.connect()
    try:
        yield Client(toolkit)
    finally:
        await toolkit.close()


harness.run(connect)
