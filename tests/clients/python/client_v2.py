"""A client on the 2.x line of the official Python SDK, which speaks every revision."""

import os
import warnings
from contextlib import asynccontextmanager

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPDeprecationWarning
from session import DEADLINE, Logs, Updates, answer, expect, main, see

STATELESS = "2026-07-28"

# The stateful revisions have no other way to ask for logs and updates.
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
    logs, updates = Logs(), Updates()
    callbacks = {"logging_callback": logs, "message_handler": updates, "elicitation_callback": answer}
    # "auto" asks with `server/discover` and takes the newest revision; "legacy" initializes.
    mode = "auto" if revision == STATELESS else "legacy"
    async with server(transport, target) as reached:
        async with Client(reached, mode=mode, log_level="debug", **callbacks) as client:

            async def updated(uri, change):
                if mode == "legacy":
                    await client.subscribe_resource(uri)
                    await change
                    return await updates.first(lambda updated: updated == uri)
                async with client.listen(resource_subscriptions=[uri]) as subscription:
                    await change
                    return (await anext(subscription)).uri

            expect("the revision", client.protocol_version == revision, client.protocol_version)
            if mode == "legacy":
                await client.set_logging_level("debug")
            return await see(client, client.protocol_version, logs, updated)


if __name__ == "__main__":
    main(session)
