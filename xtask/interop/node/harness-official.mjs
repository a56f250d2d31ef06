// Client of the official SDK, on either line, for the drivers that use one.

export async function officialClient(sdk, target, schemas) {
  const client = new sdk.Client({ name: "interop", version: "1" }, { capabilities: {} });
  const transport =
    target.transport === "stdio"
      ? new sdk.StdioClientTransport({ command: target.command, args: target.args, stderr: "inherit" })
      : new sdk.StreamableHTTPClientTransport(new URL(target.url), { requestInit: { headers: target.headers } });
  await client.connect(transport);
  const call = (name, args, options) => client.callTool({ name, arguments: args }, ...schemas, options);
  return {
    tools: async () => (await client.listTools()).tools.map((tool) => tool.name),
    call,
    structured: async (name, args) => (await call(name, args)).structuredContent,
    progress: async (name, args) => {
      const seen = [];
      await call(name, args, { onprogress: (progress) => seen.push(progress) });
      return seen;
    },
    prompt: (name, args) => client.getPrompt({ name, arguments: args }),
    resource: (uri) => client.readResource({ uri }),
    cancellable: (name, args, signal) => call(name, args, { signal }),
    close: () => client.close(),
  };
}
