/**
 * From what was typed to a command: parsing, help and mistakes, all from the table in commands.ts. Commands answer with an
 * exit code; this file turns whatever goes wrong before or around them into one line and the right code.
 */

import { exitCodes } from "@flowcell/protocol";
import { Command, CommanderError, Option } from "commander";
import { type CommandRow, commands } from "./commands.js";
import { bugText, remarkText } from "./human.js";
import { runCommand } from "./run-command.js";
import { type Streams, Typed } from "./typed.js";
import { UsageError } from "./usage.js";
import { usageJson } from "./usage-json.js";

export type { Streams } from "./typed.js";

export interface ProgramParts {
  readonly version: string;
  readonly streams: Streams;
  /** `flowcell doctor`; loaded only when it is asked for. */
  readonly doctor: (options: { readonly json?: boolean }, streams: Streams) => Promise<number>;
  /** `flowcell exec`; loaded only when it is asked for. */
  readonly exec: (typed: Typed, streams: Streams) => Promise<number>;
  /** `flowcell mcp`; loaded only when it is asked for. */
  readonly mcp: (typed: Typed, streams: Streams) => Promise<number>;
  /** Every command that has to do with flows, `run` of a folder among them; loaded only when one is asked for. */
  readonly flows: (name: string, typed: Typed, streams: Streams) => Promise<number>;
}

/** Runs the command line `args` (without node and script) and answers its exit code. Never throws. */
export async function runProgram(args: readonly string[], parts: ProgramParts): Promise<number> {
  const { streams } = parts;
  const json = args.includes("--json");
  let code: number = exitCodes.usage;
  const program = build(args, parts, (exitCode) => {
    code = exitCode;
  });
  try {
    await program.parseAsync(args, { from: "user" });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return 0;
      const message = commanderText(error.message);
      if (json && message !== "") streams.out(usageJson(new UsageError("request", message)));
      return exitCodes.usage;
    }
    if (error instanceof UsageError) {
      streams.err(remarkText(error.message));
      if (json) streams.out(usageJson(error));
      return exitCodes.usage;
    }
    streams.err(bugText(error));
    return exitCodes.internal;
  }
}

function build(args: readonly string[], parts: ProgramParts, finish: (exitCode: number) => void): Command {
  const { streams } = parts;
  const program = new Command("flowcell")
    .description("Runs JavaScript and TypeScript that nobody should have to trust, in confined processes.")
    .version(parts.version, "-V, --version", "print the version")
    .helpOption("-h, --help", "show this help")
    .helpCommand(false)
    .exitOverride()
    .configureOutput({
      writeOut: streams.out,
      writeErr: streams.err,
      outputError: (text, write) => write(remarkText(commanderText(text))),
    })
    .addHelpText("after", examples(["flowcell run examples/pricing-rule.js", "flowcell doctor"]));
  // One command is all that is needed when it is named first, and making the others takes longer than parsing.
  const named = commands.find(({ name }) => name === args[0]);
  for (const row of named === undefined ? commands : [named]) {
    add(program, row, async (typed) => finish(await dispatch(row, typed, parts)));
  }
  return program;
}

function add(program: Command, row: CommandRow, act: (typed: Typed) => Promise<void>): void {
  const command = program
    .command([row.name, ...row.arguments].join(" "))
    .copyInheritedSettings(program)
    .helpOption("-h, --help", "show this help")
    .summary(row.summary)
    .description(row.description)
    .addHelpText("after", examples(row.examples) + (row.closing === undefined ? "" : `\n${row.closing}`));
  for (const { flags, doc, repeatable } of row.options) {
    const option = new Option(flags, doc);
    // A flag without a value says the same twice; a value that another one replaces was not meant.
    if (repeatable === true) option.argParser(collect);
    else if (option.required || option.optional) option.argParser(once(flags));
    command.addOption(option);
  }
  command.action(async (...given: unknown[]) => {
    await act(new Typed(given.slice(0, row.arguments.length), command.opts()));
  });
}

async function dispatch(row: CommandRow, typed: Typed, parts: ProgramParts): Promise<number> {
  const { streams } = parts;
  switch (row.name) {
    case "doctor":
      return await parts.doctor({ json: typed.flag("json") }, streams);
    case "exec":
      return await parts.exec(typed, streams);
    case "mcp":
      return await parts.mcp(typed, streams);
    case "run": {
      const code = await runCommand(typed, streams);
      return code === "folder" ? await parts.flows(row.name, typed, streams) : code;
    }
    default:
      return await parts.flows(row.name, typed, streams);
  }
}

function examples(lines: readonly string[]): string {
  return `\nExample${lines.length === 1 ? "" : "s"}:\n${lines.map((line) => `  ${line}`).join("\n")}`;
}

function once(flags: string): (value: string, earlier: unknown) => string {
  const name = flags.split(" ", 1)[0] ?? flags;
  return (value, earlier) => {
    if (earlier === undefined) return value;
    throw new UsageError("request", `${name} is given twice; give it once`);
  };
}

function collect(value: string, earlier: readonly string[] | undefined): readonly string[] {
  return [...(earlier ?? []), value];
}

/** `error: unknown option '--jsn'\n(Did you mean --json?)` on one line, without the word that the prefix says. */
function commanderText(text: string): string {
  return text
    .trim()
    .replace(/^error: /, "")
    .replace(/\s*\n\(Did you mean (.*)\?\)$/, "; did you mean $1?");
}
