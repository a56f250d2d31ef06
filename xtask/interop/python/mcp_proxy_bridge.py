"""mcp-proxy between the official SDK and the server: stdio in front of HTTP, and HTTP in front of stdio."""

import sys
from contextlib import asynccontextmanager
from pathlib import Path

import gateway
import harness
import official

MCP_PROXY = str(Path(sys.executable).parent / "mcp-proxy")


@asynccontextmanager
async def connect(target):
    if target.transport == "http":
        headers = [part for header in target.headers.items() for part in ("--headers", *header)]
        target.transport, target.command = "stdio", MCP_PROXY
        target.args = ["--transport", "streamablehttp", *headers, target.url]
        async with official.connect(target) as client:
            yield client
    else:
        port = gateway.free_port()
        command = [MCP_PROXY, "--port", str(port), "--", target.command, *target.args]
        async with gateway.running(command, port):
            target.transport, target.headers = "http", {}
            target.url = f"http://127.0.0.1:{port}/mcp"
            async with official.connect(target) as client:
                yield client


harness.run(connect)
