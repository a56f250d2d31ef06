// Prints what a client starts for a bundle, as the code of Claude Desktop decides it:
// `node launch.mjs DIRECTORY SETTINGS`, where the settings are a JSON object.
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { sep } from "node:path";
import { getMcpConfigForManifest } from "@anthropic-ai/mcpb";

const [directory, settings] = process.argv.slice(2);
const manifest = JSON.parse(readFileSync(`${directory}/manifest.json`, "utf8"));
const config = await getMcpConfigForManifest({
  manifest,
  extensionPath: directory,
  systemDirs: { HOME: homedir() },
  userConfig: JSON.parse(settings),
  pathSeparator: sep,
});
console.log(JSON.stringify(config ?? null));
