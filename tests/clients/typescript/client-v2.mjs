// A client on the 2.x line of the official TypeScript SDK, which speaks every revision.

import { Client, LOG_LEVEL_META_KEY, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { answer, Arrivals, CAPABILITIES, expect, main, reach, see } from "./session.mjs";

const NAME = "@modelcontextprotocol/client";
const STATELESS = "2026-07-28";

await main(async (revision, transport, target) => {
  const logs = new Arrivals();
  const updates = new Arrivals();
  const stateless = revision === STATELESS;
  // "auto" asks with `server/discover` and takes the newest revision; "legacy" initializes.
  const mode = stateless ? "auto" : "legacy";
  const options = { capabilities: CAPABILITIES, versionNegotiation: { mode } };
  const client = new Client({ name: NAME, version: "2" }, options);
  client.setNotificationHandler("notifications/message", ({ params }) => logs.add([params.level, params.data]));
  client.setNotificationHandler("notifications/resources/updated", ({ params }) => updates.add(params.uri));
  client.setRequestHandler("elicitation/create", answer);

  await client.connect(reach({ StdioClientTransport, StreamableHTTPClientTransport }, transport, target));
  try {
    const negotiated = client.getNegotiatedProtocolVersion();
    expect("the revision", negotiated === revision, negotiated);
    if (!stateless) await client.setLoggingLevel("debug");
    // A stateless request asks for its own logs.
    const meta = stateless ? { [LOG_LEVEL_META_KEY]: "debug" } : undefined;
    const subscribe = (uri) =>
      stateless ? client.listen({ resourceSubscriptions: [uri] }) : client.subscribeResource({ uri });
    return { client: NAME, revision, ...(await see(client, { logs, updates, subscribe, meta })) };
  } finally {
    await client.close();
  }
});
