"""A client on the 1.x line of the official Python SDK, which speaks the stateful revisions."""

import os
from contextlib import asynccontextmanager

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from pydantic import AnyUrl
from session import Logs, Updates, answer, expect, main, see


@asynccontextmanager
async def streams(transport, target):
    if transport == "stdio":
        # The SDK passes only a few variables on unless told otherwise.
        server = StdioServerParameters(command=target[0], args=target[1:], env=dict(os.environ))
        async with stdio_client(server) as (read, write):
            yield read, write
    else:
        url, token = target
        async with streamablehttp_client(url, {"Authorization": f"Bearer {token}"}) as (read, write, _):
            yield read, write


async def session(revision, transport, target):
    logs, updates = Logs(), Updates()
    async with streams(transport, target) as (read, write):
        callbacks = {"logging_callback": logs, "message_handler": updates, "elicitation_callback": answer}
        async with ClientSession(read, write, **callbacks) as client:

            async def updated(uri, change):
                await client.subscribe_resource(AnyUrl(uri))
                await change
                return await updates.first(lambda updated: updated == uri)

            initialized = await client.initialize()
            expect("the revision", initialized.protocolVersion == revision, initialized.protocolVersion)
            await client.set_logging_level("debug")
            seen = await see(client, initialized.protocolVersion, logs, updated)
            if "cancel" in seen["cannot"]:
                # The SDK fails if an answer comes while it closes.
                await updates.first(lambda update: isinstance(update, Exception))
            return seen


main(session)
