/**
 * The configuration of `flowcell mcp`: which MCP servers to start, how, and which of their tools a person approves. The command
 * reads the file and calls parseMcpConfig; embedding programs may pass the same as an object.
 *
 *   { "mcpServers": { "files": { "command": "npx", "args": ["…"], "needsApproval": ["write_*"] } }, "store": "state/runs.sqlite" }
 *
 * TRUST: the file is the operator's and says which programs run. What is not known is refused, never ignored: a misspelt
 * `needsApproval` would otherwise approve everything.
 * Kept true: nothing of the parent's environment is in a server's but PATH, HOME and what `inheritEnv` names.
 */

import { isAbsolute, resolve } from "node:path";
import { didYouMean, type Limits, limitCeilings, parseLimits, profileLimits } from "@flowcell/protocol";
import * as z from "zod/mini";
import { namespaceName } from "../tool-names.js";

export interface McpServerConfig {
  readonly command: string;
  readonly args: readonly string[];
  /** All of the server's environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Whether nothing starts without it. */
  readonly required: boolean;
  /** From its start to the list of its tools. */
  readonly startMs: number;
  /** Of one call. */
  readonly callMs: number;
  /** Names of its tools, `*` standing for any characters; true: all. */
  readonly needsApproval: true | readonly string[];
}

export interface McpConfig {
  /** By the names that scripts call them by, before they are made identifiers. */
  readonly servers: ReadonlyMap<string, McpServerConfig>;
  /** The file that suspended scripts are kept in; undefined: in memory. */
  readonly store: string | undefined;
  readonly limits: Limits;
  /** Who asks a person for approvals; undefined: this server where the client can show a question, else the client. */
  readonly approval: "client" | "elicit" | undefined;
  /** Of the description of `execute`. */
  readonly promptTokens: number;
}

export type McpConfigResult =
  | { readonly ok: true; readonly config: McpConfig }
  | { readonly ok: false; readonly problems: readonly string[] };

