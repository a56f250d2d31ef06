// A client on the 2.x line of the official TypeScript SDK whose person approves some calls: calls
// `wipe` for each answer in each way (as a tool, by `call_tool` of a search, and as a run in the
// background) and prints what came back as one JSON line, by way and answer.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { CAPABILITIES, main, reach } from "./session.mjs";

const ANSWERS = ["accept", "decline", "cancel", "late", "never"];
const PATIENCE_MS = 3_000; // for a call whose question has no answer

const sleep = (time) => new Promise((resolve) => setTimeout(resolve, time));

/** Answers as the argument in the question says. */
async function answer({ params }) {
  const how = ANSWERS.find((answer) => params.message.includes(`"${answer}"`));
  if (how === "never") await new Promise(() => {});
  if (how === "late") await sleep(2_500);
  return how === "accept" || how === "late" ? { action: "accept", content: {} } : { action: how };
}

/** The tool to call, and its arguments. */
function request(way, how) {
  const args = { way, how };
  return {
    call: { name: "wipe", arguments: args },
    search: { name: "call_tool", arguments: { name: "wipe", arguments: args } },
    run: { name: "runs_start", arguments: { tool: "wipe", arguments: args } },
  }[way];
}

/** The result of the tool, which a run has later: whether it is an error, and its text. */
async function resultOf(client, way, how) {
  const call = async (params) => {
    const result = await client.callTool(params);
    return [result.isError ?? false, result.content[0].text];
  };
  const patience = sleep(PATIENCE_MS).then(() => [true, "the client gave up"]);
  const result = await Promise.race([call(request(way, how)), patience]);
  if (way !== "run" || result[0]) return result;
  const run = { run: JSON.parse(result[1]).run };
  const status = async () => JSON.parse((await call({ name: "runs_status", arguments: run }))[1]).status;
  while ((await status()) === "working") await sleep(100);
  return call({ name: "runs_output", arguments: run });
}

await main(async (revision, transport, target) => {
  const mode = revision === "2026-07-28" ? "auto" : "legacy";
  const options = { capabilities: CAPABILITIES, versionNegotiation: { mode } };
  const client = new Client({ name: "approval", version: "1" }, options);
  client.setRequestHandler("elicitation/create", answer);
  await client.connect(reach({ StdioClientTransport, StreamableHTTPClientTransport }, transport, target));
  try {
    const results = {};
    for (const way of ["call", "search", "run"]) {
      results[way] = {};
      for (const how of ANSWERS) results[way][how] = await resultOf(client, way, how);
    }
    return { results };
  } finally {
    await client.close();
  }
});
