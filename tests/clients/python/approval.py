"""A client on the 2.x line of the official Python SDK whose person approves some calls.

Calls `wipe` once for each answer and prints what came back as one JSON line, by answer.
"""

import asyncio

from client_v2 import STATELESS, server
from mcp import Client, types
from session import main, plain

ANSWERS = ["accept", "decline", "cancel", "late"]


async def answer(_context, params):
    """Answers as the argument in the question says."""
    how = next(how for how in ANSWERS if f'"{how}"' in params.message)
    if how == "late":
        await asyncio.sleep(2.5)
    return types.ElicitResult(action="accept" if how == "late" else how, content={} if how == "accept" else None)


async def session(revision, transport, target):
    mode = "auto" if revision == STATELESS else "legacy"
    async with server(transport, target) as reached:
        async with Client(reached, mode=mode, elicitation_callback=answer) as client:
            results = {}
            for how in ANSWERS:
                result = plain(await client.call_tool("wipe", {"how": how}))
                results[how] = [result["isError"], result["content"][0]["text"]]
            return {"results": results}


if __name__ == "__main__":
    main(session)
