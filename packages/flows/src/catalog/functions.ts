/**
 * The host functions that a version of a flow is given: those that need no grant, and those that its manifest was approved
 * for. Whatever is not in this list does not exist for the script; a function's own grants (which host, which path, which
 * flow) are enforced by the function.
 *
 * `signal.wait` and `approval.request` need no grant: they touch nothing but the run itself, and an operator answers.
 */

import {
  builtIns,
  createFetchFunction,
  createFsFunctions,
  createRegistry,
  type EventFunctionOptions,
  eventFunctions,
  type FlowFunctionOptions,
  flowFunctions,
  type HostFunction,
  HostFunctionError,
  kvFunctions,
  runFunctions,
} from "@flowcell/host";
import type { Manifest } from "@flowcell/manifest";
import type { Limits } from "@flowcell/protocol";
import type { FlowServiceOptions } from "../ports.js";

/** What functions of flows do with the service: start runs, emit events. */
export interface FlowPorts {
  readonly startRun: FlowFunctionOptions["startRun"];
  readonly emitEvent: EventFunctionOptions["emitEvent"];
}

export type FunctionSources = Pick<
  FlowServiceOptions,
  "mounts" | "secretValue" | "privateHosts" | "caPem" | "deniedPaths" | "functions"
>;

export interface GrantedFunctions {
  readonly functions: readonly HostFunction[];
  /** Sorted and frozen. */
  readonly names: readonly string[];
  /** Whether a mount leads elsewhere now than it did when it was opened. */
  isReplaced(): boolean;
  close(): void;
}

/** Throws what the functions throw for grants that cannot be had: a mount that is not there, a certificate that is none. */
export function grantedFunctions(
  manifest: Manifest,
  limits: Limits,
  sources: FunctionSources,
  ports: FlowPorts,
): GrantedFunctions {
  const { grants } = manifest;
  const functions: HostFunction[] = [...builtIns, ...runFunctions];
  if (grants.kv !== null) functions.push(...kvFunctions());
  if (grants.net.length > 0) functions.push(fetchOf(manifest, sources));
  if (grants.flows.length > 0) {
    functions.push(...flowFunctions({ grants: grants.flows, startRun: ports.startRun }));
  }
  if (grants.events.length > 0) {
    functions.push(...eventFunctions({ grants: grants.events, emitEvent: ports.emitEvent }));
  }
  functions.push(...grantedTools(grants.tools, sources.functions));
  const files =
    grants.fs.length === 0
      ? undefined
      : createFsFunctions({
          mounts: sources.mounts,
          rules: grants.fs,
          alwaysDenied: sources.deniedPaths,
          bodyBytes: limits.bodyBytes,
          textBytes: limits.valueBytes,
        });
  if (files !== undefined) functions.push(...files.functions);
  const names = functions.map(({ name }) => name).sort();
  return {
    functions: Object.freeze(functions),
    names: Object.freeze(names),
    isReplaced: () => files?.isReplaced() ?? false,
    close: () => files?.close(),
  };
}

const fsNames = ["fs.append", "fs.delete", "fs.list", "fs.read", "fs.stat", "fs.write"];

/** The names of `grantedFunctions`, without opening anything. */
export function grantedNames({ grants }: Manifest, tools: readonly HostFunction[]): readonly string[] {
  const namesOf = (functions: readonly HostFunction[]): readonly string[] =>
    functions.map(({ name }) => name);
  return [
    ...namesOf(builtIns),
    ...namesOf(runFunctions),
    ...(grants.kv === null ? [] : namesOf(kvFunctions())),
    ...(grants.net.length === 0 ? [] : ["fetch"]),
    ...(grants.flows.length === 0 ? [] : ["flow.start", "flow.wait"]),
    ...(grants.events.length === 0 ? [] : ["event.emit"]),
    ...namesOf(grantedTools(grants.tools, tools)),
    ...(grants.fs.length === 0 ? [] : fsNames),
  ].sort();
}

/** Throws HostFunctionError when a function of the embedder cannot stand beside the built-in ones. */
export function checkTools(tools: readonly HostFunction[]): void {
  const everything = [...builtIns, ...runFunctions, ...kvFunctions()].map(({ name }) => name);
  const taken = new Set([...everything, "fetch", "flow.start", "flow.wait", "event.emit", ...fsNames]);
  const clash = tools.find(({ name }) => taken.has(name));
  if (clash !== undefined) {
    throw new HostFunctionError(`host function "${clash.name}" is flowcell's own; give yours another name`);
  }
  createRegistry([...builtIns, ...runFunctions, ...kvFunctions(), ...tools]);
}

function fetchOf({ grants }: Manifest, sources: FunctionSources): HostFunction {
  return createFetchFunction({
    rules: grants.net,
    secrets: grants.secrets,
    secretValue: sources.secretValue,
    privateHosts: sources.privateHosts,
    ...(sources.caPem === undefined ? {} : { ca: sources.caPem }),
  });
}

/** The embedder's functions whose names fall under a pattern: `calendar.list`, `calendar.*`, `*`. */
export function grantedTools(
  patterns: readonly string[],
  functions: readonly HostFunction[],
): readonly HostFunction[] {
  return functions.filter(({ name }) => patterns.some((pattern) => toolMatches(pattern, name)));
}

export const toolsPrefix = "tools.";

/** Patterns are about the name after `tools.`; a function without that prefix is granted by its whole name. */
export function toolMatches(pattern: string, functionName: string): boolean {
  const name = functionName.startsWith(toolsPrefix) ? functionName.slice(toolsPrefix.length) : functionName;
  if (pattern === "*") return true;
  if (!pattern.endsWith(".*")) return pattern === name;
  return name.startsWith(pattern.slice(0, -1));
}
