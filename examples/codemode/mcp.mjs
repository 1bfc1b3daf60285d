// An agent's side of `flowcell mcp`: the official client starts it and lets a script call two MCP servers at once.
//   node examples/codemode/mcp.mjs
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const client = new Client({ name: "my-agent", version: "1.0.0" });
const command = here("../../node_modules/.bin/flowcell");
await client.connect(new StdioClientTransport({ command, args: ["mcp", "--config", here("mcp.json")] }));

// What a model would write, after it read the description of `execute`.
const code = `
  const [listing, sum] = await Promise.all([
    files.list_directory({ path: "." }),
    everything.get_sum({ a: 2, b: 3 }),
  ]);
  const names = listing.content.split("\\n").map((line) => line.replace(/^\\[\\w+\\] /, "")).sort();
  return { names, sum };`;
const { structuredContent } = await client.callTool({ name: "execute", arguments: { code } });
const { ok, value, error } = structuredContent;
console.log(JSON.stringify(ok ? value : error));
await client.close();
