"""A client on the 2.x line of the official Python SDK, which speaks every revision."""

import os
import warnings
from contextlib import asynccontextmanager

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPDeprecationWarning
from session import DEADLINE, Logs, expect, main, see

STATELESS = "2026-07-28"

# The stateful revisions have no other way to ask for logs.
warnings.simplefilter("ignore", MCPDeprecationWarning)


@asynccontextmanager
async def server(transport, target):
    if transport == "stdio":
        # The SDK passes only a few variables on unless told otherwise.
        yield StdioServerParameters(command=target[0], args=target[1:], env=dict(os.environ))
    else:
        url, token = target
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=DEADLINE) as http:
            yield streamable_http_client(url, http_client=http)


async def session(revision, transport, target):
    logs = Logs()
    # "auto" asks with `server/discover` and takes the newest revision; "legacy" initializes.
    mode = "auto" if revision == STATELESS else "legacy"
    async with server(transport, target) as reached:
        async with Client(reached, mode=mode, logging_callback=logs, log_level="debug") as client:
            expect("the revision", client.protocol_version == revision, client.protocol_version)
            if mode == "legacy":
                await client.set_logging_level("debug")
            return await see(client, client.protocol_version, logs)


main(session)
