/**
 * The entry of the command line. `bin/flowcell.mjs` calls `main` with nothing else loaded; what a command does not need is
 * not loaded by it: doctor and esbuild come when they are asked for, the launcher library with the first worker.
 */

import { exitCodes } from "@flowcell/protocol";
import { runProgram, type Streams } from "./program.js";

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
  const streams: Streams = {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    outIsTerminal: process.stdout.isTTY === true,
  };
  process.exitCode = await runProgram(args, { version: FLOWCELL_VERSION, streams, doctor });
}

async function doctor(options: { readonly json?: boolean }, streams: Streams): Promise<number> {
  const { doctorCommand } = await import("./doctor-command.js");
  return await doctorCommand(options, streams);
}
