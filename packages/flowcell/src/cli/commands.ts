/**
 * The commands of `flowcell`, one row each: what is typed, what help says, which operation of the service it stands for.
 * Help, parsing, dispatch and the README's table come from here. Data only: `flowcell run` loads this too.
 */

export interface OptionRow {
  /** As commander reads it: `--input <JSON|@file>`. */
  readonly flags: string;
  readonly doc: string;
  readonly repeatable?: true;
}

export interface CommandRow {
  readonly name: string;
  /** As commander reads them: `<PATH>`, `[RUN]`. */
  readonly arguments: readonly string[];
  /** One line, for the list of commands. */
  readonly summary: string;
  readonly description: string;
  readonly options: readonly OptionRow[];
  readonly examples: readonly string[];
  /** Stands after the examples. */
  readonly closing?: string;
  /** The method of the service that does the work; null for what needs no store. */
  readonly operation: string | null;
}

const limitsHelp =
  "cpuMs, wallMs, heapBytes, stackBytes, hostCalls, inFlight, outputBytes, resultBytes, inputBytes, valueBytes, bodyBytes, sourceBytes";

/** With its quotes: nothing here imports it. */
const testLibrary = '"flowcell:test"';

const json: OptionRow = { flags: "--json", doc: "print exactly one JSON object on standard output" };
const data: OptionRow = {
  flags: "--data <DIR>",
  doc: "the data folder; else FLOWCELL_DATA, else the user's state folder (root: /var/lib/flowcell)",
};
const input: OptionRow = {
  flags: "--input <JSON|@file>",
  doc: "the input: JSON, @x.json (parsed), @file (its text), @- (the text of standard input)",
};
const value: OptionRow = {
  flags: "--value <JSON|@file>",
  doc: "the value: JSON, @x.json (parsed), @file (its text), @- (the text of standard input)",
};
const reason: OptionRow = { flags: "--reason <TEXT>", doc: "why; kept with the decision" };
const hash: OptionRow = {
  flags: "--hash <HASH>",
  doc: "the version by its approval hash, at least 8 characters of it",
};
const noWait: OptionRow = {
  flags: "--no-wait",
  doc: "do not wait for the run; without a service a later owner goes on with it",
};
const mount: OptionRow = {
  flags: "--mount <name=DIR>",
  doc: "the folder that a mount of manifests stands for, repeatable",
  repeatable: true,
};
const secret: OptionRow = {
  flags: "--secret <name=env:VAR>",
  doc: "the environment variable that holds a secret, repeatable",
  repeatable: true,
};
const openPrivate: OptionRow = {
  flags: "--allow-net <HOST[:PORT]>",
  doc: "a private address that granted requests may reach, repeatable",
  repeatable: true,
};
const caFile: OptionRow = {
  flags: "--ca-file <FILE>",
  doc: "certificates (PEM) to trust beside the system's",
};
const settings = [mount, openPrivate, secret, caFile];

const runExitCodes =
  "Exit codes: 0 completed, 1 script_error, 2 usage or invalid_input, 3 denied, 4 budget_exceeded or timed_out,\n" +
  "5 violation or worker_lost, 6 sandbox_unavailable, 7 cancelled, 8 suspended or needs_reconcile, 9 overloaded,\n" +
  "10 replay_diverged or engine_mismatch, 70 internal, 75 store failure, 78 configuration.";
const taggedNote =
  '--json writes what JSON cannot hold as {"$type": …}: bigint, Date, Map, Set, bytes, undefined, NaN.';

