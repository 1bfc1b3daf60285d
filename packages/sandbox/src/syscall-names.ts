/**
 * The name of a system call by its number, for messages about a worker that its filter killed. Called by packages/pool. The
 * tables are generated from the headers that the worker and its filter are built with.
 */
import { SYSCALLS } from "./syscall-names.generated.js";

/** Undefined for a number that the kernel had not given out when the tables were made. */
export function syscallName(architecture: "x64" | "arm64", number: number): string | undefined {
  return new RegExp(`(?:^| )${number}=(\\w+)`).exec(SYSCALLS[architecture])?.[1];
}
