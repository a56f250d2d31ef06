// What every TypeScript client does once it is connected, and what it prints.
//
// The server serves `examples/scripts`.
// Anything unexpected ends the program with a message and exit code 1;
// otherwise one JSON line on stdout tells what the client saw.

import { randomUUID } from "node:crypto";
import { basename } from "node:path";
import { isDeepStrictEqual } from "node:util";

const HOSTILE_NAME = "O'Brien \"x\" $(id) \\ `id` \u00e9\u2028 \n";
const MISSING_FILE = "/nonexistent/file";
const DEADLINE_MS = 60_000; // for everything

export function expect(what, condition, got) {
  if (!condition) throw new Error(`${what}: got ${JSON.stringify(got)}`);
}

/** The text of a tool result, which must be its only content. */
function textOf(result) {
  const types = result.content.map((content) => content.type);
  expect("one text content", isDeepStrictEqual(types, ["text"]), result);
  return result.content[0].text;
}

/** Log messages as they arrive, which is not always before the result. */
export class Logs {
  seen = [];
  #waiting = () => {};

  add({ level, data }) {
    this.seen.push([level, data]);
    this.#waiting();
  }

  async waitFor(level) {
    while (this.seen.every(([seen]) => seen !== level)) {
      await new Promise((resolve) => (this.#waiting = resolve));
    }
  }
}

/** Lists, calls, reads state, and returns what was seen. `meta` goes with every call. */
export async function see(client, logs, meta) {
  const call = (name, args) => client.callTool({ name, arguments: args, _meta: meta });

  const tools = (await client.listTools()).tools.map((tool) => tool.name);
  for (const name of ["greet", "math_calc", "notes_add"]) {
    expect("names every client accepts", tools.includes(name), tools);
  }

  const greet = await call("greet", { name: HOSTILE_NAME });
  expect("greet", textOf(greet) === `Hello, ${HOSTILE_NAME}!`, greet);

  const note = `note ${randomUUID()}`;
  const added = await call("notes_add", { text: note });
  expect("a success", !added.isError, added);
  const read = await client.readResource({ uri: "mcpd://notes/add/state" });
  const { notes } = JSON.parse(read.contents[0].text);
  expect("the note in the state", notes.some((kept) => kept.text === note), read);

  const failed = await call("files_read", { path: MISSING_FILE });
  expect("an error result", failed.isError === true, failed);
  expect("exit code 4", failed._meta?.["mcpd/exit"]?.code === 4, failed);
  await logs.waitFor("error");

  const refused = await call("math_calc", { operation: "power", a: 1, b: 2 });
  expect("a refusal that names the option", refused.isError && textOf(refused).includes("operation"), refused);

  return {
    tools,
    greet: textOf(greet),
    notes: notes.length,
    error: textOf(failed),
    refusal: textOf(refused),
    logs: logs.seen,
  };
}

/** A transport of the SDK at hand to the target, which is a command or [url, token]. */
export function reach({ StdioClientTransport, StreamableHTTPClientTransport }, transport, target) {
  if (transport === "stdio") {
    const [command, ...args] = target;
    // The SDKs pass only a few variables on unless told otherwise.
    return new StdioClientTransport({ command, args, env: process.env });
  }
  const [url, token] = target;
  return new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { Authorization: `Bearer ${token}` } },
  });
}

/** Runs `session(revision, transport, target)` with the arguments of the command line. */
export async function main(session) {
  const [program, revision, transport, ...target] = process.argv.slice(1);
  if (target.length < 2 || !["stdio", "http"].includes(transport)) {
    console.error(`usage: ${program} REVISION stdio COMMAND ARG…\n       ${program} REVISION http URL TOKEN`);
    process.exit(1);
  }
  const fail = (reason) => {
    console.error(`${basename(program)} ${revision} ${transport}: ${reason}`);
    process.exit(1);
  };
  const deadline = setTimeout(() => fail("the deadline has passed"), DEADLINE_MS);
  try {
    console.log(JSON.stringify(await session(revision, transport, target)));
  } catch (error) {
    fail(error.message);
  }
  clearTimeout(deadline);
}
