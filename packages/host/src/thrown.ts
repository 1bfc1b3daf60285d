/**
 * What a handler threw, as it may be shown to a script: a HostError as it is, an error of the operating system by its
 * name only (its message holds a path), anything else by its class and message with paths of this machine taken out.
 * Stacks never leave the host.
 */

import { homedir, tmpdir } from "node:os";
import { HostError, type HostErrorData, hostErrorData } from "@flowcell/protocol";

export function thrownData(thrown: unknown): HostErrorData {
  if (thrown instanceof HostError) return hostErrorData(thrown);
  const system = systemErrorName(thrown);
  if (system !== undefined) {
    return { code: "io_error", message: `the operating system answered ${system}`, retryable: false };
  }
  const data = hostErrorData(thrown, true);
  return { ...data, message: withoutPaths(data.message) };
}

/** ENOENT and its like, of an error that Node made from a system call. */
function systemErrorName(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || !("syscall" in thrown) || !("code" in thrown)) return undefined;
  return typeof thrown.code === "string" && /^[A-Z][A-Z0-9_]{1,31}$/.test(thrown.code)
    ? thrown.code
    : undefined;
}

/** Folders whose names say something about this machine or its users; `/v1/prices` is none. */
const systemPaths =
  /(?:file:\/\/\/|\b[A-Za-z]:\\|(?<![\w.:/-])\/(?:bin|data|dev|etc|home|lib|mnt|opt|private|proc|root|run|srv|sys|tmp|usr|var|Users|Volumes)\/)[^\s'"`),;<>]*/g;

export function withoutPaths(message: string): string {
  const own = [process.cwd(), homedir(), tmpdir()].filter((folder) => folder.length > 1);
  let text = message;
  for (const folder of own) {
    text = text.replaceAll(new RegExp(`${literal(folder)}(?![\\w-])[^\\s'"\`),;<>]*`, "g"), "(path)");
  }
  return text.replaceAll(systemPaths, "(path)");
}

function literal(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
}
