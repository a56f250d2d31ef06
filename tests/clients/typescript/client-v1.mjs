// A client on the 1.x line of the official TypeScript SDK, which speaks the stateful revisions.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CallToolResultSchema,
  ElicitRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { answer, Arrivals, CAPABILITIES, expect, main, reach, see } from "./session.mjs";

const NAME = "@modelcontextprotocol/sdk";

await main(async (revision, transport, target) => {
  const logs = new Arrivals();
  const updates = new Arrivals();
  const client = new Client({ name: NAME, version: "1" }, { capabilities: CAPABILITIES });
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => logs.add([params.level, params.data]));
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => updates.add(params.uri));
  client.setRequestHandler(ElicitRequestSchema, answer);

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
    const subscribe = (uri) => client.subscribeResource({ uri });
    return { client: NAME, revision, ...(await see(client, { logs, updates, subscribe, schemas: [CallToolResultSchema] })) };
  } finally {
    await client.close();
  }
});
