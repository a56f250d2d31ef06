"""A client of the official Python SDK that logs in: it finds the issuer of a server by itself, gets a token by the code
flow with PKCE, and another one when a call takes more than that is good for.

Run with the URL of a server, and `auto` for the newest revision or `legacy` for the one before; prints one JSON line of
what it saw.
"""

import asyncio
import json
import sys
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

DEADLINE = 60  # seconds, for everything
CALLBACK = "http://localhost:1/callback"


class Storage:
    """Tokens and the registration, as long as this runs."""

    tokens = None
    client_info = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client_info

    async def set_client_info(self, client_info):
        self.client_info = client_info


class Browser:
    """A person who agrees to everything, and where that leads."""

    def __init__(self):
        self.asked = []

    async def open(self, url):
        self.asked.append(parse_qs(urlsplit(url).query)["scope"][0])
        async with httpx2.AsyncClient() as http:
            response = await http.get(url)
        self._answer = parse_qs(urlsplit(response.headers["location"]).query)

    async def answer(self):
        return AuthorizationCodeResult(**{name: self._answer[name][0] for name in ("code", "state", "iss")})


async def session(url, mode):
    browser = Browser()
    metadata = OAuthClientMetadata(client_name="login", redirect_uris=[CALLBACK])
    auth = OAuthClientProvider(url, metadata, Storage(), browser.open, browser.answer)
    async with httpx2.AsyncClient(auth=auth, timeout=DEADLINE) as http:
        async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
            before = [tool.name for tool in (await client.list_tools()).tools]
            result = await client.call_tool("deploy", {})
            after = [tool.name for tool in (await client.list_tools()).tools]
            revision = client.protocol_version
    seen = {"before": before, "called": result.content[0].text, "after": after, "asked": browser.asked}
    return {"revision": revision, **seen}


async def main():
    url, mode = sys.argv[1:]
    seen = await asyncio.wait_for(session(url, mode), DEADLINE)
    print(json.dumps(seen))


asyncio.run(main())
