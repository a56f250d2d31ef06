// The AI SDK of Vercel: tools as its models call them.

import { experimental_createMCPClient as createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as StdioTransport } from "@ai-sdk/mcp/mcp-stdio";
import { run } from "./harness.mjs";

await run(async (target) => {
  const transport =
    target.transport === "stdio"
      ? new StdioTransport({ command: target.command, args: target.args })
      : { type: "http", url: target.url, headers: target.headers };
  const client = await createMCPClient({ transport });
  const tools = await client.tools();
  const call = (name, args, abortSignal) => tools[name].execute(args, { toolCallId: "1", messages: [], abortSignal });
  return {
    tools: async () => Object.keys(tools),
    call,
    structured: async (name, args) => (await call(name, args)).structuredContent,
    prompt: (name, args) => client.experimental_getPrompt({ name, arguments: args }),
    resource: (uri) => client.readResource({ uri }),
    cancellable: call,
    close: () => client.close(),
  };
});
