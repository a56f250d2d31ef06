"""A server on the official Python SDK: no sessions, JSON answers.

`server.py stdio|http SCRIPTS` has the tools `greet` and `blob`, which run the script of that name, and `echo`.
Over HTTP it prints its address first.
"""

import asyncio
import json
import os
import socket
import sys

import uvicorn
from mcp.server.mcpserver import MCPServer

TRANSPORT, SCRIPTS = sys.argv[1:]

server = MCPServer("peer", log_level="ERROR")


async def run(script: str, arguments: dict, environment: dict) -> str:
    process = await asyncio.create_subprocess_exec(
        os.path.join(SCRIPTS, script),
        env={**os.environ, **environment},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    stdout, _ = await process.communicate(json.dumps(arguments).encode())
    if process.returncode != 0:
        raise RuntimeError(f"exit code {process.returncode}")
    return stdout.decode()


@server.tool(structured_output=False)
async def echo(text: str) -> str:
    """Returns its text."""
    return text


@server.tool(structured_output=False)
async def greet(name: str) -> str:
    """Greets someone by name."""
    return await run("greet", {"name": name}, {"MCPD_OPT_name": name})


@server.tool(structured_output=False)
async def blob() -> str:
    """Prints much."""
    return await run("blob", {}, {})


if TRANSPORT == "stdio":
    server.run("stdio")
else:
    app = server.streamable_http_app(json_response=True, stateless_http=True)
    # asyncio sets TCP_NODELAY only where the number of the protocol says that it is TCP.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    print("{}:{}".format(*listener.getsockname()), flush=True)
    # uvloop fails when a script does not read its input.
    config = uvicorn.Config(app, log_level="error", loop="asyncio")
    uvicorn.Server(config).run(sockets=[listener])
