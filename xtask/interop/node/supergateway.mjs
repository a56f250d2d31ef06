// supergateway between the official SDK and the server: stdio in front of HTTP, and HTTP in front of stdio.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { officialClient } from "./harness-official.mjs";
import { run } from "./harness.mjs";

const SUPERGATEWAY = "node_modules/.bin/supergateway";
const START_TIMEOUT_MS = 20_000;
const sdk = { Client, StdioClientTransport, StreamableHTTPClientTransport };
const quote = (word) => `'${word.replaceAll("'", `'\\''`)}'`;

async function freePort() {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address();
  listener.close();
  await once(listener, "close");
  return port;
}

async function waitForHealth(url) {
  for (const end = Date.now() + START_TIMEOUT_MS; Date.now() < end; ) {
    const answer = await fetch(url).catch(() => undefined);
    if (answer?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("the gateway does not listen");
}

await run(async ({ transport, command, args, url, token }) => {
  if (transport === "http") {
    const options = ["--streamableHttp", url, "--oauth2Bearer", token, "--logLevel", "none"];
    return officialClient(sdk, { transport: "stdio", command: SUPERGATEWAY, args: options }, [undefined]);
  }
  const port = await freePort();
  const options = [
    ...["--stdio", [command, ...args].map(quote).join(" ")],
    ...["--outputTransport", "streamableHttp", "--stateful", "--port", `${port}`],
    ...["--healthEndpoint", "/health", "--logLevel", "none"],
  ];
  const gateway = spawn(SUPERGATEWAY, options, { stdio: ["ignore", "ignore", "inherit"] });
  await waitForHealth(`http://127.0.0.1:${port}/health`);
  const client = await officialClient(sdk, { transport: "http", url: `http://127.0.0.1:${port}/mcp` }, [undefined]);
  return {
    ...client,
    close: async () => {
      await client.close();
      gateway.kill("SIGTERM");
    },
  };
});
