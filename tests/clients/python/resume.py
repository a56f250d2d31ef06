"""A client on the official Python SDK whose connection breaks in the middle of a call.

It resumes the stream by itself; nothing here helps it. Run as `resume.py URL TOKEN`, prints one JSON line.
"""

import asyncio
import contextlib
import json
import re
import sys
from urllib.parse import urlsplit

from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

try:
    import httpx2 as httpx
except ImportError:
    # The 1.x line of the SDK.
    import httpx

PRIMING = re.compile(rb"id: [0-9a-f]+-0\ndata:\n\n")


class Breaking:
    """A proxy that breaks the connection of the first call as soon as its stream has an id."""

    def __init__(self, target):
        self.target = target
        self.seen = {"broken": 0, "resumed": 0}

    async def serve(self, reader, writer):
        server_reader, server_writer = await asyncio.open_connection(
            self.target.hostname, self.target.port
        )
        connection = {"is_call": False}

        async def forward():
            while data := await reader.read(65536):
                connection["is_call"] |= b'"tools/call"' in data
                if b"last-event-id:" in data.lower():
                    self.seen["resumed"] += 1
                server_writer.write(data)
            server_writer.close()

        async def backward():
            while data := await server_reader.read(65536):
                writer.write(data)
                if connection["is_call"] and not self.seen["broken"] and PRIMING.search(data):
                    self.seen["broken"] += 1
                    await writer.drain()
                    writer.transport.abort()
                    server_writer.transport.abort()
                    return
            writer.close()

        # Requests still open at the end of the program are cancelled.
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(forward(), backward(), return_exceptions=True)


async def main(url, token):
    target = urlsplit(url)
    breaking = Breaking(target)
    proxy = await asyncio.start_server(breaking.serve, "127.0.0.1", 0)
    port = proxy.sockets[0].getsockname()[1]
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers, timeout=60) as client:
        address = f"http://127.0.0.1:{port}{target.path}"
        async with streamable_http_client(address, http_client=client) as streams:
            async with ClientSession(*streams[:2]) as session:
                await session.initialize()
                result = await session.call_tool("slow", {})
    text = result.content[0].text
    assert text == "Took its time.", text
    assert breaking.seen["broken"] == 1 and breaking.seen["resumed"] >= 1, breaking.seen
    print(json.dumps(breaking.seen))


asyncio.run(asyncio.wait_for(main(*sys.argv[1:]), 50))
