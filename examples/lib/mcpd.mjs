// Tools for mcpd in JavaScript. One file, Node.js 20 or later, Bun or Deno, no other packages.
//
// Write `mcpd lib javascript > mcpd.mjs` beside your script:
//
//   #!/usr/bin/env node
//   import { tool } from "./mcpd.mjs";
//
//   tool({
//     description: "Greets someone, several times if need be.",
//     options: { name: String, times: { default_value: 1, value_type: "integer" } },
//     run: ({ name, times }) => `Hello, ${name}! `.repeat(times),
//   });
//
// An option is `String`, `Number`, `Boolean`, `Array` or `Object` (then it is required), a list of
// the allowed strings, or a definition with the fields of an option.

import { readFileSync, writeSync } from "node:fs";
import process from "node:process";

/** Exit codes by name. */
export const codes = {
  "internal-error": 1,
  "bad-request": 2,
  forbidden: 3,
  "not-found": 4,
  "service-unavailable": 5,
  "not-acceptable": 6,
  "not-implemented": 7,
  conflict: 8,
  timeout: 9,
};

/** Failure of a call, as opposed to one of the script. */
export class Failure extends Error {
  constructor(message, code = "bad-request") {
    super(message);
    this.code = codes[code] ?? code;
  }
}

/** Ends the call with an error. `code` is a name in `codes`, or a number. */
export function fail(message, code = "bad-request") {
  throw new Failure(message, code);
}

/** Reports how much is done, of how much. */
export function progress(done, total, message = "") {
  const of = total === undefined ? "" : `/${total}`;
  write(2, `PROGRESS ${done}${of} ${message}`.trimEnd().replace(/\s*\n\s*/g, " ") + "\n");
}

/** Iterates over `items` and reports progress after each. */
export function* track(items, message = "") {
  const total = items.length ?? items.size;
  let done = 0;
  for (const item of items) {
    yield item;
    done += 1;
    progress(done, total, message);
  }
}

const logAt = (level) => (...parts) => {
  const text = parts.map((part) => (typeof part === "string" ? part : JSON.stringify(part))).join(" ");
  for (const line of text.split("\n")) write(2, `${level} ${line}\n`);
};

/** Log lines: `log.error`, `log.warning`, `log.info` and `log.debug`. */
export const log = {
  error: logAt("ERROR"),
  warning: logAt("WARNING"),
  info: logAt("INFO"),
  debug: logAt("DEBUG"),
};

/** An image to return: the path of a file, or bytes with their type. */
export function image(source, mimeType) {
  const block = { type: "image" };
  if (typeof source === "string") block.path = source;
  else block.data = Buffer.from(source).toString("base64");
  if (mimeType) block.mimeType = mimeType;
  return block;
}

/**
 * Makes this script a tool: `description`, `options` and `run(arguments)`. `ask` has questions that
 * the person answers before `run`, each a text or `{message, …}` with fields of a JSON Schema; the
 * answers are among the arguments. All other fields are metadata. With `output: "mcp"`, `run`
 * returns texts and images, one or a list.
 */
export function tool({ options = {}, run, ask = {}, ...metadata }) {
  const questions = Object.entries(ask);
  if (questions.length > 0) metadata.output ??= "mcp";
  if (process.argv[2] === "--help" && process.argv.length === 3) {
    const definitions = Object.entries(options).map(([name, option]) => [name, definition(option)]);
    write(1, JSON.stringify(metadata) + "\n");
    write(2, JSON.stringify(Object.fromEntries(definitions)) + "\n");
    return Promise.resolve();
  }
  // What a library prints would be taken for the result.
  if (metadata.output === "mcp" || metadata.output === "json") console.log = console.error;
  return call(run, questions, metadata.output).then(
    (code) => {
      process.exitCode = code;
    },
    (error) => {
      if (error instanceof Failure) log.error(error.message);
      else console.error(error);
      process.exitCode = error instanceof Failure ? error.code : (failures[error?.code] ?? 1);
    },
  );
}

/** Exit codes for errors of the system. */
const failures = { ENOENT: 4, EACCES: 3, EPERM: 3, ETIMEDOUT: 9, ECONNREFUSED: 5, ENOTFOUND: 5 };

async function call(run, questions, output) {
  const text = process.stdin.isTTY ? "" : readFileSync(0, "utf8");
  const given = text.trim() === "" ? {} : JSON.parse(text);
  const answers = questions.length > 0 ? readAnswers(questions) : {};
  if (answers === undefined) {
    const requests = questions.map(([name, question]) => [name, request(name, question)]);
    write(1, JSON.stringify({ inputRequests: Object.fromEntries(requests) }) + "\n");
    return 0;
  }
  const result = await run({ ...given, ...answers });
  if (output === "mcp") {
    write(1, JSON.stringify(mcpResult(result)) + "\n");
  } else if (output === "json" || (result !== undefined && typeof result !== "string")) {
    write(1, JSON.stringify(result ?? null) + "\n");
  } else if (result !== undefined) {
    write(1, result + "\n");
  }
  return 0;
}

function mcpResult(result) {
  if (result?.content !== undefined) return result;
  const parts = (Array.isArray(result) ? result : [result]).filter((part) => part !== undefined);
  const content = parts.map((part) => {
    if (part?.type !== undefined) return part;
    return { type: "text", text: typeof part === "string" ? part : JSON.stringify(part) };
  });
  return { content: content.length > 0 ? content : [{ type: "text", text: "Done." }] };
}

function request(name, question) {
  const { message, ...schema } = typeof question === "string" ? { message: question } : question;
  const properties = { [name]: { type: "string", ...schema } };
  const requestedSchema = { type: "object", properties, required: [name] };
  return { method: "elicitation/create", params: { message, requestedSchema } };
}

/** Answers by name; `undefined` if any is missing. */
function readAnswers(questions) {
  const file = process.env.MCPD_INPUT_RESPONSES;
  if (!file) return undefined;
  const responses = JSON.parse(readFileSync(file, "utf8"));
  const answers = {};
  for (const [name] of questions) {
    const response = responses[name];
    if (response === undefined) return undefined;
    if (response.action !== "accept") {
      fail(`The question about ${name} was not answered.`, "not-acceptable");
    }
    if (response.content?.[name] === undefined) return undefined;
    answers[name] = response.content[name];
  }
  return answers;
}

const types = new Map([
  [String, "string"],
  [Number, "float"],
  [Boolean, "boolean"],
  [Array, "array"],
  [Object, "object"],
]);

/** Returns the definition of an option. */
function definition(option) {
  if (types.has(option)) return { required: true, value_type: types.get(option) };
  if (Array.isArray(option)) return { required: true, value_type: { enum: option } };
  const { value_type: type, ...fields } = option;
  if (type === undefined) return option;
  const known = Array.isArray(type) ? { enum: type } : (types.get(type) ?? type);
  return { ...fields, value_type: known };
}

/** Writes all of a text: `console.log` of a pipe ends early in `process.exit`. */
function write(descriptor, text) {
  let bytes = Buffer.from(text);
  while (bytes.length > 0) {
    try {
      bytes = bytes.subarray(writeSync(descriptor, bytes));
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
    }
  }
}
