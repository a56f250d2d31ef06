// Actions of every connected TypeScript client, and its output.
//
// The server serves `examples/scripts` and `tests/clients/scripts`.
// Anything unexpected ends the program with a message and exit code 1;
// otherwise one JSON line on stdout lists the client's observations.

import { randomUUID } from "node:crypto";
import { basename } from "node:path";
import { isDeepStrictEqual } from "node:util";

const HOSTILE_NAME = "O'Brien \"x\" $(id) \\ `id` \u00e9\u2028 \n";
export const MISSING_FILE = "/nonexistent/file";
export const NOTES = "mcpd://notes/add/state";
const DEADLINE_MS = 180_000; // for everything; some start a process for each request
const LIMIT_MS = 2_000; // for a request of an impatient client
const GRACE_MS = 5_000; // for a script to end whose call was cancelled

export function expect(what, condition, got) {
  if (!condition) throw new Error(`${what}: got ${JSON.stringify(got)}`);
}

/** The text of a tool result, which must be its only content beside the note on a failed run. */
export function textOf(result) {
  expect("text content", result.content.every((content) => content.type === "text"), result);
  const [printed, ...notes] = result.content.map((content) => content.text);
  const areNotes = notes.every((note) => note.startsWith("The script failed with exit code "));
  expect("one text content", areNotes, result);
  return printed;
}

/** What arrives outside of results, in order, and not always before the result that it belongs to. */
export class Arrivals {
  seen = [];
  #waiting = () => {};

  add(arrival) {
    this.seen.push(arrival);
    this.#waiting();
  }

  /** The first arrival that is wanted, as soon as it is there. */
  async first(wanted) {
    while (!this.seen.some(wanted)) {
      await new Promise((resolve) => (this.#waiting = resolve));
    }
    return this.seen.find(wanted);
  }
}

/** The capability that lets `answer` be asked. */
export const CAPABILITIES = { elicitation: {} };

/** Says who books, whatever the question. */
export function answer({ params }) {
  expect("the question", params.message === "Who books the table?", params);
  return { action: "accept", content: { name: "Ada" } };
}

/**
 * Does everything, and returns what was seen.
 *
 * `logs` are pairs of level and data, `updates` URIs; `subscribe(uri)` has the latter told.
 * `meta` goes with every call; `silent` says that the client tells nobody of progress.
 */
export async function see(client, { logs, updates, subscribe, meta, schemas = [], silent = false }) {
  const call = (name, args, options) =>
    client.callTool({ name, arguments: args, _meta: meta }, ...schemas, options);

  const tools = (await client.listTools()).tools.map((tool) => tool.name);
  for (const name of ["greet", "math_calc", "notes_add"]) {
    expect("names every client accepts", tools.includes(name), tools);
  }

  const greet = await call("greet", { name: HOSTILE_NAME });
  expect("greet", textOf(greet) === `Hello, ${HOSTILE_NAME}!`, greet);

  const note = `note ${randomUUID()}`;
  const added = await call("notes_add", { text: note });
  expect("a success", !added.isError, added);
  const read = await client.readResource({ uri: NOTES });
  const { notes } = JSON.parse(read.contents[0].text);
  expect("the note in the state", notes.some((kept) => kept.text === note), read);

  const failed = await call("files_read", { path: MISSING_FILE });
  expect("an error result", failed.isError === true, failed);
  expect("exit code 4", failed._meta?.["mcpd/exit"]?.code === 4, failed);
  await logs.first(([level]) => level === "error");

  const refused = await call("math_calc", { operation: "power", a: 1, b: 2 });
  expect("a refusal that names the option", refused.isError && textOf(refused).includes("operation"), refused);

  const progress = await work(call, logs, silent);
  const booked = await call("book", {});
  expect("the answer of the person", textOf(booked) === "Booked for Ada.", booked);
  await prompt(client);
  await outlast(call);

  await subscribe(NOTES);
  await call("notes_add", { text: "another" });
  await updates.first((uri) => uri === NOTES);

  return {
    tools,
    greet: textOf(greet),
    notes: notes.length,
    error: textOf(failed),
    refusal: textOf(refused),
    progress,
    logs: logs.seen,
    cannot: [...(silent ? ["progress"] : []), ...((await cancel(call, logs)) ? [] : ["cancel"])],
  };
}

/** Calls with progress and logs, and returns the progress; a silent client has none. */
async function work(call, logs, silent) {
  const progress = new Arrivals();
  const onprogress = ({ progress: done, total, message }) => progress.add([done, total, message]);
  const worked = await call("work", {}, { onprogress });
  expect("work", textOf(worked) === "Worked.", worked);
  if (!silent) await progress.first(([, , message]) => message === "done");
  const all = [
    [1, 2, "begun"],
    [2, 2, "done"],
  ];
  expect("all progress", isDeepStrictEqual(progress.seen, silent ? [] : all), progress.seen);
  await logs.first((log) => isDeepStrictEqual(log, ["warning", "it takes two steps"]));
  return progress.seen;
}

/** Has a tool run for longer than any request may take. */
async function outlast(call) {
  const textFrom = async (tool, args) => textOf(await call(tool, args, { timeout: LIMIT_MS }));
  const { run } = JSON.parse(await textFrom("runs_start", { tool: "slow" }));
  const status = async () => JSON.parse(await textFrom("runs_status", { run })).status;
  let last;
  while ((last = await status()) === "working") {
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  expect("the end of the run", last === "completed", last);
  const output = await textFrom("runs_output", { run });
  expect("the output of the run", output === "Took its time.", output);
}

/** Lists a prompt, completes its argument and gets it. */
async function prompt(client) {
  const prompts = (await client.listPrompts()).prompts.map((prompt) => prompt.name);
  expect("the prompt", isDeepStrictEqual(prompts, ["review"]), prompts);
  const ref = { type: "ref/prompt", name: "review" };
  const { completion } = await client.complete({ ref, argument: { name: "tone", value: "f" } });
  expect("the completion", isDeepStrictEqual(completion.values, ["friendly", "formal"]), completion);
  const { messages } = await client.getPrompt({ name: "review", arguments: { tone: "formal" } });
  expect("the prompt", messages[0].content.text === "Write a formal review.", messages);
}

/** Whether a call that is cancelled takes its script along. */
async function cancel(call, logs) {
  const abort = new AbortController();
  const result = call("linger", {}, { signal: abort.signal });
  const [, number] = await logs.first(([, data]) => /^\d+$/.test(data));
  abort.abort();
  const outcome = await result.catch((error) => error);
  expect("no result", outcome instanceof Error, outcome);
  for (const end = Date.now() + GRACE_MS; Date.now() < end; ) {
    try {
      process.kill(Number(number), 0);
    } catch {
      return true;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  // The script survived the cancellation and would outlive the test.
  process.kill(Number(number), "SIGKILL");
  return false;
}

/** A transport of the SDK at hand to the target, which is a command or [url, token]. */
export function reach({ StdioClientTransport, StreamableHTTPClientTransport }, transport, target) {
  if (transport === "stdio") {
    const [command, ...args] = target;
    // By default the SDKs pass only a few variables on.
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
