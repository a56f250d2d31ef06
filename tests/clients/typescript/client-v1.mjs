// A client on the 1.x line of the official TypeScript SDK, which speaks the stateful revisions.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { LoggingMessageNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { expect, Logs, main, reach, see } from "./session.mjs";

const NAME = "@modelcontextprotocol/sdk";

await main(async (revision, transport, target) => {
  const logs = new Logs();
  const client = new Client({ name: NAME, version: "1" });
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => logs.add(params));

  // The transport is told the negotiated revision once the server has agreed.
  let negotiated;
  const reached = reach({ StdioClientTransport, StreamableHTTPClientTransport }, transport, target);
  const tell = reached.setProtocolVersion?.bind(reached);
  reached.setProtocolVersion = (version) => {
    negotiated = version;
    tell?.(version);
  };
  await client.connect(reached);
  try {
    expect("the revision", negotiated === revision, negotiated);
    await client.setLoggingLevel("debug");
    return { client: NAME, revision, ...(await see(client, logs)) };
  } finally {
    await client.close();
  }
});
