// The Inspector's `mcpdo`: every command is a process, and one in the background keeps the connection.

import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { commandLine, configure, ERAS, follow, run, SERVER, workplace } from "./inspector.mjs";
import { answer, Arrivals, expect, main, see } from "./session.mjs";

const NAME = "@modelcontextprotocol/inspector mcpdo";
const COMMON = ["--format", "json", "--connection", SERVER];

/** What the SDKs offer, as commands. */
const client = {
  listTools: () => ask(["tools/list"]),
  listPrompts: () => ask(["prompts/list"]),
  readResource: ({ uri }) => ask(["resources/read", uri]),
  getPrompt: ({ name, arguments: args }) => ask(["prompts/get", name, "--prompt-args", ...pairs(args)]),

  async complete({ ref, argument: { name, value } }) {
    const reference = ["--complete-ref-type", ref.type, "--complete-ref", ref.name];
    const argument = ["--complete-arg-name", name, "--complete-arg-value", value];
    return { completion: await ask(["prompts/complete", ...reference, ...argument]) };
  },

  async callTool({ name, arguments: args }, options) {
    const { output: result, words } = await run("mcpdo", [...COMMON, "tools/call", name, JSON.stringify(args)], {
      signal: options?.signal,
    });
    // A failure means that this client shows progress now.
    expect("no word of progress", !words.includes("begun"), words);
    const question = result.elicitationPending;
    if (!question) return result;
    return ask(["elicitation/respond", question.elicitationId, ...pairs(answer({ params: question }).content, ":=")]);
  },
};

await main(async (revision, transport, target) => {
  const directory = workplace();
  // The background process belongs to this program alone, and ends with it.
  process.env.MCP_INSPECTOR_DAEMON_DIR = join(directory, "daemon");
  process.env.MCP_INSPECTOR_DAEMON_TOKEN = randomUUID();
  process.prependListener("exit", () => spawnSync(...commandLine("mcpdo", ["daemon", "stop"])));

  await ask([...configure(directory, transport, target), "connect", SERVER, "--era", ERAS[revision]]);
  const { protocolVersion } = await ask(["connections/show"]);
  expect("the revision", protocolVersion === revision, protocolVersion);
  const [logs, updates] = [new Arrivals(), new Arrivals()];
  await tail(logs);
  const seen = await see(client, { logs, updates, subscribe: (uri) => subscribe(uri, updates), silent: true });
  return { client: NAME, revision, ...seen };
});

/** Runs a command, and returns its result. */
async function ask(command) {
  const { code, output, words } = await run("mcpdo", [...COMMON, ...command]);
  expect(command.join(" "), code === 0, words);
  return output;
}

function pairs(object, separator = "=") {
  return Object.entries(object).map(([key, value]) => key + separator + value);
}

/** Begins to collect logs. It does not say when it has begun, so there are some until it has. */
async function tail(logs) {
  follow("mcpdo", [...COMMON, "logging/tail"], ({ message: { params } }) => logs.add([params.level, params.data]));
  do {
    await client.callTool({ name: "work", arguments: {} });
  } while (logs.seen.length === 0);
}

/** Begins to collect updates of a resource. */
async function subscribe(uri, updates) {
  await new Promise((resolve) => {
    follow("mcpdo", [...COMMON, "resources/subscribe", uri], ({ type, uri }) => {
      if (type === "subscribed") resolve();
      else updates.add(uri);
    });
  });
}
