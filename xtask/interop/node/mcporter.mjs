// mcporter: each action is a command.

import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { promisify } from "node:util";
import { run } from "./harness.mjs";

await run(async (target) => {
  const server =
    target.transport === "stdio"
      ? { command: target.command, args: target.args }
      : { baseUrl: target.url, headers: target.headers };
  writeFileSync("mcporter.json", JSON.stringify({ mcpServers: { mcpd: server }, imports: [] }));
  const mcporter = async (...args) => {
    const run = promisify(execFile)("node_modules/.bin/mcporter", ["--config", "mcporter.json", ...args]);
    const { stdout } = await run.catch((error) => ({ stdout: `${error.stdout}${error.stderr}` }));
    return stdout;
  };
  return {
    tools: async () => JSON.parse(await mcporter("list", "mcpd", "--json")).tools.map((tool) => tool.name),
    call: (name, args) => mcporter("call", `mcpd.${name}`, "--args", JSON.stringify(args), "--output", "json"),
    resource: (uri) => mcporter("resource", "mcpd", uri),
    close: async () => {},
  };
});
