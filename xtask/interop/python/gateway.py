"""Starts and ends gateways that listen on a port of this host, for the drivers that have one."""

import asyncio
import socket
from contextlib import asynccontextmanager

import harness

START_TIMEOUT = 20


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


async def wait_for_listener(process, port):
    for _ in range(START_TIMEOUT * 20):
        if process.returncode is not None:
            raise AssertionError(f"the gateway ended at start with status {process.returncode}")
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
    raise AssertionError("the gateway does not listen")


@asynccontextmanager
async def running(command, port):
    """Runs a gateway until the context ends, then sends it SIGTERM and waits for its end."""
    process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL)
    try:
        await wait_for_listener(process, port)
        yield
    finally:
        if process.returncode is None:
            process.terminate()
            await asyncio.wait_for(process.wait(), harness.END_TIMEOUT)
