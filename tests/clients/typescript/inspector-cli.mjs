// The Inspector's `--cli` mode: every request is a process with a connection of its own.

import { configure, ERAS, run, SERVER, workplace } from "./inspector.mjs";
import { expect, main, MISSING_FILE, NOTES, textOf } from "./session.mjs";

const NAME = "@modelcontextprotocol/inspector --cli";
const TOOL_ERROR = 5; // the exit code

await main(async (revision, transport, target) => {
  const config = configure(workplace(), transport, target);
  const common = ["--cli", ...config, "--server", SERVER, "--protocol-era", ERAS[revision], "--format", "json"];
  const ask = async (method, ...options) => {
    const { output, ...rest } = await run("mcp-inspector", [...common, "--method", method, ...options]);
    return { ...output, ...rest };
  };
  const call = (tool, ...options) => ask("tools/call", "--tool-name", tool, ...options);

  const initialized = await ask("initialize");
  expect("the revision", initialized.result?.protocolVersion === revision, initialized);
  const names = await tools(ask, call);
  await resources(ask);
  await prompts(ask);
  return { client: NAME, revision, tools: names, cannot: await cannot(ask, call) };
});

/** Lists the tools, calls one and has one fail. */
async function tools(ask, call) {
  // It warns about no schema.
  const listed = await ask("tools/list", "--strict");
  expect("portable schemas", listed.code === 0, listed);
  // The operands become numbers on their way.
  const sum = await call("math_calc", "--tool-arg", "operation=add", "a=1", "b=2");
  expect("the sum", JSON.parse(textOf(sum.result)).result === 3, sum);
  const failed = await call("files_read", "--tool-args-json", JSON.stringify({ path: MISSING_FILE }));
  expect("an error result", failed.code === TOOL_ERROR && failed.result.isError, failed);
  expect("exit code 4", failed.result._meta["mcpd/exit"].code === 4, failed);
  return listed.result.tools.map((tool) => tool.name);
}

async function resources(ask) {
  const { result: listed } = await ask("resources/list");
  expect("the state", listed.resources.some(({ uri }) => uri === NOTES), listed);
  const { result: read } = await ask("resources/read", "--uri", NOTES);
  expect("notes", Array.isArray(JSON.parse(read.contents[0].text).notes), read);
}

async function prompts(ask) {
  const { result: listed } = await ask("prompts/list");
  expect("the prompt", listed.prompts.some(({ name }) => name === "review"), listed);
  const { result: got } = await ask("prompts/get", "--prompt-name", "review", "--prompt-args", "tone=formal");
  expect("its text", got.messages[0].content.text === "Write a formal review.", got);
}

/** What the mode has no means for. */
async function cannot(ask, call) {
  const worked = await call("work");
  expect("work", textOf(worked.result) === "Worked.", worked);
  const shows = (text) => JSON.stringify(worked).includes(text);
  const booked = await call("book");
  // The error names every method of the command.
  const { words: methods } = await ask("ping");
  const abilities = {
    progress: shows("begun"),
    logs: shows("it takes two steps"),
    elicitation: booked.code === 0,
    updates: methods.includes("resources/subscribe"),
    completion: methods.includes("complete"),
    cancel: methods.includes("cancel"),
  };
  return Object.keys(abilities).filter((ability) => !abilities[ability]);
}