export const commands: readonly CommandRow[] = [
  {
    name: "run",
    arguments: ["<PATH>"],
    summary: "run a script file, or the folder of a flow, in a confined worker",
    description:
      "Runs a script file (.ts, .mts, .js, .mjs) in a confined worker. The script is\n" +
      "  export default async function (input, host) { … }\n" +
      "A folder with a flow.json runs as a flow, in a store that is thrown away afterwards. What it asks for beyond\n" +
      "log, sleep, kv and reading files inside its own folder wants a yes on the terminal, --approve, or --allow-….\n" +
      "The result goes to standard output, everything else to standard error.",
    options: [
      input,
      {
        flags: "--json",
        doc: "print exactly one JSON object on standard output; console lines stay on standard error",
      },
      {
        flags: "--trace",
        doc: "files: tell on standard error what happens, with times: plan, script, worker, host calls",
      },
      {
        flags: "--limit <name=value>",
        doc: `files: a limit of this run, repeatable: ${limitsHelp}`,
        repeatable: true,
      },
      {
        ...mount,
        doc: "folders: the folder that a mount of the manifest stands for, repeatable; else the folder of that name in the flow's",
      },
      {
        flags: "--allow-net <HOST[:PORT]>",
        doc: "folders: allow requests that the manifest grants to this host, also when it is private; repeatable",
        repeatable: true,
      },
      {
        flags: "--allow-read <DIR>",
        doc: "folders: allow mounts to read inside this folder, repeatable",
        repeatable: true,
      },
      { ...secret, doc: `folders: ${secret.doc}` },
      { ...caFile, doc: `folders: ${caFile.doc}` },
      { flags: "--approve", doc: "folders: allow everything that the manifest asks for" },
    ],
    examples: [
      'flowcell run examples/pricing-rule.js --input \'{"items":[{"sku":"tea","cents":450,"quantity":12}]}\'',
      "flowcell run flow.ts --input @order.json --limit cpuMs=2000 --json",
      "flowcell run examples/flows/nightly-report --mount sales=examples/flows/nightly-report/sales --mount reports=/tmp --approve",
    ],
    closing: `${runExitCodes}\n${taggedNote}`,
    operation: null,
  },
  {
    name: "exec",
    arguments: ["[FILE|-]"],
    summary: "run a script that calls tools, as a model writes them, in a confined worker",
    description:
      "Runs a script against tools in a confined worker: the body of an async function, a function, or a module with a\n" +
      "default export, in a Markdown fence or not, JavaScript or TypeScript. Without FILE, or with -, the script is read\n" +
      "from standard input. The result goes to standard output, everything else to standard error.\n" +
      "The module of --tools is loaded into this process and trusted. An exported function becomes tools.NAME and takes\n" +
      "its arguments as they come; { description, inputSchema, execute } takes one input, which is checked; an exported\n" +
      "object of these becomes a namespace. What it prints goes to standard error. Calls that need approval are asked for\n" +
      "at a terminal.",
    options: [
      { flags: "--tools <FILE>", doc: "the module of tools: .mjs, .js or .cjs" },
      {
        flags: "--approve <NAME>",
        doc: "approve calls of this tool beforehand, repeatable: tools.pay",
        repeatable: true,
      },
      {
        flags: "--json",
        doc: "print exactly one JSON object on standard output; console lines stay on standard error",
      },
      {
        flags: "--limit <name=value>",
        doc: `a limit of this execution, repeatable: ${limitsHelp}`,
        repeatable: true,
      },
    ],
    examples: [
      "flowcell exec examples/codemode/total.js --tools examples/codemode/tools.mjs --json",
      "echo 'return await tools.add(1, 2)' | flowcell exec --tools examples/codemode/tools.mjs",
    ],
    closing: `${runExitCodes}\n${taggedNote}`,
    operation: null,
  },
  {
    name: "check",
    arguments: ["<PATH>"],
    summary: "say what is wrong with a flow: manifest, bundle, types",
    description:
      "Checks the folder of a flow: its flow.json, whether its script can be bundled, and, where a TypeScript compiler is\n" +
      "found, its types against the host functions that the manifest grants. Exit code 1 when something is wrong.",
    options: [json],
    examples: ["flowcell check examples/flows/price-watch"],
    operation: null,
  },
  {
    name: "types",
    arguments: ["<PATH>"],
    summary: "write host.d.ts: the types of what the manifest grants",
    description:
      "Writes host.d.ts into the folder of a flow: the types of its input, its result and of the host functions that its\n" +
      "manifest grants, so that an editor knows them and a call that is not granted is an error.",
    options: [{ flags: "--print", doc: "print the text instead" }, json],
    examples: ["flowcell types my-flow", "flowcell types my-flow --print"],
    operation: null,
  },
  {
    name: "test",
    arguments: ["<PATH>"],
    summary: "run a flow's own *.test.ts files, inside a confined worker",
    description:
      "Runs every *.test.ts and *.test.js of a flow's folder in a confined worker, in virtual time. A test imports\n" +
      `  import { test, expect, fakeHost, replay } from ${testLibrary};\n` +
      "Exit code 1 when a test fails or a file cannot be loaded.",
    options: [{ flags: "--only <TEXT>", doc: "only tests whose name holds this text" }, json],
    examples: ["flowcell test examples/flows/price-watch"],
    operation: null,
  },
  {
    name: "install",
    arguments: ["<PATH>"],
    summary: "install a flow's folder as a version that waits for approval",
    description:
      "Bundles the flow, keeps bundle, sources and manifest under their hash, and runs it once with every host call\n" +
      "captured and none carried out, to show what it would call. Nothing runs before it is approved.",
    options: [{ ...input, doc: `for the dry run: ${input.doc}` }, data, json],
    examples: ["flowcell install examples/flows/price-watch"],
    operation: "install",
  },
  {
    name: "approve",
    arguments: ["<FLOW|CALL>"],
    summary: "approve a version of a flow, or a call that waits for approval",
    description:
      "Shows what a version may reach (what changed first), its changes or its source, and asks. Where nobody can be\n" +
      "asked, --hash says which version is meant. A call_… identifier answers an approval that a run waits for.\n" +
      "--mount, --allow-net, --secret and --ca-file are kept for the data folder, for every flow.",
    options: [hash, { ...value, doc: `for calls: ${value.doc}` }, noWait, ...settings, data, json],
    examples: [
      "flowcell approve price-watch",
      "flowcell approve price-watch --hash 1f2e3d4c",
      'flowcell approve call_Zk3… --value \'{"by":"ada"}\'',
    ],
    operation: "approve",
  },
  {
    name: "reject",
    arguments: ["<FLOW|CALL>"],
    summary: "reject a version, or a call that waits for approval",
    description: "Rejects a version that waits for approval, or answers a call_… identifier with no.",
    options: [hash, reason, { ...value, doc: `for calls: ${value.doc}` }, noWait, data, json],
    examples: ["flowcell reject price-watch --hash 1f2e3d4c --reason 'asks for any host'"],
    operation: "reject",
  },
  {
    name: "revoke",
    arguments: ["<FLOW>"],
    summary: "take an approval back and cancel its unfinished runs",
    description:
      "Takes the approval of a version back: its unfinished runs are cancelled, none starts any more.",
    options: [hash, reason, data, json],
    examples: ["flowcell revoke price-watch --reason 'wrong host'"],
    operation: "revoke",
  },
  {
    name: "enable",
    arguments: ["<FLOW>"],
    summary: "let a disabled flow start runs again",
    description: "Lets a flow start runs again that was disabled by somebody or by itself.",
    options: [data, json],
    examples: ["flowcell enable price-watch"],
    operation: "enable",
  },
  {
    name: "disable",
    arguments: ["<FLOW>"],
    summary: "keep a flow from starting runs",
    description: "Keeps a flow from starting runs; runs that have begun go on.",
    options: [reason, data, json],
    examples: ["flowcell disable price-watch --reason 'source is down'"],
    operation: "disable",
  },
  {
    name: "list",
    arguments: [],
    summary: "list flows with their state",
    description:
      "Lists flows: approved version, trigger, next time, runs that are on their way, what waits for somebody.",
    options: [data, json],
    examples: ["flowcell list"],
    operation: "list",
  },
  {
    name: "show",
    arguments: ["<FLOW>", "[HASH]"],
    summary: "show a version of a flow: reach, source, dry run",
    description:
      "Shows a version of a flow (the newest, or by its hash): what it may reach, what its dry run called.",
    options: [
      { flags: "--diff", doc: "what changed since the approved version" },
      { flags: "--source", doc: "manifest and sources as well" },
      { flags: "--bundle", doc: "the script as workers get it, and nothing else" },
      data,
      json,
    ],
    examples: ["flowcell show price-watch --diff"],
    operation: "show",
  },
  {
    name: "start",
    arguments: ["<FLOW>"],
    summary: "start a run of an approved flow",
    description:
      "Starts a run and waits until it is finished, or until it waits for somebody or for more than a minute (exit\n" +
      "code 8). Its result goes to standard output. Without a service this process drives the run, and others that are\n" +
      "due, for as long as it waits.",
    options: [
      input,
      {
        flags: "--key <TEXT>",
        doc: "deduplication: the same key of the same flow never starts a second run",
      },
      noWait,
      data,
      { flags: "--json", doc: "print exactly one JSON object on standard output" },
    ],
    examples: [
      'flowcell start price-watch --input \'{"symbol":"tea"}\'',
      "flowcell start nightly-report --no-wait",
    ],
    closing: `${runExitCodes}\n${taggedNote}`,
    operation: "start",
  },
  {
    name: "runs",
    arguments: ["[RUN]"],
    summary: "list runs, or show one with its result, calls and log",
    description: "Lists runs, newest first; with a run_… identifier shows that run.",
    options: [
      { flags: "--flow <FLOW>", doc: "only runs of this flow" },
      {
        flags: "--state <STATE>",
        doc: "only runs in this state (pending, running, suspended, finished) or with this status",
      },
      { flags: "--limit <N>", doc: "how many, 1 to 1000 (20)" },
      { flags: "--before <RUN>", doc: "those created before this run" },
      data,
      json,
    ],
    examples: ["flowcell runs --state suspended", "flowcell runs run_Zk3…"],
    operation: "runs",
  },
  {
    name: "cancel",
    arguments: ["<RUN>"],
    summary: "cancel a run",
    description: "Cancels a run: its worker is ended, calls that have begun are waited for.",
    options: [data, json],
    examples: ["flowcell cancel run_Zk3…"],
    operation: "cancel",
  },
  {
    name: "signal",
    arguments: ["<RUN>", "<NAME>"],
    summary: "send a signal to a run",
    description: "Sends a signal that the run takes with host.signal.wait(NAME), now or later.",
    options: [value, { flags: "--id <TEXT>", doc: "the same identifier is taken once" }, noWait, data, json],
    examples: ["flowcell signal run_Zk3… paid --value '{\"cents\":450}'"],
    operation: "signal",
  },
  {
    name: "reconcile",
    arguments: ["<RUN>", "[POSITION]"],
    summary: "say what became of a call whose outcome is unknown",
    description:
      "A run whose call was sent and never answered waits for somebody who looked. Say what was found: the call had its\n" +
      "effect (--observed, with the value that it returned), it had none and is made now (--not-applied), or the run ends\n" +
      "(--cancel). POSITION may be left out when there is one such call.",
    options: [
      { flags: "--observed", doc: "it happened; --value is what the call returned" },
      { flags: "--not-applied", doc: "it did not happen; it is made now" },
      { flags: "--cancel", doc: "end the run; the call stays on record as unknown" },
      value,
      noWait,
      data,
      json,
    ],
    examples: [
      "flowcell reconcile run_Zk3… 4 --observed --value '{\"status\":201}'",
      "flowcell reconcile run_Zk3… --not-applied",
    ],
    operation: "reconcile",
  },
  {
    name: "journal",
    arguments: ["<RUN>"],
    summary: "show the journal of a run: calls and what was delivered, in order",
    description: "Shows what is recorded of a run: every call with its state, and every delivery in order.",
    options: [
      { flags: "--export <FILE>", doc: "write the recording to a file, for replay in the flow's own tests" },
      data,
      json,
    ],
    examples: ["flowcell journal run_Zk3…", "flowcell journal run_Zk3… --export my-flow/monday.json"],
    operation: "history",
  },
  {
    name: "replay",
    arguments: ["<RUN>"],
    summary: "run a journal again and show the first difference",
    description:
      "Runs the stored version over the stored journal, with no call carried out, and compares. Exit code 10 when\n" +
      "something differs.",
    options: [data, json],
    examples: ["flowcell replay run_Zk3…"],
    operation: "replay",
  },
  {
    name: "serve",
    arguments: [],
    summary: "own the store: fire triggers and drive runs until it is told to stop",
    description:
      "Owns the store of a data folder: fires cron triggers, drives runs, answers the other commands over a socket that\n" +
      "only this user can open. SIGTERM or SIGINT drains: nothing new begins, running activations finish or are\n" +
      "suspended, exit code 0. It does not listen for HTTP.",
    options: [
      { flags: "--patience-ms <N>", doc: "how long running activations may take when it stops (30000)" },
      ...settings,
      data,
    ],
    examples: ["flowcell serve --data /srv/flowcell", "flowcell serve --mount reports=/srv/reports"],
    operation: null,
  },
  {
    name: "drain",
    arguments: [],
    summary: "let a running service finish or suspend what it does, and take nothing new",
    description:
      "Asks the service to begin nothing more and to suspend what waits. It still answers; SIGTERM ends it.",
    options: [
      { flags: "--patience-ms <N>", doc: "how long running activations may take (30000)" },
      data,
      json,
    ],
    examples: ["flowcell drain"],
    operation: "drain",
  },
  {
    name: "mcp",
    arguments: [],
    summary: "be an MCP server whose one script calls the tools of other MCP servers",
    description:
      "Serves MCP over standard input and output, for an agent that starts it. Its tool execute runs a script in a confined\n" +
      "worker; the script calls the tools of the MCP servers that --config names, as <server>.<tool>(input). resume answers\n" +
      "calls that a person must approve, search finds tools by words. Standard output carries the protocol only.\n" +
      'The file: { "mcpServers": { "files": { "command": "npx", "args": ["…"], "needsApproval": ["write_*"] } } }; servers\n' +
      "also take env, inheritEnv, cwd, required, startMs and callMs, the file store, limits, approval and promptTokens. A\n" +
      'client that can show a question is asked for approvals; with approval "client" resume answers them. Servers get PATH,\n' +
      "HOME and what env and inheritEnv say. Relative paths start from the file's folder.",
    options: [{ flags: "--config <FILE>", doc: "the configuration, JSON; without it scripts have no tools" }],
    examples: ["flowcell mcp --config examples/codemode/mcp.json"],
    closing:
      "Exit codes: 0 the client closed it or a signal ended it, 75 store failure, 78 configuration, or a required server\n" +
      "failed to start.",
    operation: null,
  },
  {
    name: "doctor",
    arguments: [],
    summary: "examine this machine: what confines workers here",
    description:
      "Examines this machine: what the kernel offers, what a worker attests, which escapes are refused here.",
    options: [json],
    examples: ["flowcell doctor", "flowcell doctor --json"],
    operation: null,
  },
];
