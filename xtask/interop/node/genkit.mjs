// Genkit: tools, prompts and resources as its models use them.

import { createMcpClient } from "@genkit-ai/mcp";
import { genkit } from "genkit";
import { run } from "./harness.mjs";

await run(async (target) => {
  const server =
    target.transport === "stdio"
      ? { command: target.command, args: target.args }
      : { url: target.url, requestInit: { headers: target.headers } };
  const ai = genkit({});
  const client = createMcpClient({ name: "mcpd", serverName: "mcpd", mcpServer: server });
  await client.ready();
  const named = new Map();
  for (const tool of await client.getActiveTools(ai)) named.set(tool.__action.name.replace("mcpd/", ""), tool);
  const call = async (name, args, abortSignal) => (await named.get(name).run(args, { abortSignal })).result;
  return {
    tools: async () => [...named.keys()],
    call,
    structured: call,
    prompt: async (name, args) => (await client.getPrompt(ai, name)).render(args),
    resource: async (uri) => {
      const resources = await client.getActiveResources(ai);
      return resources.find((resource) => resource.matches({ uri })).run({ uri });
    },
    cancellable: call,
    close: () => client.disable(),
  };
});
