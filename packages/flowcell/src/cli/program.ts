/**
 * The commands and options of `flowcell`, their help and their mistakes. Commands answer with an exit code; this file
 * turns whatever goes wrong before or around them into one line and the right code.
 */

import { exitCodes } from "@flowcell/protocol";
import { Command, CommanderError } from "commander";
import { type RunCommandOptions, runCommand, type Streams, usageJson } from "./run-command.js";
import { UsageError } from "./usage.js";

export type { Streams } from "./run-command.js";

export interface ProgramParts {
  readonly version: string;
  readonly streams: Streams;
  /** `flowcell doctor`; loaded only when it is asked for. */
  readonly doctor: (options: { readonly json?: boolean }, streams: Streams) => Promise<number>;
}

/** Runs the command line `args` (without node and script) and answers its exit code. Never throws. */
export async function runProgram(args: readonly string[], parts: ProgramParts): Promise<number> {
  const { streams } = parts;
  const json = args.includes("--json");
  let code: number = exitCodes.usage;
  const program = build(parts, (exitCode) => {
    code = exitCode;
  });
  try {
    await program.parseAsync(args, { from: "user" });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return 0;
      const message = commanderText(error.message);
      if (json && message !== "") streams.out(`${usageJson(new UsageError("request", message))}\n`);
      return exitCodes.usage;
    }
    if (error instanceof UsageError) {
      streams.err(`flowcell: ${error.message}\n`);
      if (json) streams.out(`${usageJson(error)}\n`);
      return exitCodes.usage;
    }
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    streams.err(`flowcell: this is a bug in flowcell, please report it.\n${text}\n`);
    return exitCodes.internal;
  }
}

function build(parts: ProgramParts, finish: (exitCode: number) => void): Command {
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
      outputError: (text, write) => write(`flowcell: ${commanderText(text)}\n`),
    })
    .addHelpText("after", examples(["flowcell run examples/pricing-rule.js", "flowcell doctor"]));
  inherit(program.command("run <PATH>"), program)
    .summary("run a script file in a confined worker")
    .description(
      "Runs a script file (.ts, .mts, .js, .mjs) in a confined worker. The script is\n" +
        "  export default async function (input, host) { … }\n" +
        "Its result goes to standard output, everything else to standard error.",
    )
    .option(
      "--input <JSON|@file>",
      "first argument of the script: JSON, @x.json (parsed) or @file (its text)",
    )
    .option(
      "--json",
      "print exactly one JSON object on standard output; console lines stay on standard error",
    )
    .option("--trace", "tell on standard error what happens, with times: plan, script, worker, host calls")
    .option("--limit <name=value>", `a limit of this run, repeatable: ${limitsHelp}`, collect)
    .addHelpText(
      "after",
      examples([
        'flowcell run examples/pricing-rule.js --input \'{"items":[{"sku":"tea","cents":450,"quantity":12}]}\'',
        "flowcell run flow.ts --input @order.json --limit cpuMs=2000 --json",
      ]) +
        "\nExit codes: 0 completed, 1 script_error, 2 usage or invalid_input, 3 denied, 4 budget_exceeded or timed_out,\n" +
        "5 violation or worker_lost, 6 sandbox_unavailable, 7 cancelled, 9 overloaded, 70 internal.\n" +
        '--json writes what JSON cannot hold as {"$type": …}: bigint, Date, Map, Set, bytes, undefined, NaN.',
    )
    .action(async (path: string, options: RunCommandOptions) => {
      finish(await runCommand(path, options, streams));
    });
  inherit(program.command("doctor"), program)
    .description(
      "Examines this machine: what the kernel offers, what a worker attests, which escapes are refused here.",
    )
    .option("--json", "print exactly one JSON object on standard output")
    .addHelpText("after", examples(["flowcell doctor", "flowcell doctor --json"]))
    .action(async (options: { readonly json?: boolean }) => {
      finish(await parts.doctor(options, streams));
    });
  return program;
}

const limitsHelp =
  "cpuMs, wallMs, heapBytes, stackBytes, hostCalls, inFlight, outputBytes, resultBytes, inputBytes, valueBytes, bodyBytes, sourceBytes";

/** Subcommands made by `command()` inherit settings at creation; the chain above reads better for types. */
function inherit(command: Command, parent: Command): Command {
  return command.copyInheritedSettings(parent).helpOption("-h, --help", "show this help");
}

function examples(lines: readonly string[]): string {
  return `\nExample${lines.length === 1 ? "" : "s"}:\n${lines.map((line) => `  ${line}`).join("\n")}`;
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