export interface McpConfigParts {
  /** What relative paths start from: the folder of the file. */
  readonly folder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const serversMost = 64;
const startMsDefault = 30_000;
const callMsDefault = 120_000;
const msMost = 600_000;
/** Clients give a request 60 s unless they say otherwise; a script then ends with a result rather than with its request. */
const wallMsDefault = 50_000;
const promptTokensDefault = 8_000;

const text = z
  .string("must be a text")
  .check(z.minLength(1, "must not be empty"), z.maxLength(8192, "is too long"));
const texts = z.array(text, "must be a list of texts").check(z.maxLength(512, "has more than 512 entries"));
const ms = z
  .int("must be a whole number of milliseconds")
  .check(z.minimum(1, "must be at least 1"), z.maximum(msMost, `must be at most ${msMost}`));

const serverShape = {
  type: z.optional(z.literal("stdio", 'must be "stdio": servers are reached over standard input and output')),
  command: text,
  args: z.optional(texts),
  env: z.optional(z.record(z.string(), z.string("must be a text"), "must be an object of names and texts")),
  inheritEnv: z.optional(texts),
  cwd: z.optional(text),
  required: z.optional(z.boolean("must be true or false")),
  startMs: z.optional(ms),
  callMs: z.optional(ms),
  needsApproval: z.optional(
    z.union([z.boolean(), texts], "must be true or a list of names of tools, with * for any characters"),
  ),
};
const configShape = {
  mcpServers: z.optional(
    z.record(z.string(), z.strictObject(serverShape, "must be an object"), "must be an object of servers"),
  ),
  store: z.optional(text),
  approval: z.optional(
    z.enum(
      ["client", "elicit"],
      'must be "client" (who may call resume approves) or "elicit" (this server asks a person)',
    ),
  ),
  limits: z.optional(z.record(z.string(), z.number("must be a number"), "must be an object of limits")),
  promptTokens: z.optional(
    z
      .int("must be a whole number")
      .check(z.minimum(2_000, "must be at least 2000"), z.maximum(200_000, "must be at most 200000")),
  ),
};
const configSchema = z.strictObject(configShape, "must be an object");

const serverKeys = Object.keys(serverShape);
const configKeys = Object.keys(configShape);
/** What the same is called elsewhere. */
const foreignKeys: ReadonlyMap<string, string> = new Map([
  ["servers", "mcpServers"],
  ["journal", "store"],
  ["database", "store"],
  ["timeout", "callMs"],
  ["timeoutMs", "callMs"],
  ["startupTimeout", "startMs"],
  ["workingDirectory", "cwd"],
  ["environment", "env"],
  ["approve", "needsApproval"],
  ["approval", "needsApproval"],
  ["requireApproval", "needsApproval"],
  ["envPassthrough", "inheritEnv"],
]);

type GivenServer = z.infer<typeof configSchema>["mcpServers"] extends Record<string, infer Server> | undefined
  ? Server
  : never;

export function parseMcpConfig(json: string, parts: McpConfigParts): McpConfigResult {
  let given: unknown;
  try {
    given = JSON.parse(json);
  } catch (error) {
    return refused([`is not JSON: ${error instanceof Error ? error.message : ""}`]);
  }
  return readMcpConfig(given, parts);
}

export function readMcpConfig(given: unknown, parts: McpConfigParts): McpConfigResult {
  const parsed = configSchema.safeParse(given);
  if (!parsed.success) return refused(parsed.error.issues.flatMap(issueTexts));
  const { mcpServers = {}, store, limits = {}, approval, promptTokens = promptTokensDefault } = parsed.data;
  const problems: string[] = [];
  const servers = new Map<string, McpServerConfig>();
  const namespaces = new Map<string, string>();
  for (const [name, server] of Object.entries(mcpServers)) {
    const at = `mcpServers.${quoted(name)}`;
    const namespace = namespaceName(name);
    if (!namespace.ok) problems.push(`${at}: the name ${namespace.problem}`);
    else {
      const other = namespaces.get(namespace.name);
      if (other !== undefined)
        problems.push(`${at}: ${quoted(other)} would be ${namespace.name} in a script too; rename one`);
      namespaces.set(namespace.name, name);
    }
    servers.set(name, serverOf(server, at, parts, problems));
  }
  if (servers.size > serversMost) problems.push(`mcpServers: more than ${serversMost} servers`);
  const allowed = parseLimits(limits, { ...profileLimits("codemode"), wallMs: wallMsDefault }, limitCeilings);
  if (!allowed.ok) problems.push(`limits: ${allowed.message}`);
  if (!allowed.ok || problems.length > 0) return refused(problems);
  const file = store === undefined || isAbsolute(store) ? store : resolve(parts.folder, store);
  return { ok: true, config: { servers, store: file, limits: allowed.limits, approval, promptTokens } };
}

function serverOf(
  given: GivenServer,
  at: string,
  { folder, environment }: McpConfigParts,
  problems: string[],
): McpServerConfig {
  const env: Record<string, string> = {};
  for (const name of ["PATH", "HOME"]) {
    const value = environment[name];
    if (value !== undefined) env[name] = value;
  }
  for (const name of given.inheritEnv ?? []) {
    const value = environment[name];
    if (value === undefined)
      problems.push(`${at}.inheritEnv: there is no ${quoted(name)} in the environment`);
    else env[name] = value;
  }
  for (const [name, value] of Object.entries(given.env ?? {})) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || value.includes("\0"))
      problems.push(`${at}.env: ${quoted(name)} cannot be a variable of an environment`);
    else env[name] = value;
  }
  for (const [key, value] of [
    ["command", given.command],
    ["cwd", given.cwd ?? ""],
    ...argsOf(given),
  ] as const)
    if (value.includes("\0")) problems.push(`${at}.${key}: holds a character that no argument can have`);
  const { needsApproval = [] } = given;
  return {
    // A name is looked up in PATH; a path starts from the file's folder.
    command: given.command.includes("/") ? resolve(folder, given.command) : given.command,
    args: given.args ?? [],
    env,
    cwd: given.cwd === undefined ? folder : resolve(folder, given.cwd),
    required: given.required ?? false,
    startMs: given.startMs ?? startMsDefault,
    callMs: given.callMs ?? callMsDefault,
    needsApproval: needsApproval === false ? [] : needsApproval,
  };
}

function argsOf({ args = [] }: GivenServer): [string, string][] {
  return args.map((value, index) => [`args[${index}]`, value]);
}

function issueTexts(issue: z.core.$ZodIssue): string[] {
  const at = issue.path.map((part, index) => (index === 0 ? String(part) : step(part))).join("");
  const where = at === "" ? "" : `${at}: `;
  if (issue.code !== "unrecognized_keys") return [`${where}${issue.message}`];
  const known = issue.path.length === 0 ? configKeys : serverKeys;
  return issue.keys.map((key) => `${where}unknown key ${quoted(key)}: ${hint(key, known)}`);
}

function step(part: PropertyKey): string {
  return typeof part === "number"
    ? `[${part}]`
    : `.${/^[A-Za-z_]\w*$/.test(String(part)) ? String(part) : quoted(String(part))}`;
}

function hint(key: string, known: readonly string[]): string {
  if ((key === "url" || key === "headers") && known === serverKeys)
    return "servers are reached over standard input and output: give command and args";
  const foreign = foreignKeys.get(key);
  const near = foreign !== undefined && known.includes(foreign) ? foreign : didYouMean(key, known);
  return near === undefined ? `the keys are ${known.join(", ")}` : `did you mean ${near}?`;
}

function quoted(name: string): string {
  return JSON.stringify(name.slice(0, 80));
}

function refused(problems: readonly string[]): McpConfigResult {
  return { ok: false, problems: problems.slice(0, 20) };
}
