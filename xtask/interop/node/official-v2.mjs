// The official SDK on its 2.x line.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { officialClient } from "./harness-official.mjs";
import { run } from "./harness.mjs";

await run((target) => officialClient({ Client, StdioClientTransport, StreamableHTTPClientTransport }, target, []));
