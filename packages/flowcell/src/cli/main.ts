/**
 * The entry of the command line. `bin/flowcell.mjs` calls `main` with nothing else loaded; what a command does not need is
 * not loaded by it: doctor, the commands for flows and esbuild come when they are asked for, the launcher library with the
 * first worker.
 */

import { isatty } from "node:tty";
import { exitCodes } from "@flowcell/protocol";
import { runProgram } from "./program.js";
import { guarded } from "./streams.js";
import type { Streams, Typed } from "./typed.js";

declare const FLOWCELL_VERSION: string;

export async function main(args: readonly string[]): Promise<void> {
  if (process.platform !== "linux") {
    process.stderr.write(
      "flowcell runs on Linux today; on this machine use a Linux virtual machine or container.\n",
    );
    process.exitCode = exitCodes.unsupportedSystem;
    return;
  }
  // A reader that is gone (`flowcell … | head`) is no failure.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
  // As it is now: `exec` keeps it for itself.
  const write = process.stdout.write.bind(process.stdout);
  const streams = guarded({
    out: (text) => void write(text),
    err: (text) => void process.stderr.write(text),
    outIsTerminal: process.stdout.isTTY === true,
    // Not process.stdin, which would make a stream of it and take what others read.
    ...(isatty(0) && process.stderr.isTTY === true ? { ask } : {}),
  });
  let foreign = false;
  const exec = async (typed: Typed, own: Streams): Promise<number> => {
    foreign = true;
    keepOutput();
    const { execCommand } = await import("./exec-command.js");
    return await execCommand(typed, own);
  };
  process.exitCode = await runProgram(args, { version: FLOWCELL_VERSION, streams, doctor, exec, flows, mcp });
  if (!foreign) return;
  // A module of tools may have opened what keeps Node alive: a timer, a pool of connections.
  await Promise.all([written(write), written(process.stderr.write.bind(process.stderr))]);
  process.exit();
}

/** What a module of tools prints, while it is loaded and whenever it is called, goes to standard error until the process ends. */
function keepOutput(): void {
  const { stdout, stderr } = process;
  stdout.write = stderr.write.bind(stderr);
  // Whoever pipes into one waits for it where the other was full.
  stderr.on("drain", () => stdout.emit("drain"));
}

/** Until everything before it was taken, or cannot be any more. */
function written(write: (text: string, done: () => void) => boolean): Promise<void> {
  return new Promise((resolve) => void write("", () => resolve()));
}

async function mcp(typed: Typed, streams: Streams): Promise<number> {
  const { mcpCommand } = await import("./mcp-command.js");
  return await mcpCommand(typed, streams);
}

async function flows(name: string, typed: Typed, streams: Streams): Promise<number> {
  const { flowsCommand } = await import("./flows-command.js");
  return await flowsCommand(name, typed, streams);
}

/** One line from the terminal; "" when it was closed. */
async function ask(question: string): Promise<string> {
  const { createInterface } = await import("node:readline/promises");
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const closed = new Promise<string>((resolve) => terminal.on("close", () => resolve("")));
  try {
    return await Promise.race([terminal.question(question), closed]);
  } finally {
    terminal.close();
  }
}

async function doctor(options: { readonly json?: boolean }, streams: Streams): Promise<number> {
  const { doctorCommand } = await import("./doctor-command.js");
  return await doctorCommand(options, streams);
}
