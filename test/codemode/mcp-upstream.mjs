// An MCP server with the tools that tests of `flowcell mcp` need: slow, failing, dying, large, oddly named. Started by
// mcp-client.ts through the configuration, never imported. MODE says how it starts, NOTES is a file that it writes to.
import { appendFileSync, existsSync } from "node:fs";
import process from "node:process";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const mode = process.env.MODE ?? "";
const note = (line) => {
  if (process.env.NOTES !== undefined) appendFileSync(process.env.NOTES, `${line}\n`);
};
note(`start ${process.pid}`);
if (mode === "dead") {
  process.stderr.write("no licence found\nsetup failed\n");
  process.exit(9);
}
// Starts only when a file says that it may.
if (mode === "late" && !existsSync(`${process.env.NOTES}.ready`)) {
  process.stderr.write("still installing\n");
  process.exit(9);
}
if (mode === "mute") setInterval(() => undefined, 1000);

const text = (value) => ({ content: [{ type: "text", text: value }] });
const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const picture = (data = pixel) => ({ type: "image", mimeType: "image/png", data });

const tools = {
  add: {
    inputSchema: {
      type: "object",
      properties: { a: { type: "number" }, b: { type: "number" } },
      required: ["a", "b"],
    },
    outputSchema: { type: "object", properties: { sum: { type: "number" } }, required: ["sum"] },
    annotations: { readOnlyHint: true },
    run: ({ a, b }) => ({ content: [], structuredContent: { sum: a + b } }),
  },
  broken: {
    outputSchema: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
    run: () => ({ content: [], structuredContent: { n: "one" } }),
  },
  env: { run: () => text(JSON.stringify(process.env)) },
  cwd: { run: () => text(process.cwd()) },
  list: { run: () => text("[1, 2]") },
  number: { run: () => text("1.10") },
  texts: { run: () => ({ content: [...text("one").content, ...text("two").content] }) },
  nothing: { run: () => ({ content: [] }) },
  fails: { run: () => ({ ...text("it is /etc/late"), isError: true }) },
  fails_mutely: { run: () => ({ content: [], isError: true }) },
  refuses: {
    run: () => {
      throw new Error("no such thing");
    },
  },
  picture: { run: ({ data }) => ({ content: [...text("a dot").content, picture(data)] }) },
  link: {
    run: () => ({ content: [{ type: "resource_link", uri: "note://1", name: "first" }] }),
  },
  large: { run: ({ chars }) => text("x".repeat(chars)) },
  flood: {
    run: () => {
      process.stdout.write("x".repeat(33 * 1024 * 1024));
      return new Promise(() => undefined);
    },
  },
  noise: {
    run: () => {
      process.stdout.write("this is no message\n");
      return text("quiet again");
    },
  },
  hang: {
    annotations: { readOnlyHint: true },
    run: (_, signal) => {
      note("hangs");
      // Both messages may have come at once.
      if (signal.aborted) note("cancelled");
      signal.addEventListener("abort", () => note("cancelled"));
      return new Promise(() => undefined);
    },
  },
  die: { run: () => process.exit(3) },
  die_reading: { annotations: { readOnlyHint: true }, run: () => process.exit(3) },
  write: {
    description: "Writes a note, for good.",
    inputSchema: { type: "object", properties: { line: { type: "string" } }, required: ["line"] },
    run: ({ line }) => {
      note(`wrote ${line}`);
      return text(`wrote ${line}`);
    },
  },
  grow: {
    run: async () => {
      rows.push({ name: "grown", inputSchema: { type: "object" }, description: "Has grown." });
      tools.grown = { run: () => text("grown up") };
      await server.sendToolListChanged();
      return text("grew");
    },
  },
  "odd-name": { run: () => text("odd") },
  "odd.name": { run: () => text("other") },
  constructor: { run: () => text("never") },
};

const rows = Object.entries(tools).map(([name, { run, inputSchema, ...row }]) => ({
  name,
  inputSchema: inputSchema ?? { type: "object" },
  ...row,
}));
const server = new Server({ name: "odd", version: "1" }, { capabilities: { tools: { listChanged: true } } });
server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
  const from = Number(params?.cursor ?? 0);
  const next = from + 5 < rows.length ? { nextCursor: String(from + 5) } : {};
  return { tools: rows.slice(from, from + 5), ...next };
});
server.setRequestHandler(CallToolRequestSchema, ({ params }, { signal }) => {
  const tool = Object.hasOwn(tools, params.name) ? tools[params.name] : undefined;
  if (tool === undefined) throw new Error("no such tool");
  return tool.run(params.arguments ?? {}, signal);
});
if (mode !== "mute") await server.connect(new StdioServerTransport());
