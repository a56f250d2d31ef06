"""What every Python driver has its framework do, and what it prints.

A driver is run as `DRIVER stdio COMMAND ARG…` or `DRIVER http URL TOKEN`. It gives `run` a context manager that connects
and yields a client: an object with the methods `tools` and `call`, and as many of `structured`, `progress`, `prompt`,
`resource` and `image` as the framework has means for. One JSON line on stdout tells of each action how it went; an action
without a line is one that the framework has no means for.
"""

import asyncio
import importlib.metadata
import inspect
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

ACTION_TIMEOUT = 30
END_TIMEOUT = 5
TOOLS = {"count", "fail", "greet", "linger", "order", "picture", "weather"}
ORDER = {
    "customer": {"name": "Ada"},
    "items": [{"article": "pen", "count": 2}, {"article": "ink", "count": 1}],
    "tags": ["gift"],
}


class Target:
    """Where the server is."""

    def __init__(self, arguments):
        self.transport, *rest = arguments
        if self.transport == "stdio":
            self.command, *self.args = rest
        else:
            self.url, token = rest
            self.headers = {"Authorization": f"Bearer {token}"}


class Absent(Exception):
    """The framework has no means for an action."""


def words(error):
    """Everything that an exception says, those in a group and its causes included."""
    said = [f"{type(error).__name__}: {error}"]
    said += [words(part) for part in getattr(error, "exceptions", [])]
    if error.__cause__:
        said.append(words(error.__cause__))
    return "; ".join(said)


def expect(needle, seen):
    text = seen if isinstance(seen, str) else str(seen)
    if needle not in text:
        raise AssertionError(f"no `{needle}` in {text[:300]}")


def structured_content(result):
    """The structured content of a result of the official SDK, whose two lines name it differently."""
    if hasattr(result, "structured_content"):
        return result.structured_content
    return result.structuredContent


def report(action, error=None):
    line = {"action": action, "ok": error is None}
    if error is not None:
        line["error"] = words(error)[:600]
    print(json.dumps(line), flush=True)


async def invoke(function, *arguments):
    if inspect.iscoroutinefunction(function):
        return await function(*arguments)
    return await asyncio.to_thread(function, *arguments)


class Actions:
    """The actions, in the order in which they are tried."""

    def __init__(self, client):
        self.client = client

    async def use(self, method, *arguments):
        function = getattr(self.client, method, None)
        if function is None:
            raise Absent(method)
        return await invoke(function, *arguments)

    async def words_of(self, name, arguments):
        """What a call that fails says, as its result or as an exception."""
        try:
            return str(await self.use("call", name, arguments))
        except Absent:
            raise
        except Exception as error:
            return words(error)

    async def list(self):
        names = set(await self.use("tools"))
        if not TOOLS <= names:
            raise AssertionError(f"the tools are {sorted(names)}")

    async def call(self):
        expect("Hello, Ada O'Brien!", await self.use("call", "greet", {"name": "Ada O'Brien"}))

    async def wrong_arguments(self):
        said = await self.words_of("greet", {"name": {"first": "Ada"}})
        expect("name", said)
        expect("string", said)

    async def failing_script(self):
        expect("there is no paper left", await self.words_of("fail", {}))

    async def nested_schema(self):
        expect("Ada: 2 pen, 1 ink, ['gift']", await self.use("call", "order", ORDER))

    async def structured_result(self):
        if hasattr(self.client, "structured"):
            seen = await self.use("structured", "weather", {})
            if seen != {"celsius": 21.5}:
                raise AssertionError(f"the result is {seen}")
        else:
            expect("21.5", await self.use("call", "weather", {}))

    async def image(self):
        method = "image" if hasattr(self.client, "image") else "call"
        seen = str(await self.use(method, "picture", {}))
        if not any(sign in seen for sign in ("iVBORw0K", "image/png", "PngImageFile", r"\x89PNG")):
            raise AssertionError(f"no image in {seen[:300]}")

    async def progress(self):
        seen = list(await self.use("progress", "count", {}))
        if len(seen) < 2:
            raise AssertionError(f"the progress is {seen}")

    async def prompt(self):
        expect("Write a formal review.", await self.use("prompt", "review", {"tone": "formal"}))

    async def resource(self):
        expect("from nine to five", await self.use("resource", "mcpd://resources/hours.md"))

    async def cancel(self):
        if not inspect.iscoroutinefunction(self.client.call):
            raise Absent("cancel")
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "number"
            # Scripts of a server that is another user's write there as well.
            os.chmod(directory, 0o777)
            call = asyncio.ensure_future(self.client.call("linger", {"file": str(file)}))
            number = await self.number_in(file, call)
            call.cancel()
            await asyncio.wait([call], timeout=END_TIMEOUT)
            try:
                await self.end_of(number)
            finally:
                # A script that had to be killed is answered; clients of the 1.x line take that amiss while they close.
                await asyncio.sleep(0.5)

    async def number_in(self, file, call):
        while not call.done():
            if file.exists() and (text := file.read_text().strip()):
                return int(text)
            await asyncio.sleep(0.02)
        raise AssertionError(f"the call has ended: {call}")

    async def end_of(self, number):
        end = time.monotonic() + END_TIMEOUT
        while time.monotonic() < end:
            try:
                os.kill(number, 0)
            except ProcessLookupError:
                return
            await asyncio.sleep(0.05)
        os.kill(number, signal.SIGKILL)
        # Whether the official SDK below the framework can be the cause depends on its line.
        sdk = importlib.metadata.version("mcp")
        raise AssertionError(f"the script runs on (Python SDK {sdk})")


ACTIONS = [
    "list", "call", "wrong_arguments", "failing_script", "nested_schema", "structured_result",
    "image", "progress", "prompt", "resource", "cancel",
]


async def attempt(action, work):
    try:
        await asyncio.wait_for(work, ACTION_TIMEOUT)
        report(action)
    except Absent:
        pass
    except Exception as error:
        report(action, error)


def children():
    """The processes below this one that have not ended."""
    found, waiting = [], [os.getpid()]
    while waiting:
        parent = waiting.pop()
        for listed in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                numbers = [int(number) for number in listed.read_text().split()]
            except OSError:
                continue
            for number in numbers:
                waiting.append(number)
                try:
                    state = Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0]
                except OSError:
                    continue
                if state != "Z":
                    found.append(number)
    return found


async def until_closed(connection):
    await connection.__aexit__(None, None, None)
    end = time.monotonic() + END_TIMEOUT
    while children():
        if time.monotonic() > end:
            raise AssertionError("the server runs on")
        await asyncio.sleep(0.05)


async def drive(connect, target):
    connection = connect(target)
    try:
        # Not within a time-out of its own task: some frameworks end where they began.
        client = await connection.__aenter__()
    except BaseException as error:
        report("connect", error)
        return
    actions = Actions(client)
    for action in ACTIONS:
        await attempt(action, getattr(actions, action)())
    try:
        await until_closed(connection)
        report("close")
    except BaseException as error:
        report("close", error)


def run(connect):
    """Connects by `connect(target)`, an asynchronous context manager, and tries everything."""

    def give_up(*_):
        report("end", TimeoutError("the driver has not ended in time"))
        os._exit(1)

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(240)
    asyncio.run(drive(connect, Target(sys.argv[1:])))
    sys.stdout.flush()
    # Whatever threads a framework has left.
    os._exit(0)
