// Mastra: tools as its agents call them.

import { MCPClient } from "@mastra/mcp";
import { run } from "./harness.mjs";

await run(async (target) => {
  const server =
    target.transport === "stdio"
      ? { command: target.command, args: target.args }
      : { url: new URL(target.url), requestInit: { headers: target.headers } };
  const client = new MCPClient({ servers: { mcpd: server } });
  const tools = await client.listTools();
  const call = (name, args, abortSignal) => tools[`mcpd_${name}`].execute(args, { abortSignal });
  return {
    tools: async () => Object.keys(tools).map((name) => name.replace("mcpd_", "")),
    call,
    prompt: (name, args) => client.prompts.get({ serverName: "mcpd", name, args }),
    resource: (uri) => client.resources.read("mcpd", uri),
    cancellable: call,
    close: () => client.disconnect(),
  };
});
