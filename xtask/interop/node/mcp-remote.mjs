// mcp-remote between the official SDK over stdio and the server over HTTP.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { officialClient } from "./harness-official.mjs";
import { run } from "./harness.mjs";

await run(({ url, token }) => {
  const args = [url, "--header", `Authorization:Bearer ${token}`];
  const target = { transport: "stdio", command: "node_modules/.bin/mcp-remote", args };
  return officialClient({ Client, StdioClientTransport }, target, [undefined]);
});
