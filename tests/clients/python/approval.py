"""A client on the 2.x line of the official Python SDK whose person approves some calls.

Calls `wipe` for each answer in each way: as a tool, by `call_tool` of a search, and as a run in the background.
Prints what came back as one JSON line, by way and answer.
"""

import asyncio
import json

from client_v2 import STATELESS, server
from mcp import Client, types
from session import main, plain

ANSWERS = ["accept", "decline", "cancel", "late", "never"]
PATIENCE = 3  # seconds, for a call whose question has no answer


async def answer(_context, params):
    """Answers as the argument in the question says."""
    how = next(how for how in ANSWERS if f'"{how}"' in params.message)
    if how == "never":
        await asyncio.Event().wait()
    if how == "late":
        await asyncio.sleep(2.5)
    return types.ElicitResult(action="accept" if how == "late" else how, content={} if how == "accept" else None)


def request(way, how):
    """The tool to call, and its arguments."""
    arguments = {"way": way, "how": how}
    return {
        "call": ("wipe", arguments),
        "search": ("call_tool", {"name": "wipe", "arguments": arguments}),
        "run": ("runs_start", {"tool": "wipe", "arguments": arguments}),
    }[way]


async def call(client, tool, arguments):
    """Whether the result is an error, and its text."""
    result = plain(await client.call_tool(tool, arguments))
    return [result["isError"], result["content"][0]["text"]]


async def result_of(client, way, how):
    """The result of the tool, which a run has later."""
    try:
        result = await asyncio.wait_for(call(client, *request(way, how)), PATIENCE)
    except TimeoutError:
        return [True, "the client gave up"]
    if way != "run" or result[0]:
        return result
    run = {"run": json.loads(result[1])["run"]}
    while json.loads((await call(client, "runs_status", run))[1])["status"] == "working":
        await asyncio.sleep(0.1)
    return await call(client, "runs_output", run)


async def session(revision, transport, target):
    mode = "auto" if revision == STATELESS else "legacy"
    async with server(transport, target) as reached:
        async with Client(reached, mode=mode, elicitation_callback=answer) as client:
            results = {}
            for way in ["call", "search", "run"]:
                results[way] = {how: await result_of(client, way, how) for how in ANSWERS}
            return {"results": results}


if __name__ == "__main__":
    main(session)
