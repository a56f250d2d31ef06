"""What every Python client does once it is connected, and what it prints.

The server serves `examples/scripts` and `tests/clients/scripts`.
Anything unexpected ends the program with a message and exit code 1;
otherwise one JSON line on stdout tells what the client saw.
"""

import asyncio
import json
import os
import signal
import sys
import uuid
from importlib.metadata import version

from mcp import types

HOSTILE_NAME = "O'Brien \"x\" $(id) \\ `id` \u00e9\u2028 \n"
MISSING_FILE = "/nonexistent/file"
DEADLINE = 60  # seconds, for everything
LIMIT = 2  # seconds, for a request of an impatient client
GRACE = 5  # seconds, for a script to end whose call was cancelled
NOTES = "mcpd://notes/add/state"


class Unexpected(Exception):
    """The server answered something else than it should have."""


def expect(what, condition, got):
    if not condition:
        raise Unexpected(f"{what}: got {got!r}")


def text_of(result):
    """The text of a tool result, which must be its only content beside the note on a failed run."""
    expect("text content", all(c["type"] == "text" for c in result["content"]), result)
    printed, *notes = [c["text"] for c in result["content"]]
    expect("one text content", all(note.startswith("The script failed with exit code ") for note in notes), result)
    return printed


class Arrivals:
    """What arrives on tasks of the SDK, in order."""

    def __init__(self):
        self.seen = []
        self._arrived = asyncio.Event()

    def add(self, arrival):
        self.seen.append(arrival)
        self._arrived.set()

    async def first(self, wanted):
        """The first arrival that is wanted, as soon as it is there."""
        while (found := next(filter(wanted, self.seen), None)) is None:
            self._arrived.clear()
            await self._arrived.wait()
        return found


class Logs(Arrivals):
    async def __call__(self, params):
        self.add([params.level, params.data])

    async def wait_for(self, level):
        await self.first(lambda log: log[0] == level)


class Updates(Arrivals):
    """The URIs of the resources that changed, and the answers that nobody waits for any more."""

    async def __call__(self, message):
        # One of the SDKs wraps notifications.
        notification = getattr(message, "root", message)
        if getattr(notification, "method", None) == "notifications/resources/updated":
            self.add(str(notification.params.uri))
        elif isinstance(message, Exception):
            self.add(message)


async def answer(_context, params):
    """Says who books, whatever the question."""
    expect("the question", params.message == "Who books the table?", params)
    return types.ElicitResult(action="accept", content={"name": "Ada"})


def plain(model):
    """An answer as the JSON it was on the wire."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def see(client, revision, logs, updated):
    """Does everything, and returns what was seen.

    `updated(uri, change)` subscribes to a resource, awaits the change and returns the URI that was updated."""
    tools = [tool["name"] for tool in plain(await client.list_tools())["tools"]]
    expect("names every client accepts", {"greet", "math_calc", "notes_add"} <= set(tools), tools)

    greet = plain(await client.call_tool("greet", {"name": HOSTILE_NAME}))
    expect("greet", text_of(greet) == f"Hello, {HOSTILE_NAME}!", greet)

    note = f"note {uuid.uuid4()}"
    added = plain(await client.call_tool("notes_add", {"text": note}))
    expect("a success", not added.get("isError"), added)
    state = json.loads(plain(await client.read_resource(NOTES))["contents"][0]["text"])
    expect("the note in the state", note in [kept["text"] for kept in state["notes"]], state)

    failed = plain(await client.call_tool("files_read", {"path": MISSING_FILE}))
    expect("an error result", failed.get("isError") is True, failed)
    expect("exit code 4", failed.get("_meta", {}).get("mcpd/exit", {}).get("code") == 4, failed)
    await logs.wait_for("error")

    refused = plain(await client.call_tool("math_calc", {"operation": "power", "a": 1, "b": 2}))
    expect("a refusal that names the option", refused.get("isError") and "operation" in text_of(refused), refused)

    progress = await work(client, logs)
    booked = plain(await client.call_tool("book", {}))
    expect("the answer of the person", text_of(booked) == "Booked for Ada.", booked)
    await prompt(client)
    await outlast(client)
    change = client.call_tool("notes_add", {"text": "another"})
    update = await updated(NOTES, change)
    expect("an update", update == NOTES, update)
    cannot = [] if await cancel(client, logs) else ["cancel"]

    return {
        "client": f"python mcp {version('mcp')}",
        "revision": revision,
        "tools": tools,
        "greet": text_of(greet),
        "notes": len(state["notes"]),
        "error": text_of(failed),
        "refusal": text_of(refused),
        "progress": progress,
        "logs": logs.seen,
        "cannot": cannot,
    }


async def work(client, logs):
    """Calls with progress and logs, and returns the progress."""
    progress = Arrivals()

    async def report(done, total, message):
        progress.add([done, total, message])

    worked = plain(await client.call_tool("work", {}, progress_callback=report))
    expect("work", text_of(worked) == "Worked.", worked)
    await progress.first(lambda report: report[2] == "done")
    expect("all progress", progress.seen == [[1, 2, "begun"], [2, 2, "done"]], progress.seen)
    await logs.first(lambda log: log == ["warning", "it takes two steps"])
    return progress.seen


async def outlast(client):
    """Has a tool run for longer than any request may take."""

    async def call(tool, arguments):
        return text_of(plain(await asyncio.wait_for(client.call_tool(tool, arguments), LIMIT)))

    run = {"run": json.loads(await call("runs_start", {"tool": "slow"}))["run"]}
    while (status := json.loads(await call("runs_status", run))["status"]) == "working":
        await asyncio.sleep(0.2)
    expect("the end of the run", status == "completed", status)
    output = await call("runs_output", run)
    expect("the output of the run", output == "Took its time.", output)


async def prompt(client):
    """Lists a prompt, completes its argument and gets it."""
    prompts = [prompt["name"] for prompt in plain(await client.list_prompts())["prompts"]]
    expect("the prompt", prompts == ["review"], prompts)
    ref = types.PromptReference(type="ref/prompt", name="review")
    completion = plain(await client.complete(ref, {"name": "tone", "value": "f"}))["completion"]["values"]
    expect("the completion", completion == ["friendly", "formal"], completion)
    messages = plain(await client.get_prompt("review", {"tone": "formal"}))["messages"]
    expect("the prompt", messages[0]["content"]["text"] == "Write a formal review.", messages)


async def cancel(client, logs):
    """Whether a call that is cancelled takes its script along."""
    call = asyncio.create_task(client.call_tool("linger", {}))
    _, process = await logs.first(lambda log: log[1].isdecimal())
    call.cancel()
    await asyncio.wait([call])
    for _ in range(GRACE * 20):
        try:
            os.kill(int(process), 0)
        except ProcessLookupError:
            return True
        await asyncio.sleep(0.05)
    # The script survived the cancellation and would outlive the test.
    os.kill(int(process), signal.SIGKILL)
    return False


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
