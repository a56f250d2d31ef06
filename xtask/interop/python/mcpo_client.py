"""mcpo: tools as an OpenAPI service, which is called without an MCP client."""

import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import gateway
import harness
import httpx

MCPO = str(Path(sys.executable).parent / "mcpo")


class Client:
    def __init__(self, http):
        self.http = http

    async def tools(self):
        paths = (await self.http.get("/openapi.json")).json()["paths"]
        return [path.removeprefix("/") for path in paths]

    async def call(self, name, arguments):
        return (await self.http.post(f"/{name}", json=arguments)).text

    async def structured(self, name, arguments):
        return json.loads(await self.call(name, arguments))


@asynccontextmanager
async def connect(target):
    port = gateway.free_port()
    command = [MCPO, "--host", "127.0.0.1", "--port", str(port)]
    if target.transport == "stdio":
        command += ["--", target.command, *target.args]
    else:
        headers = json.dumps(target.headers)
        command += ["--type", "streamable-http", "--header", headers, "--", target.url]
    async with gateway.running(command, port):
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
            yield Client(http)


harness.run(connect)
