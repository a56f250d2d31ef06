// Clients on both lines of the official TypeScript SDK whose connection breaks in the middle of a
// call. The SDKs alone resume the stream. Run as `resume.mjs URL TOKEN`, prints one JSON line.

import { createConnection, createServer } from "node:net";
import * as v2 from "@modelcontextprotocol/client";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as TransportV1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { expect, textOf } from "./session.mjs";

const [url, token] = process.argv.slice(2);
const PRIMING = /id: [0-9a-f]+-0\ndata:\n\n/;

/** A proxy that breaks the connection of the first call as soon as its stream has an id. */
async function breaking(target) {
  const seen = { broken: 0, resumed: 0 };
  const proxy = createServer((client) => {
    const server = createConnection(target.port, target.hostname);
    let isCall = false;
    client.on("data", (data) => {
      isCall ||= data.includes('"tools/call"');
      if (/^last-event-id:/im.test(data)) seen.resumed += 1;
      server.write(data);
    });
    server.on("data", (data) => {
      client.write(data);
      if (isCall && seen.broken === 0 && PRIMING.test(data)) {
        seen.broken += 1;
        client.resetAndDestroy();
        server.destroy();
      }
    });
    for (const [one, other] of [[client, server], [server, client]]) {
      one.on("error", () => other.destroy());
      one.on("close", () => other.destroy());
    }
  });
  await new Promise((listening) => proxy.listen(0, "127.0.0.1", listening));
  return { proxy, seen, url: new URL(target.pathname, `http://127.0.0.1:${proxy.address().port}`) };
}

async function resume(Client, Transport) {
  const { proxy, seen, url: address } = await breaking(new URL(url));
  const requestInit = { headers: { Authorization: `Bearer ${token}` } };
  const client = new Client({ name: "resume", version: "1" }, { capabilities: {} });
  await client.connect(new Transport(address, { requestInit }));
  const result = await client.callTool({ name: "slow", arguments: {} });
  expect("the result", textOf(result) === "Took its time.", result);
  expect("one break, and one return", seen.broken === 1 && seen.resumed >= 1, seen);
  await client.close();
  proxy.close();
  return seen;
}

const deadline = setTimeout(() => {
  console.error("the call has no answer in time");
  process.exit(1);
}, 50_000);
const first = await resume(ClientV1, TransportV1);
const second = await resume(v2.Client, v2.StreamableHTTPClientTransport);
console.log(JSON.stringify({ first, second }));
clearTimeout(deadline);
process.exit(0);
