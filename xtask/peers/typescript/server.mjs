// A server on the official TypeScript SDK: no sessions, JSON answers.
//
// `server.mjs stdio|http SCRIPTS` has the tools `greet` and `blob`, which run the script of that name, and `echo`.
// Over HTTP it prints its address first.

import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { text as collect } from 'node:stream/consumers';

import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const [transport, scripts] = process.argv.slice(2);

const answer = (text) => ({ content: [{ type: 'text', text }] });

async function run(script, input, environment) {
  const child = spawn(join(scripts, script), { env: { ...process.env, ...environment } });
  const ended = new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  // A script need not read its input.
  child.stdin.on('error', () => {});
  child.stdin.end(JSON.stringify(input));
  child.stderr.resume();
  const [stdout, code] = await Promise.all([collect(child.stdout), ended]);
  return { ...answer(stdout), isError: code !== 0 };
}

function peer() {
  const server = new McpServer({ name: 'peer', version: '0.0.0' });
  const echo = { description: 'Returns its text.', inputSchema: z.object({ text: z.string() }) };
  server.registerTool('echo', echo, ({ text }) => answer(text));
  const greet = { description: 'Greets someone by name.', inputSchema: z.object({ name: z.string() }) };
  server.registerTool('greet', greet, (input) => run('greet', input, { MCPD_OPT_name: input.name }));
  server.registerTool('blob', { description: 'Prints much.' }, () => run('blob', {}, {}));
  return server;
}

if (transport === 'stdio') {
  serveStdio(peer);
} else {
  const server = createServer(toNodeHandler(createMcpHandler(peer)));
  server.listen(0, '127.0.0.1', () => console.log(`127.0.0.1:${server.address().port}`));
}
