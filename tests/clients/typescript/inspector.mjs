// Code common to the programs on the MCP Inspector, whose only API is its command lines.

import { execFile, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** What the Inspector calls the revisions: it speaks one on each wire. */
export const ERAS = { "2025-11-25": "legacy", "2026-07-28": "modern" };

/** The name of the server in the configuration. */
export const SERVER = "mcpd";

/** A directory for as long as this program runs. */
export function workplace() {
  const directory = mkdtempSync(join(tmpdir(), "inspector-"));
  process.on("exit", () => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** Writes a configuration that leads to the target, and returns the options that name it. */
export function configure(directory, transport, target) {
  const [first, ...rest] = target;
  const server =
    transport === "stdio"
      ? { command: first, args: rest }
      : { type: "streamable-http", url: first, headers: { Authorization: `Bearer ${rest[0]}` } };
  const file = join(directory, "mcp.json");
  writeFileSync(file, JSON.stringify({ mcpServers: { [SERVER]: server } }));
  return ["--config", file];
}

/** The command line of one of its programs. */
export function commandLine(program, args) {
  return [process.execPath, [join(import.meta.dirname, "node_modules/.bin", program), ...args]];
}

/** Runs one of its programs to the end: the exit code, the object that it wrote, and its words about it. */
export function run(program, args, options = {}) {
  return new Promise((resolve, reject) => {
    execFile(...commandLine(program, args), options, (error, stdout, stderr) => {
      if (error?.name === "AbortError") return reject(error);
      resolve({ code: error?.code ?? 0, output: stdout && JSON.parse(stdout), words: stderr });
    });
  });
}

/** Starts one of its programs, which writes an object now and then until this program ends, and hands on each. */
export function follow(program, args, onobject) {
  const child = spawn(...commandLine(program, args), { stdio: ["ignore", "pipe", "ignore"] });
  process.on("exit", () => child.kill());
  child.unref();
  child.stdout.unref();
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (piece) => {
    // Results are indented: only the last line of one is a single brace.
    const objects = (text + piece).split(/(?<=^})\n/m);
    text = objects.pop();
    objects.forEach((object) => onobject(JSON.parse(object)));
  });
}
