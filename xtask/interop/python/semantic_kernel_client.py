"""Semantic Kernel: functions of a plugin."""

from contextlib import asynccontextmanager

from semantic_kernel import Kernel
from semantic_kernel.connectors.mcp import MCPStdioPlugin, MCPStreamableHttpPlugin

import harness


class Client:
    def __init__(self, plugin):
        self.plugin = plugin
        self.kernel = Kernel()
        self.functions = self.kernel.add_plugin(plugin, plugin_name="mcpd").functions

    async def tools(self):
        return list(self.functions)

    async def call(self, name, arguments):
        result = await self.functions[name].invoke(self.kernel, **arguments)
        return "\n".join(getattr(item, "text", None) or str(item.to_dict()) for item in result.value)

    async def prompt(self, name, arguments):
        return [str(message) for message in await self.plugin.get_prompt(name, **arguments)]


@asynccontextmanager
async def connect(target):
    if target.transport == "stdio":
        plugin = MCPStdioPlugin(name="mcpd", command=target.command, args=target.args)
    else:
        plugin = MCPStreamableHttpPlugin(name="mcpd", url=target.url, headers=target.headers)
    async with plugin:
        yield Client(plugin)


harness.run(connect)
