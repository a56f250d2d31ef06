// A client on the 2.x line of the official TypeScript SDK, which speaks every revision.

import { Client, LOG_LEVEL_META_KEY, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { expect, Logs, main, reach, see } from "./session.mjs";

const NAME = "@modelcontextprotocol/client";
const STATELESS = "2026-07-28";

await main(async (revision, transport, target) => {
  const logs = new Logs();
  const stateless = revision === STATELESS;
  // "auto" asks with `server/discover` and takes the newest revision; "legacy" initializes.
  const mode = stateless ? "auto" : "legacy";
  const client = new Client({ name: NAME, version: "2" }, { versionNegotiation: { mode } });
  client.setNotificationHandler("notifications/message", ({ params }) => logs.add(params));

  await client.connect(reach({ StdioClientTransport, StreamableHTTPClientTransport }, transport, target));
  try {
    const negotiated = client.getNegotiatedProtocolVersion();
    expect("the revision", negotiated === revision, negotiated);
    if (!stateless) await client.setLoggingLevel("debug");
    // A stateless request asks for its own logs.
    const meta = stateless ? { [LOG_LEVEL_META_KEY]: "debug" } : undefined;
    return { client: NAME, revision, ...(await see(client, logs, meta)) };
  } finally {
    await client.close();
  }
});
