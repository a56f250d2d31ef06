// What every Node.js driver has its framework do, and what it prints: as `python/harness.py`, in the same words.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ACTION_TIMEOUT_MS = 30_000;
const END_TIMEOUT_MS = 5_000;
const TOOLS = ["count", "fail", "greet", "linger", "order", "picture", "weather"];
const ORDER = {
  customer: { name: "Ada" },
  items: [{ article: "pen", count: 2 }, { article: "ink", count: 1 }],
  tags: ["gift"],
};

const ABSENT = Symbol("the framework has no means for it");
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const textOf = (seen) => (typeof seen === "string" ? seen : (JSON.stringify(seen) ?? String(seen)));

/** Where the server is. */
export function target() {
  const [transport, ...rest] = process.argv.slice(2);
  if (transport === "stdio") return { transport, command: rest[0], args: rest.slice(1) };
  return { transport, url: rest[0], token: rest[1], headers: { Authorization: `Bearer ${rest[1]}` } };
}

function expect(needle, seen) {
  const text = textOf(seen);
  if (!text.includes(needle)) throw new Error(`no \`${needle}\` in ${text.slice(0, 300)}`);
}

function report(action, error) {
  const line = { action, ok: error === undefined };
  if (error !== undefined) line.error = String(error?.message ?? error).slice(0, 600);
  console.log(JSON.stringify(line));
}

async function until(what, condition) {
  for (const end = Date.now() + END_TIMEOUT_MS; Date.now() < end; await pause(50)) {
    if (condition()) return;
  }
  throw new Error(what);
}

function isAlive(number) {
  try {
    process.kill(number, 0);
    return true;
  } catch {
    return false;
  }
}

/** What a call that fails says, as its result or as an exception. */
async function wordsOf(call) {
  try {
    return textOf(await call());
  } catch (error) {
    return `${error}${error?.cause ?? ""}${textOf(error)}`;
  }
}

function actions(client) {
  const use = (method, ...given) => (client[method] ? client[method](...given) : ABSENT);
  const also = async (seen, check) => {
    const got = await seen;
    return got === ABSENT ? ABSENT : check(got);
  };
  return {
    list: async () => {
      const names = await client.tools();
      if (!TOOLS.every((name) => names.includes(name))) throw new Error(`the tools are ${names}`);
    },
    call: async () => expect("Hello, Ada O'Brien!", await client.call("greet", { name: "Ada O'Brien" })),
    wrong_arguments: async () => {
      const said = await wordsOf(() => client.call("greet", { name: { first: "Ada" } }));
      expect("name", said);
      expect("string", said);
    },
    failing_script: async () => expect("there is no paper left", await wordsOf(() => client.call("fail", {}))),
    nested_schema: async () => expect("Ada: 2 pen, 1 ink, ['gift']", await client.call("order", ORDER)),
    structured_result: async () => {
      if (!client.structured) return expect("21.5", await client.call("weather", {}));
      const seen = await client.structured("weather", {});
      if (seen?.celsius !== 21.5) throw new Error(`the result is ${textOf(seen)}`);
    },
    image: async () => expect("iVBORw0K", await client.call("picture", {})),
    progress: () =>
      also(use("progress", "count", {}), (seen) => {
        if (seen.length < 2) throw new Error(`the progress is ${textOf(seen)}`);
      }),
    prompt: () => also(use("prompt", "review", { tone: "formal" }), (seen) => expect("Write a formal review.", seen)),
    resource: () => also(use("resource", "mcpd://resources/hours.md"), (seen) => expect("from nine to five", seen)),
    cancel: () => (client.cancellable ? cancel(client) : ABSENT),
  };
}

async function cancel(client) {
  const directory = mkdtempSync(join(tmpdir(), "interop-"));
  const file = join(directory, "number");
  const read = () => {
    try {
      return Number(readFileSync(file, "utf8"));
    } catch {
      return 0;
    }
  };
  const abort = new AbortController();
  let number;
  try {
    const call = client.cancellable("linger", { file }, abort.signal).catch((error) => error);
    await until("the script does not start", () => (number = read()) > 0);
    abort.abort();
    await Promise.race([call, pause(END_TIMEOUT_MS)]);
    await until("the script runs on", () => !isAlive(number));
  } finally {
    if (number && isAlive(number)) process.kill(number, "SIGKILL");
    rmSync(directory, { recursive: true });
  }
}

/** The processes that this one has started and that have not ended. */
function children() {
  const listed = readFileSync(`/proc/self/task/${process.pid}/children`, "utf8").split(" ").filter(Boolean);
  return listed.filter((number) => {
    try {
      return !readFileSync(`/proc/${number}/stat`, "utf8").split(") ").at(-1).startsWith("Z");
    } catch {
      return false;
    }
  });
}

async function attempt(action, work) {
  const late = pause(ACTION_TIMEOUT_MS).then(() => {
    throw new Error("no answer in time");
  });
  try {
    if ((await Promise.race([work(), late])) !== ABSENT) report(action);
  } catch (error) {
    report(action, error);
  }
}

/** Connects by `connect(target)`, which gives a client with `tools`, `call`, `close` and what else there is. */
export async function run(connect) {
  setTimeout(() => {
    report("end", "the driver has not ended in time");
    process.exit(1);
  }, 240_000).unref();
  process.on("unhandledRejection", (error) => console.error(error));
  let client;
  try {
    client = await connect(target());
  } catch (error) {
    report("connect", error);
    process.exit(0);
  }
  for (const [action, work] of Object.entries(actions(client))) await attempt(action, work);
  await attempt("close", async () => {
    await client.close();
    await until("the server runs on", () => children().length === 0);
  });
  process.exit(0);
}
