#!/usr/bin/env node
// Starts the mcpd of the npm package for this platform, with the same arguments and the same
// standard streams, and ends as it ends.
"use strict";

const { spawn } = require("node:child_process");
const { name, version, optionalDependencies } = require("../package.json");

// Signals that a client or a service manager sends to the process that it knows: this one.
const SIGNALS = ["SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2"];

// A terminal sends these to mcpd as well. A second one would end it at once.
const FROM_TERMINAL = ["SIGINT", "SIGQUIT"];

function isMusl() {
  process.report.excludeNetwork = true;
  return !process.report.getReport().header.glibcVersionRuntime;
}

function findProgram() {
  const platform = `-${process.platform}-${process.arch}`;
  const suffixes = [platform];
  if (process.platform === "linux") {
    // npm installs one of both, and other package managers may install both. The one for musl is
    // static, and runs with glibc too.
    suffixes.push(`${platform}-musl`);
  }
  const installed = suffixes.map((suffix) => {
    const wanted = Object.keys(optionalDependencies).find((name) => name.endsWith(suffix));
    try {
      return wanted && require.resolve(`${wanted}/bin/mcpd`);
    } catch {
      return undefined;
    }
  });
  const [first, musl] = installed;
  return first && musl && isMusl() ? musl : (first ?? musl);
}

function fail(message) {
  process.stderr.write(`error: ${message}\n`);
  process.exit(1);
}

const program = findProgram();
if (!program) {
  const known = Object.keys(optionalDependencies).map((name) => `  ${name}`);
  fail(
    `the npm package with mcpd for ${process.platform} ${process.arch} is not installed beside ` +
      `\`${name}\` ${version}, in ${require("node:path").dirname(__dirname)}\n` +
      `Install \`${name}\` again, with optional dependencies (without \`--omit=optional\` and ` +
      "`--no-optional`), and without a node_modules from another system.\n" +
      `There are packages for:\n${known.join("\n")}`,
  );
}

// Before mcpd is started, as a signal may come right after that; it is handled after this file.
let child;
for (const signal of SIGNALS) {
  const isPassedOn = !(FROM_TERMINAL.includes(signal) && process.stdin.isTTY);
  process.on(signal, () => isPassedOn && child.kill(signal));
}
// Not spawnSync: it would keep the signals from being passed on, and leave mcpd behind.
child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => fail(`failed to start \`${program}\`: ${error.message}`));
child.on("exit", (code, signal) => {
  if (!signal) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
