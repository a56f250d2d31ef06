"""The official SDK, on its 1.x line and on the 2.x line."""

from contextlib import asynccontextmanager

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

import harness

try:
    import httpx2 as httpx
except ImportError:
    import httpx


class Client:
    def __init__(self, session):
        self.session = session

    async def tools(self):
        return [tool.name for tool in (await self.session.list_tools()).tools]

    async def call(self, name, arguments):
        return await self.session.call_tool(name, arguments)

    async def structured(self, name, arguments):
        return harness.structured_content(await self.session.call_tool(name, arguments))

    async def progress(self, name, arguments):
        seen = []

        async def note(progress, total, message):
            seen.append(progress)

        await self.session.call_tool(name, arguments, progress_callback=note)
        return seen

    async def prompt(self, name, arguments):
        return await self.session.get_prompt(name, arguments)

    async def resource(self, uri):
        return await self.session.read_resource(uri)


@asynccontextmanager
async def streams(target):
    if target.transport == "stdio":
        async with stdio_client(StdioServerParameters(command=target.command, args=target.args)) as both:
            yield both
    else:
        async with httpx.AsyncClient(headers=target.headers, timeout=60) as client:
            async with streamable_http_client(target.url, http_client=client) as both:
                yield both[:2]


@asynccontextmanager
async def connect(target):
    async with streams(target) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield Client(session)


if __name__ == "__main__":
    harness.run(connect)
