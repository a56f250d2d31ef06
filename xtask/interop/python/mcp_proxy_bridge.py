"""mcp-proxy between the official SDK over stdio and the server over HTTP."""

import sys
from pathlib import Path

import harness
import official


def connect(target):
    bridge = Path(sys.executable).parent / "mcp-proxy"
    target.transport, target.command = "stdio", str(bridge)
    headers = [part for header in target.headers.items() for part in ("--headers", *header)]
    target.args = ["--transport", "streamablehttp", *headers, target.url]
    return official.connect(target)


harness.run(connect)
