// The official SDK on its 1.x line.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { officialClient } from "./harness-official.mjs";
import { run } from "./harness.mjs";

await run((target) => officialClient({ Client, StdioClientTransport, StreamableHTTPClientTransport }, target, [undefined]));
