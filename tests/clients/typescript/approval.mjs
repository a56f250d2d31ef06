// A client on the 2.x line of the official TypeScript SDK whose person approves some calls: calls
// `wipe` once for each answer and prints what came back as one JSON line, by answer.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { CAPABILITIES, main, reach } from "./session.mjs";

const ANSWERS = ["accept", "decline", "cancel", "late"];

await main(async (revision, transport, target) => {
  const mode = revision === "2026-07-28" ? "auto" : "legacy";
  const options = { capabilities: CAPABILITIES, versionNegotiation: { mode } };
  const client = new Client({ name: "approval", version: "1" }, options);
  client.setRequestHandler("elicitation/create", async ({ params }) => {
    // The argument in the question says how to answer.
    const how = ANSWERS.find((answer) => params.message.includes(`"${answer}"`));
    if (how === "late") await new Promise((resolve) => setTimeout(resolve, 2_500));
    return how === "accept" || how === "late" ? { action: "accept", content: {} } : { action: how };
  });
  await client.connect(reach({ StdioClientTransport, StreamableHTTPClientTransport }, transport, target));
  try {
    const results = {};
    for (const how of ANSWERS) {
      const result = await client.callTool({ name: "wipe", arguments: { how } });
      results[how] = [result.isError ?? false, result.content[0].text];
    }
    return { results };
  } finally {
    await client.close();
  }
});
