"""What every Python client does once it is connected, and what it prints.

The server serves `examples/scripts`.
Anything unexpected ends the program with a message and exit code 1;
otherwise one JSON line on stdout tells what the client saw.
"""

import asyncio
import json
import os
import sys
import uuid
from importlib.metadata import version

HOSTILE_NAME = "O'Brien \"x\" $(id) \\ `id` \u00e9\u2028 \n"
MISSING_FILE = "/nonexistent/file"
DEADLINE = 60  # seconds, for everything


class Unexpected(Exception):
    """The server answered something else than it should have."""


def expect(what, condition, got):
    if not condition:
        raise Unexpected(f"{what}: got {got!r}")


def text_of(result):
    """The text of a tool result, which must be its only content."""
    expect("one text content", [c["type"] for c in result["content"]] == ["text"], result)
    return result["content"][0]["text"]


class Logs:
    """Log messages as they arrive: the SDK delivers notifications on their own task."""

    def __init__(self):
        self.seen = []
        self._arrived = asyncio.Event()

    async def __call__(self, params):
        self.seen.append([params.level, params.data])
        self._arrived.set()

    async def wait_for(self, level):
        while all(seen != level for seen, _ in self.seen):
            self._arrived.clear()
            await self._arrived.wait()


def plain(model):
    """An answer as the JSON it was on the wire."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def see(client, revision, logs):
    """Lists, calls, reads state, and returns what was seen."""
    tools = [tool["name"] for tool in plain(await client.list_tools())["tools"]]
    expect("names every client accepts", {"greet", "math_calc", "notes_add"} <= set(tools), tools)

    greet = plain(await client.call_tool("greet", {"name": HOSTILE_NAME}))
    expect("greet", text_of(greet) == f"Hello, {HOSTILE_NAME}!", greet)

    note = f"note {uuid.uuid4()}"
    added = plain(await client.call_tool("notes_add", {"text": note}))
    expect("a success", not added.get("isError"), added)
    state = json.loads(plain(await client.read_resource("mcpd://notes/add/state"))["contents"][0]["text"])
    expect("the note in the state", note in [kept["text"] for kept in state["notes"]], state)

    failed = plain(await client.call_tool("files_read", {"path": MISSING_FILE}))
    expect("an error result", failed.get("isError") is True, failed)
    expect("exit code 4", failed.get("_meta", {}).get("mcpd/exit", {}).get("code") == 4, failed)
    await logs.wait_for("error")

    refused = plain(await client.call_tool("math_calc", {"operation": "power", "a": 1, "b": 2}))
    expect("a refusal that names the option", refused.get("isError") and "operation" in text_of(refused), refused)

    return {
        "client": f"python mcp {version('mcp')}",
        "revision": revision,
        "tools": tools,
        "greet": text_of(greet),
        "notes": len(state["notes"]),
        "error": text_of(failed),
        "refusal": text_of(refused),
        "logs": logs.seen,
    }


def main(session):
    """Runs `session(revision, transport, target)`, where the target is a command or [url, token]."""
    if len(sys.argv) < 5 or sys.argv[2] not in ("stdio", "http"):
        sys.exit(f"usage: {sys.argv[0]} REVISION stdio COMMAND ARG…\n       {sys.argv[0]} REVISION http URL TOKEN")
    revision, transport, *target = sys.argv[1:]
    try:
        seen = asyncio.run(asyncio.wait_for(session(revision, transport, target), DEADLINE))
    except BaseException as error:
        sys.exit(f"{os.path.basename(sys.argv[0])} {revision} {transport}: {root_cause(error)}")
    print(json.dumps(seen))


def root_cause(error):
    """The first real error inside the groups that the SDK's tasks wrap around it."""
    while getattr(error, "exceptions", None):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"
